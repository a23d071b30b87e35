package phonesim

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync"
)

// The packets of the shell protocol, version 2: one byte of these, a little-endian length, data.
const (
	shellStdin      = 0
	shellStdout     = 1
	shellStderr     = 2
	shellExit       = 3
	shellCloseStdin = 4
	shellWindowSize = 5

	shellHeader = 5
)

// shellService serves "shell[,v2][,TERM=...][,raw or pty]:command".
func (d *daemon) shellService(options, cmd string) service {
	pty, v2 := cmd == "", false
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "v2":
			v2 = true
		case "raw":
			pty = false
		case "pty":
			pty = true
		}
	}
	if v2 && !d.release.has("shell_v2") {
		return nil
	}
	return func(ctx context.Context, s *stream) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if !v2 {
			d.runShell(ctx, cancel, cmd, pty, s, s, s)
			return
		}
		in, stdin := io.Pipe()
		d.work.Go(func() { demuxShell(s, stdin) })
		w := &shellWriter{stream: s}
		exit := d.runShell(ctx, cancel, cmd, pty, in, w.channel(shellStdout), w.channel(shellStderr))
		w.write(shellExit, []byte{byte(exit)})
		in.Close()
	}
}

// runShell runs a command with or without a terminal between it and the host.
func (d *daemon) runShell(
	ctx context.Context, interrupt context.CancelFunc, cmd string, pty bool, stdin io.Reader, stdout, stderr io.Writer,
) int {
	if !pty {
		return d.run(ctx, cmd, stdin, stdout, stderr)
	}
	t := newTerminal(stdin, stdout, interrupt)
	d.work.Go(t.readKeys)
	defer t.close()
	return d.run(ctx, cmd, t, t, t)
}

// demuxShell passes on what the host writes to the command's standard input, until the stream ends.
func demuxShell(s io.Reader, stdin *io.PipeWriter) {
	defer stdin.Close()
	var header [shellHeader]byte
	for {
		if _, err := io.ReadFull(s, header[:]); err != nil {
			return
		}
		data := io.LimitReader(s, int64(binary.LittleEndian.Uint32(header[1:])))
		switch header[0] {
		case shellStdin:
			io.Copy(stdin, data) // fails if the command is done; the rest goes the way of what it does not read
		case shellCloseStdin:
			stdin.Close()
		}
		if _, err := io.Copy(io.Discard, data); err != nil {
			return
		}
	}
}

// shellWriter writes packets of the shell protocol, each whole.
type shellWriter struct {
	stream *stream
	mu     sync.Mutex // keeps packets whole
}

func (w *shellWriter) write(id byte, data []byte) error {
	packet := make([]byte, shellHeader, shellHeader+len(data))
	packet[0] = id
	binary.LittleEndian.PutUint32(packet[1:], uint32(len(data)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.stream.Write(append(packet, data...))
	return err
}

// channel returns a writer whose data goes out under an id.
func (w *shellWriter) channel(id byte) io.Writer { return shellChannel{w, id} }

type shellChannel struct {
	w  *shellWriter
	id byte
}

// Write cuts data so that a packet fits into one message, as the real daemon does.
func (c shellChannel) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n := min(len(b), c.w.stream.maxWrite-shellHeader)
		if err := c.w.write(c.id, b[:n]); err != nil {
			return written, err
		}
		b = b[n:]
		written += n
	}
	return written, nil
}
