package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/skill/model"
)

// Session is a conversation with one server. It takes one call at a time. After a
// fault that is not the tool's own it is over, and only Close is left.
type Session struct {
	server *Server
	log    *slog.Logger
	client *sdk.ClientSession
	stop   func(patience time.Duration) // ends the way to the server; may be called again
	meter  *meter                       // of what its program says; nil for a URL

	turn   sync.Mutex    // held while something is asked
	broken bool          // guarded by turn
	gone   chan struct{} // closed when the session is closed
	once   sync.Once
}

// Open starts or reaches a server. It blocks until the server has said what it is,
// at most 10 s and what its end takes. version is this program's.
func Open(ctx context.Context, s Server, version string, log *slog.Logger) (*Session, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	x := &Session{server: &s, log: log.With("server", s.Name), gone: make(chan struct{})}
	transport, err := x.transport()
	if err != nil {
		return nil, &Fault{Server: s.Name, Reason: "cannot be started: " + line(err.Error())}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "phonerack", Version: version}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	err = x.within(ctx, openTime, false, func(ctx context.Context) (err error) {
		x.client, err = c.Connect(ctx, transport, nil)
		return err
	})
	if err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// transport makes the way to the server.
func (x *Session) transport() (sdk.Transport, error) {
	if x.server.URL != "" {
		c, plain := overHTTP(x.server)
		x.stop = func(time.Duration) { plain.CloseIdleConnections() }
		return &sdk.StreamableClientTransport{
			Endpoint: x.server.URL, HTTPClient: c, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
		}, nil
	}
	p, err := run(x.server)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	x.stop = func(patience time.Duration) {
		once.Do(func() {
			p.stop(patience)
			if said := p.said.String(); said != "" {
				x.log.Debug("an MCP server said", "stderr", model.Visible(strings.ToValidUTF8(said, "")))
			}
		})
	}
	x.meter = &meter{Reader: p.out, Closer: p.out, left: maxTalk}
	return &sdk.IOTransport{Reader: x.meter, Writer: p.in, MaxLineLength: maxMessage}, nil
}

// within asks something of the server for at most d. Whatever the server does, it
// returns soon after that: what does not end by itself ends with the server. sent
// tells whether the server may have done something if no answer comes.
func (x *Session) within(ctx context.Context, d time.Duration, sent bool, ask func(ctx context.Context) error) error {
	x.turn.Lock()
	defer x.turn.Unlock()
	if x.broken {
		return &Fault{Server: x.server.Name, Reason: "is not there any more"}
	}
	if x.meter != nil {
		x.meter.refill()
	}
	inner, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ask(inner) }()
	var err error
	select {
	case err = <-done:
	case <-inner.Done():
		err = x.cut(done)
	}
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	x.broken = true
	x.stop(0)
	f := &Fault{Server: x.server.Name, Sent: sent, Reason: reason(err)}
	switch {
	case ctx.Err() != nil:
		f.Reason = "was not waited for: the task ended"
	case inner.Err() != nil:
		f.Reason = fmt.Sprintf("did not answer within %v", d)
	}
	return f
}

// cut waits a moment for what ctx has ended, then ends the server, which ends the rest.
func (x *Session) cut(done <-chan error) error {
	for _, patience := range []time.Duration{time.Second, graceTime} {
		t := time.NewTimer(patience)
		select {
		case err := <-done:
			t.Stop()
			if err == nil {
				err = context.DeadlineExceeded // it came too late to count
			}
			return err
		case <-t.C:
			x.stop(0)
		}
	}
	return context.DeadlineExceeded // the SDK holds on to something that is gone; nothing waits for it
}

// reason says what a server did, in a few words.
func reason(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errTalk) || errors.Is(err, errBody):
	case strings.Contains(text, "maximum line length"), strings.Contains(text, errBody.Error()):
		return fmt.Sprintf("answers with more than %d KiB", maxMessage>>10)
	case strings.Contains(text, errTalk.Error()):
		return fmt.Sprintf("says more than %d MiB", maxTalk>>20)
	case errors.Is(err, io.EOF), errors.Is(err, sdk.ErrConnectionClosed), strings.Contains(text, "closed"), strings.Contains(text, "EOF"):
		return "has ended, or says nothing that is MCP"
	}
	return "cannot be used: " + line(text)
}

