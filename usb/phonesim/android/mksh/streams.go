package mksh

import (
	"bytes"
	"context"
	"io"
	"sync"
	"syscall"
)

// gate stands before the caller's writer: nothing passes once Run has returned,
// and no more than maxOutput before.
type gate struct {
	mu     *sync.Mutex // guards closed; common to both outputs, which may be one writer
	w      io.Writer
	closed bool
	used   *usage
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, syscall.EPIPE
	}
	if g.w == nil {
		return len(p), nil
	}
	if g.used.output.Add(int64(len(p))) > maxOutput {
		return 0, errLimit
	}
	return g.w.Write(p)
}

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// lazyReader reads the caller's standard input only when a command asks for it,
// and gives up waiting when ctx ends.
type lazyReader struct {
	ctx  context.Context
	src  io.Reader
	once sync.Once
	pipe *io.PipeReader
}

func (l *lazyReader) Read(p []byte) (int, error) {
	if l.src == nil {
		return 0, io.EOF
	}
	l.once.Do(func() {
		pr, pw := io.Pipe()
		l.pipe = pr
		context.AfterFunc(l.ctx, func() { pr.CloseWithError(l.ctx.Err()) })
		go func() {
			_, err := io.Copy(pw, l.src)
			pw.CloseWithError(err)
		}()
	})
	return l.pipe.Read(p)
}

// pipeWriter is the write end of a pipe. The writer is ended, as by SIGPIPE, when
// nobody reads any more.
type pipeWriter struct {
	*io.PipeWriter
	hangUp context.CancelFunc
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	n, err := w.PipeWriter.Write(p)
	if err != nil {
		w.hangUp()
		return n, syscall.EPIPE
	}
	return n, nil
}

// capped passes on at most max bytes.
type capped struct {
	mu  sync.Mutex // guards all, for jobs may write at once
	w   io.Writer
	max int
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) > c.max {
		return 0, errLimit
	}
	c.max -= len(p)
	return c.w.Write(p)
}

// document is the text of a here-document, which several commands may read.
type document struct {
	mu   sync.Mutex // guards text
	text string
}

func (d *document) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text == "" {
		return 0, io.EOF
	}
	n := copy(p, d.text)
	d.text = d.text[n:]
	return n, nil
}

// closedWriter is a closed descriptor.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, syscall.EBADF }

// readLine reads up to a newline, one byte at a time, so that what follows
// is left for the next reader of the same descriptor.
func readLine(r io.Reader, max int) (string, error) {
	var line bytes.Buffer
	var b [1]byte
	for line.Len() < max {
		n, err := r.Read(b[:])
		if n == 1 {
			if b[0] == '\n' {
				return line.String(), nil
			}
			line.WriteByte(b[0])
		}
		if err != nil {
			return line.String(), err
		}
	}
	return line.String(), errLimit
}
