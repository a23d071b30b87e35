package render

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"phonerack/agent/document/internal/protocol"
)

// Main is the child's life. The standard input holds the request, file descriptor 3 the document. What C code prints on the
// standard output goes to the standard error, and so does the caller print the error that is returned.
func Main() error {
	runtime.LockOSThread() // one arena of the C library, one thread for MuPDF
	request, err := readRequest(os.Stdin)
	if err != nil {
		return fmt.Errorf("error: rackd starts this for each document, nobody else does: %w", err)
	}
	text, err := mapDocument(protocol.DocumentFD)
	if err != nil {
		return fmt.Errorf("error: map the document: %w", err)
	}
	out, err := takeStdout()
	if err != nil {
		return fmt.Errorf("error: keep the standard output: %w", err)
	}
	debug.SetMemoryLimit(int64(request.Limits.Memory / 2)) // the rest is MuPDF's
	c := child{ask: request, out: bufio.NewWriterSize(out, 64<<10), text: text}
	if err = confine(request.Limits); err != nil {
		err = refuse(protocol.NotConfined, err.Error())
	} else {
		err = c.answer()
	}
	if r, ok := errors.AsType[refusal](err); ok {
		err = c.send(protocol.RefusalFrame, r.Refusal)
	}
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("error: answer: %w", err)
	}
	return nil
}

func readRequest(r io.Reader) (protocol.Request, error) {
	var q protocol.Request
	b, err := io.ReadAll(io.LimitReader(r, protocol.MaxRequestBytes+1))
	if err != nil {
		return q, err
	}
	if len(b) > protocol.MaxRequestBytes {
		return q, errors.New("the request is too long")
	}
	if err := json.Unmarshal(b, &q); err != nil {
		return q, fmt.Errorf("no request: %w", err)
	}
	return q, nil
}

// refusal is the error that ends an answer with a reason for the one who asks.
type refusal struct{ protocol.Refusal }

func (r refusal) Error() string { return string(r.Cause) + ": " + r.Detail }

func refuse(cause protocol.Cause, detail string) error {
	return refusal{protocol.Refusal{Cause: cause, Detail: cut(detail, protocol.MaxDetail)}}
}

// child answers one request.
type child struct {
	ask  protocol.Request
	out  *bufio.Writer
	text []byte // the document, mapped read-only
	left int    // bytes that pictures may still have
}

func (c *child) send(t protocol.Type, v any) error { return protocol.WriteJSON(c.out, t, v) }

// stage tells the parent what comes, at once: it may be the last that it hears.
func (c *child) stage(s protocol.Step, page int) error {
	if err := c.send(protocol.StageFrame, protocol.Stage{Step: s, Page: page}); err != nil {
		return err
	}
	return c.out.Flush()
}