// line makes a text from elsewhere short, one line, and visible.
func line(s string) string {
	s = strings.Join(strings.Fields(model.Visible(s)), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}

// Tools lists what planners can be offered. It blocks for 10 s at most, and what
// the server's end takes.
func (x *Session) Tools(ctx context.Context) (Listing, error) {
	var l Listing
	err := x.within(ctx, listTime, false, func(ctx context.Context) error {
		all, err := x.list(ctx)
		if err != nil {
			return err
		}
		l = fit(all)
		return nil
	})
	return l, err
}

// list reads all pages.
func (x *Session) list(ctx context.Context) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	cursor := ""
	for range maxPages {
		page, err := x.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if len(all) > MaxTools {
			return nil, x.fault("lists more than %d tools", MaxTools)
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return nil, x.fault("lists its tools on more than %d pages", maxPages)
}

func (x *Session) fault(format string, args ...any) *Fault {
	return &Fault{Server: x.server.Name, Reason: fmt.Sprintf(format, args...)}
}

// Call calls a tool that is still what it was when it was listed, and returns the
// text that it answers with. It blocks for 70 s at most, and what the server's end
// takes.
func (x *Session) Call(ctx context.Context, t Tool, args json.RawMessage) (text string, err error) {
	l, err := x.Tools(ctx)
	if err != nil {
		return "", err
	}
	if err := x.same(l, t); err != nil {
		return "", err
	}
	err = x.within(ctx, callTime, true, func(ctx context.Context) error {
		result, err := x.client.CallTool(ctx, &sdk.CallToolParams{Name: t.Name, Arguments: args})
		if err != nil {
			if refusal, ok := refused(err); ok { // the server is fine, and did nothing
				return &Fault{Server: x.server.Name, Reason: "refused the call: " + refusal}
			}
			return err
		}
		text = textOf(result)
		if result.IsError {
			return &Fault{Server: x.server.Name, Reason: "answered: " + line(text), Told: true, Sent: true}
		}
		return nil
	})
	return text, err
}

// same holds a tool to what the server lists now.
func (x *Session) same(l Listing, t Tool) error {
	for _, now := range l.Tools {
		if now.Name != t.Name {
			continue
		}
		if now.Sum != t.Sum {
			return x.fault("describes its tool %s differently than when the task began", t.Name)
		}
		return nil
	}
	return x.fault("has no tool %s any more", t.Name)
}

// textOf is the text of a result; what is no text is named.
func textOf(r *sdk.CallToolResult) string {
	var b bytes.Buffer
	for _, c := range r.Content {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		switch c := c.(type) {
		case *sdk.TextContent:
			b.WriteString(c.Text)
		case *sdk.ImageContent:
			b.WriteString("(an image, left out)")
		case *sdk.AudioContent:
			b.WriteString("(a sound, left out)")
		case *sdk.EmbeddedResource, *sdk.ResourceLink:
			b.WriteString("(a resource, left out)")
		default:
			b.WriteString("(left out)")
		}
		if b.Len() > maxText {
			break
		}
	}
	if b.Len() == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			b.Write(raw)
		}
	}
	text := model.Visible(strings.ToValidUTF8(string(b.Bytes()[:min(b.Len(), maxText)]), ""))
	if text == "" {
		return "(no text)"
	}
	return text
}

// Over tells whether nothing more can be asked.
func (x *Session) Over() bool {
	x.turn.Lock()
	defer x.turn.Unlock()
	return x.broken
}

// Close ends the session and waits for the server's program. It is safe to call it
// again, also while something is asked: that ends, too.
func (x *Session) Close() {
	x.once.Do(func() {
		defer close(x.gone)
		if x.client != nil {
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				_ = x.client.Close() // says goodbye, if anybody listens
			}()
			t := time.NewTimer(closeTime)
			defer t.Stop()
			select {
			case <-closed:
			case <-t.C:
			}
			x.stop(closeTime)
			select {
			case <-closed:
			case <-time.After(graceTime):
			}
			return
		}
		x.stop(0)
	})
	<-x.gone
}
