package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/mcp"
	"phonerack/agent/mcp/mcptest"
	"phonerack/sync/wire"
)

// line is a client over a byte stream that writes and reads lines.
type line struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Scanner
	ended chan error
}

func (b *bench) converse(ctx context.Context) *line {
	b.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	l := &line{t: b.T, in: inWrite, out: bufio.NewScanner(outRead), ended: make(chan error, 1)}
	l.out.Buffer(nil, 1<<20)
	go func() {
		err := b.server.Converse(ctx, mcp.Caller{Name: "desk", Via: mcp.ViaStream}, inRead, outWrite)
		outWrite.Close()
		inRead.Close()
		l.ended <- err
	}()
	return l
}

func (l *line) send(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, text+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

// read returns the next line, which must be one JSON object.
func (l *line) read() map[string]any {
	l.t.Helper()
	if !l.out.Scan() {
		l.t.Fatalf("the stream ended: %v", l.out.Err())
	}
	var m map[string]any
	if err := json.Unmarshal(l.out.Bytes(), &m); err != nil {
		l.t.Fatalf("%v: %s", err, l.out.Text())
	}
	return m
}

func (l *line) wait() error {
	l.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(10 * time.Second):
		l.t.Fatal("the conversation does not end")
		return nil
	}
}

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

