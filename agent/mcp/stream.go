package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/sync/wire"
)

// lastWords is how long a client that says nothing more is still answered. Then
// what runs for it ends.
const lastWords = 2 * time.Second

// Converse answers one client over a byte stream, a message a line, until the
// client ends it, ctx ends or the server is closed. in is closed if it can be, out
// is not. What is no message ends it with a refusal: where the next one begins,
// nobody knows.
func (s *Server) Converse(ctx context.Context, caller Caller, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(withCaller(ctx, caller))
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	source := &inlet{ReadCloser: closing(in)}
	lines := &mcp.IOTransport{Reader: source, Writer: outlet{out}, MaxLineLength: maxMessage}
	session, err := s.sdk.Connect(ctx, patient{lines, source}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
		session.Close()
	case <-ctx.Done():
		session.Close()
		<-ended
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func closing(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

// inlet keeps the error with which the client's bytes ended.
type inlet struct {
	io.ReadCloser
	err atomic.Pointer[error]
}

// Read implements io.Reader.
func (i *inlet) Read(p []byte) (int, error) {
	n, err := i.ReadCloser.Read(p)
	if err != nil {
		i.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

// outlet is a writer that its owner closes.
type outlet struct{ io.Writer }

func (outlet) Close() error { return nil }

// patient is a transport whose end of input comes when what was asked before it is
// answered, or lastWords later: the library drops the questions that are open then.
type patient struct {
	*mcp.IOTransport
	source *inlet
}

func (p patient) Connect(ctx context.Context) (mcp.Connection, error) {
	lines, err := p.IOTransport.Connect(ctx)
	return &conversation{Connection: lines, source: p.source, open: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1)}, err
}

type conversation struct {
	mcp.Connection
	source   *inlet
	answered chan struct{} // told, without waiting, of each answer

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // questions; guarded by mu
}

// Read implements mcp.Connection.
func (c *conversation) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.wait(ctx)
		return nil, c.blame(ctx, err)
	}
	if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" { // which has no answer of its own
		c.mu.Lock()
		c.open[r.ID] = true
		c.mu.Unlock()
	}
	return message, nil
}

// blame makes an error that lies in what the client wrote a refusal that says so; without that it would look like a fault here.
func (c *conversation) blame(ctx context.Context, err error) error {
	if broken := c.source.err.Load(); errors.Is(err, io.EOF) || ctx.Err() != nil || broken != nil && !errors.Is(*broken, io.EOF) {
		return err
	}
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(
		"a line of the client's is no JSON-RPC message of at most %d bytes (%.200s)", maxMessage, err)}).Because(err)
}

// Write implements mcp.Connection.
func (c *conversation) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if r, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *conversation) wait(ctx context.Context) {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	for {
		c.mu.Lock()
		open := len(c.open)
		c.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
