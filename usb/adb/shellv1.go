package adb

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// shell1 runs a command on a phone without the shell protocol. The exit code
// comes as "<marker><code>" and a line end at the very end of the output; the
// marker is random, so no output can pretend to be it.
func (c *Conn) shell1(ctx context.Context, cmd string, stdio Stdio) (int, error) {
	if stdio.Stdin != nil {
		return 0, fmt.Errorf("%w: a command's input without shell_v2", ErrUnsupported)
	}
	marker := "exit-" + rand.Text() + ":"
	// A shell of its own keeps unbalanced quotes, "exit" and comments of cmd
	// away from the marker.
	s, err := c.Open(ctx, "shell:sh -c '"+strings.ReplaceAll(cmd, "'", `'\''`)+"'; echo "+marker+"$?")
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	return splitMarker(s, stdio.Stdout, marker)
}

// exitTail is the room after the marker: three digits, CR, LF, and some slack
// for terminals that write CR twice.
const exitTail = 8

// splitMarker copies r to w up to the marker at the end and returns the code.
func splitMarker(r io.Reader, w io.Writer, marker string) (int, error) {
	keep := len(marker) + exitTail
	var held []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		held = append(held, buf[:n]...)
		if len(held) > keep {
			free := len(held) - keep
			if _, err := w.Write(held[:free]); err != nil {
				return 0, err
			}
			held = append(held[:0], held[free:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	at := bytes.LastIndex(held, []byte(marker))
	if at < 0 {
		_, err := w.Write(held)
		return 0, errors.Join(ErrNoExitCode, err)
	}
	if _, err := w.Write(held[:at]); err != nil {
		return 0, err
	}
	code, err := strconv.ParseUint(strings.TrimRight(string(held[at+len(marker):]), "\r\n"), 10, 8)
	if err != nil {
		return 0, ErrNoExitCode
	}
	return int(code), nil
}
