package phonesim

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// Characters that a terminal acts on.
const (
	interruptKey = 0x03
	endOfInput   = 0x04
)

// terminal is a pseudo-terminal between the host and a command, in the mode that a shell finds it in: what
// is typed is echoed, a carriage return is a new line, Ctrl-C ends the command and Ctrl-D its input; in
// output a new line gets a carriage return.
type terminal struct {
	in        io.Reader
	interrupt context.CancelFunc

	mu  sync.Mutex // keeps writes whole
	out io.Writer

	lines *io.PipeReader // what was typed
	typed *io.PipeWriter
}

// newTerminal returns a terminal. It works while readKeys runs.
func newTerminal(in io.Reader, out io.Writer, interrupt context.CancelFunc) *terminal {
	t := &terminal{in: in, out: out, interrupt: interrupt}
	t.lines, t.typed = io.Pipe()
	return t
}

// readKeys takes what the host types until in or the command's input ends.
func (t *terminal) readKeys() {
	defer t.typed.Close()
	buf := make([]byte, 4096)
	for {
		n, err := t.in.Read(buf)
		for _, key := range buf[:n] {
			switch key {
			case interruptKey:
				t.Write([]byte("^C\n"))
				t.interrupt()
				return
			case endOfInput:
				return
			case '\r':
				key = '\n'
			}
			t.Write([]byte{key})
			if _, err := t.typed.Write([]byte{key}); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read implements the command's input.
func (t *terminal) Read(b []byte) (int, error) { return t.lines.Read(b) }

// Write implements the command's output, both kinds.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.out.Write(bytes.ReplaceAll(b, []byte{'\n'}, []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// close ends the command's input.
func (t *terminal) close() { t.lines.Close() }
