package providertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Tokens that answers report, [CutOffDisguised] apart.
const (
	TokensIn  = 1200 // of which TokensCached came from a cache
	TokensOut = 34

	TokensCached = 200
)

// RequestID is the id of every answer.
const RequestID = "req_test_1"

// Model is the model that every answer names.
const Model = "fake-model-1"

// Reply is what the server does with one request.
type Reply struct {
	refuse bool
	serve  func(*turn)
}

// turn is a request that is being answered.
type turn struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	seen   *Seen
}

// ToolCall is a call that an answer makes. Arguments is their text.
type ToolCall struct{ Name, Arguments string }

// answer is an answer before it is put into a protocol's form.
type answer struct {
	calls   []ToolCall
	text    string
	end     ending
	tokens  int  // 0: TokensOut
	dropped bool // the list of calls or choices is there, and empty
}

type ending int

const (
	whole ending = iota
	limit
	refused
	filtered
	paused
	disguisedLimit // cut off, but reported as whole
)

// Call answers with one call.
func Call(name, arguments string) Reply { return Calls(ToolCall{name, arguments}) }

// Calls answers with several calls, or with none and no text.
func Calls(calls ...ToolCall) Reply { return render(answer{calls: calls}) }

// Text answers without a call.
func Text(text string) Reply { return render(answer{text: text}) }

// CutOff answers with a call and says that a limit was reached, which may be the
// context's: it has not used all the tokens that it was allowed.
func CutOff(name, arguments string) Reply {
	return render(answer{calls: []ToolCall{{name, arguments}}, end: limit})
}

// CutOffDisguised answers with a call, has used all tokens, and says that it
// ended as it should.
func CutOffDisguised(name, arguments string) Reply {
	return render(answer{calls: []ToolCall{{name, arguments}}, end: disguisedLimit})
}

// Refusal declines.
func Refusal(text string) Reply {
	return render(answer{text: text, end: refused})
}

// Filtered is stopped by a content filter. Messages has none, and refuses.
func Filtered() Reply { return render(answer{end: filtered}) }

// Paused is not finished: pause_turn, or a status that is not completed.
func Paused(name, arguments string) Reply {
	return render(answer{calls: []ToolCall{{name, arguments}}, end: paused})
}

// Dropped reports a call and has none (vllm-project/vllm #53255).
func Dropped() Reply { return render(answer{dropped: true}) }

// Status fails with the protocol's own error. Headers are pairs.
func Status(status int, message string, headers ...string) Reply {
	return Reply{serve: func(t *turn) {
		for i := 0; i+1 < len(headers); i += 2 {
			t.w.Header().Set(headers[i], headers[i+1])
		}
		t.send(status, t.fault(status, message))
	}}
}

// Disguised is an error that comes with 200 (langgenius/dify #9197).
func Disguised(status int, message string) Reply {
	return Reply{serve: func(t *turn) { t.send(http.StatusOK, t.fault(status, message)) }}
}

// Raw answers with a body as it is.
func Raw(status int, contentType, body string) Reply {
	return Reply{serve: func(t *turn) {
		t.w.Header().Set("Content-Type", contentType)
		t.w.WriteHeader(status)
		_, _ = t.w.Write([]byte(body))
	}}
}

// HTML is what a wrong address or a captive portal answers.
func HTML() Reply {
	return Raw(http.StatusOK, "text/html; charset=utf-8", "<!doctype html><title>Sign in</title><p>Welcome")
}

// Redirect sends the client somewhere else.
func Redirect(status int, to string) Reply {
	return Reply{serve: func(t *turn) {
		t.w.Header().Set("Location", to)
		t.w.WriteHeader(status)
	}}
}

// Giant answers with n bytes of a JSON string.
func Giant(n int) Reply {
	return Reply{serve: func(t *turn) {
		t.w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat("a", 32<<10))
		_, err := t.w.Write([]byte(`{"model":"`))
		for ; n > 0 && err == nil; n -= len(chunk) {
			_, err = t.w.Write(chunk[:min(n, len(chunk))])
		}
		_, _ = t.w.Write([]byte(`"}`))
	}}
}

// Hang never answers.
func Hang() Reply { return Reply{serve: func(t *turn) { t.hang() }} }

// HangAfterHeaders answers with a status and no body.
func HangAfterHeaders(status int) Reply {
	return Reply{serve: func(t *turn) {
		t.w.Header().Set("Content-Type", "application/json")
		t.w.WriteHeader(status)
		t.flush()
		t.hang()
	}}
}

// Slow answers as next does, a tenth of the body at a time, with a wait before each.
func Slow(next Reply, wait time.Duration) Reply {
	return Reply{serve: func(t *turn) {
		var whole capture
		next.serve(&turn{server: t.server, w: &whole, r: t.r, seen: t.seen})
		t.w.Header().Set("Content-Type", "application/json")
		body := whole.body
		for step := max(1, len(body)/10); len(body) > 0; body = body[min(step, len(body)):] {
			t.flush()
			if !t.server.wait(t.r.Context(), wait) {
				panic(http.ErrAbortHandler)
			}
			_, _ = t.w.Write(body[:min(step, len(body))])
		}
	}}
}

// CutBody breaks the connection off in the middle of what next answers.
func CutBody(next Reply) Reply {
	return Reply{serve: func(t *turn) {
		var whole capture
		next.serve(&turn{server: t.server, w: &whole, r: t.r, seen: t.seen})
		t.w.Header().Set("Content-Type", "application/json")
		t.w.Header().Set("Content-Length", fmt.Sprint(len(whole.body)))
		_, _ = t.w.Write(whole.body[:len(whole.body)/2])
		t.flush()
		panic(http.ErrAbortHandler)
	}}
}

// Reset breaks the connection before any byte of an answer.
func Reset() Reply {
	return Reply{serve: func(t *turn) {
		conn, _, err := http.NewResponseController(t.w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if r, ok := conn.(*recordedConn); ok {
			conn = r.Conn
		}
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // a reset, not an orderly end
		}
		_ = conn.Close()
	}}
}

// Refuse refuses the connection; only clients that connect by [Server.Dial]
// meet it. One that comes over a connection that is open already is reset.
func Refuse() Reply {
	r := Reset()
	r.refuse = true
	return r
}

func (t *turn) hang() {
	select {
	case <-t.r.Context().Done():
	case <-t.server.stop:
	}
	panic(http.ErrAbortHandler)
}

func (t *turn) flush() { _ = http.NewResponseController(t.w).Flush() }

func (t *turn) send(status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if t.seen.Protocol == Messages {
		t.w.Header().Set("Request-Id", RequestID)
	} else {
		t.w.Header().Set("X-Request-Id", RequestID)
	}
	t.w.Header().Set("Content-Type", "application/json")
	t.w.WriteHeader(status)
	_, _ = t.w.Write(b)
}

// capture is where an answer is rendered to be sent in another way.
type capture struct {
	header http.Header
	body   []byte
}

func (c *capture) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}
func (c *capture) WriteHeader(int)             {}
func (c *capture) Write(b []byte) (int, error) { c.body = append(c.body, b...); return len(b), nil }