func TestAByteStreamSpeaksBothEras(t *testing.T) {
	b := newBench(t, draft(t, "shop", noteFlow))
	b.skills.Entitle("shop", "desk")
	t.Run(legacy, func(t *testing.T) {
		l := b.converse(t.Context())
		l.send(handshake)
		result := l.read()["result"].(map[string]any)
		if result["protocolVersion"] != legacy || result["capabilities"].(map[string]any)["tools"].(map[string]any)["listChanged"] != true {
			t.Errorf("%v", result)
		}
		l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		l.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_skills","arguments":{}}}`)
		if r := l.read(); !strings.Contains(r["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"].(string), "shop-search") {
			t.Errorf("%v", r)
		}
		b.server.SetSkills(nil)
		if r := l.read(); r["method"] != "notifications/tools/list_changed" {
			t.Errorf("no notice of a changed list: %v", r)
		}
		l.in.Close()
		if err := l.wait(); err != nil {
			t.Error(err)
		}
		b.server.SetSkills(b.skills)
	})
	t.Run(modern, func(t *testing.T) {
		l := b.converse(t.Context())
		l.send(b.message(modern, "tools/list", nil))
		if r := l.read()["result"].(map[string]any); r["resultType"] != "complete" || len(r["tools"].([]any)) < 20 {
			t.Errorf("%v", r)
		}
		l.in.Close()
		if err := l.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnsweredBeforeTheEnd(t *testing.T) {
	b := newBench(t)
	in := strings.NewReader(handshake + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n")
	var out strings.Builder
	if err := b.server.Converse(t.Context(), mcp.Caller{Name: "desk", Via: mcp.ViaStream}, in, &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[1], `"take_screenshot"`) {
		t.Errorf("%d lines:\n%.500s", len(lines), out.String())
	}
}

func TestABadStreamEndsAndLeavesNothing(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		"no JSON":           "hello\n",
		"too long a line":   `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 300<<10) + `"}` + "\n",
		"cut in the middle": `{"jsonrpc":"2.0","id":1,`,
		"two on a line":     `{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n",
		"JSON of no call":   "[1]\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := b.converse(t.Context())
			go func() {
				io.WriteString(l.in, text)
				l.in.Close()
			}()
			if err := l.wait(); !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "JSON-RPC") {
				t.Errorf("the client is told %v", err)
			}
		})
	}
	t.Run("the stream breaks", func(t *testing.T) {
		broken := errors.New("the cable is cut")
		err := b.server.Converse(t.Context(), mcp.Caller{Name: "desk", Via: mcp.ViaStream}, iotest.ErrReader(broken), io.Discard)
		if !errors.Is(err, broken) || wire.Is(err, wire.BadRequest) {
			t.Errorf("%v", err)
		}
	})
	t.Run("the server stops", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := b.converse(ctx)
		l.send(handshake)
		l.read()
		cancel()
		l.wait()
	})
}

// TestAListenerIsToldOfAChangedList: the new era, over HTTP.
func TestAListenerIsToldOfAChangedList(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.id = 41
	listen := b.message(modern, "subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
	r := b.request(modern, listen, func(r *http.Request) {})
	answer, err := b.client.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	next := func() string {
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok && data != "" {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", events.Err())
		return ""
	}
	if first := next(); answer.StatusCode != 200 || !strings.Contains(first, "notifications/subscriptions/acknowledged") || !strings.Contains(first, "42") {
		t.Errorf("status %d, first message %s", answer.StatusCode, first)
	}
	b.server.SetSkills(nil)
	if second := next(); !strings.Contains(second, "notifications/tools/list_changed") || !strings.Contains(second, `"io.modelcontextprotocol/subscriptionId":42`) {
		t.Errorf("second message %s", second)
	}
}

func TestListenersAreBounded(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 16 {
		answer, err := b.client.Do(b.request(modern, b.message(modern, "subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}}), nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if !bufio.NewScanner(answer.Body).Scan() {
			t.Fatal("no acknowledgement")
		}
	}
	_, body := b.send(b.request(modern, b.message(modern, "subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}}), nil))
	if !strings.Contains(string(body), "16 clients listen already") {
		t.Errorf("one too many: %s", body)
	}
	if r := b.ask(modern, "tools/list", nil, nil); r.Error != nil {
		t.Errorf("the others pay for it: %+v", r)
	}
}

// TestTheLibrarysOwnClient connects with the SDK's client, over HTTP.
func TestTheLibrarysOwnClient(t *testing.T) {
	b := newBench(t, draft(t, "shop", noteFlow))
	b.skills.Entitle("shop", "desk")
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: b.url, HTTPClient: &http.Client{Transport: bearer{b.client.Transport}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	n := 0
	for _, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 20 {
		t.Errorf("%d tools", n)
	}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "observe", Arguments: map[string]any{"slot": mcptest.Slot}})
	if err != nil || r.IsError {
		t.Fatalf("%v %+v", err, r)
	}
}

type bearer struct{ next http.RoundTripper }

func (t bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+deskToken)
	return t.next.RoundTrip(r)
}

// TestSoakClientsThatComeAndGo leaves no session behind (stacklok/toolhive#4062,
// kagent-dev/tools#84). PHONERACK_SOAK=1 has 10,000 of each kind.
func TestSoakClientsThatComeAndGo(t *testing.T) {
	n := 300
	if os.Getenv("PHONERACK_SOAK") != "" {
		n = 10_000
	}
	b := newBench(t)
	round := func(count int) {
		for range count {
			for _, r := range []reply{
				b.ask("", "initialize", map[string]any{"protocolVersion": legacy, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}, nil),
				b.ask(modern, "server/discover", nil, nil),
			} {
				if r.Error != nil {
					t.Fatalf("%+v", r.Error)
				}
			}
			l := b.converse(t.Context())
			l.send(handshake)
			l.read()
			l.in.Close()
			if err := l.wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(n / 3)
	heap, goroutines, rss := memory(t)
	round(n)
	heap2, goroutines2, rss2 := memory(t)
	t.Logf("soak mcp clients: %d of each kind; heap %d -> %d KiB, goroutines %d -> %d, RSS %d -> %d KiB", n, heap/1024, heap2/1024, goroutines, goroutines2, rss/1024, rss2/1024)
	if goroutines2 > goroutines+5 {
		t.Errorf("goroutines: %d, then %d", goroutines, goroutines2)
	}
	// 100 bytes a client would be a leak of 1 MB a day at one client each ten seconds.
	if grown := heap2 - heap; grown > int64(64<<10+n*100) {
		t.Errorf("the heap grew by %d bytes over %d clients", grown, 3*n)
	}
	if grown := rss2 - rss; grown > 16<<20 {
		t.Errorf("RSS grew by %d bytes over %d clients", grown, 3*n)
	}
}
