package mcp

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Converse answers one client over a byte stream, a message a line, until the
// client ends it, ctx ends or the server is closed. in and out are closed if they
// can be.
func (s *Server) Converse(ctx context.Context, caller Caller, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(withCaller(ctx, caller))
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	session, err := s.sdk.Connect(ctx, &mcp.IOTransport{Reader: closing(in), Writer: outlet{out}, MaxLineLength: maxMessage}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		session.Close()
		<-ended
		return context.Cause(ctx)
	}
	session.Close()
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

// outlet is a writer that its owner closes.
type outlet struct{ io.Writer }

func (outlet) Close() error {
	return nil
}
