package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"phonerack/usb/adb"
)

// ADB is what this package uses of an ADB connection; *adb.Conn implements
// ADB[*adb.Stream, *adb.Sync]. S is the stream type of Exec, F the file service;
// [Attach] infers both.
type ADB[S io.ReadWriteCloser, F Files] interface {
	// Shell runs cmd and returns what it printed and its exit code.
	Shell(ctx context.Context, cmd string) (adb.Result, error)
	// Exec runs cmd, streams its raw output, standard error merged in, and takes
	// its input.
	Exec(ctx context.Context, cmd string) (S, error)
	// Sync opens the file service.
	Sync(ctx context.Context) (F, error)
	HasFeature(name string) bool
}

// Files is the phone's file service; *adb.Sync implements it.
type Files interface {
	Receive(ctx context.Context, path string, w io.Writer) error
	Send(ctx context.Context, r io.Reader, path string, mode fs.FileMode, mtime time.Time) error
	Close() error
}

// conn is an ADB connection without its type parameters.
type conn struct {
	shell   func(ctx context.Context, cmd string) (adb.Result, error)
	exec    func(ctx context.Context, cmd string) (io.ReadWriteCloser, error)
	sync    func(ctx context.Context) (Files, error)
	feature func(name string) bool
}

func connOf[S io.ReadWriteCloser, F Files](a ADB[S, F]) conn {
	return conn{
		shell: func(ctx context.Context, cmd string) (adb.Result, error) {
			r, err := a.Shell(ctx, cmd)
			if errors.Is(err, adb.ErrTooLarge) {
				err = fmt.Errorf("%w: %w", ErrTooLarge, err)
			}
			return r, err
		},
		exec: func(ctx context.Context, cmd string) (io.ReadWriteCloser, error) {
			s, err := a.Exec(ctx, cmd)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		sync: func(ctx context.Context) (Files, error) {
			f, err := a.Sync(ctx)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
		feature: a.HasFeature,
	}
}

// maxText bounds the answer to a command that prints a few lines, in bytes.
const maxText = 256 << 10

// text runs cmd and returns its standard output with LF line ends.
func (c conn) text(ctx context.Context, cmd string) (string, error) {
	r, err := c.shell(ctx, cmd)
	if err != nil {
		return "", err
	}
	if len(r.Stdout) > maxText {
		return "", fmt.Errorf("%d bytes, at most %d are read: %w", len(r.Stdout), maxText, ErrTooLarge)
	}
	return strings.ReplaceAll(string(r.Stdout), "\r\n", "\n"), nil
}

// stream runs cmd and hands its raw output to read. The stream is closed when
// ctx ends, so that read returns.
func (c conn) stream(ctx context.Context, cmd string, read func(io.Reader) error) error {
	return c.duplex(ctx, cmd, func(s io.ReadWriter) error { return read(s) })
}

// duplex runs cmd and lets talk read its output and write its input, as stream.
func (c conn) duplex(ctx context.Context, cmd string, talk func(io.ReadWriter) error) error {
	s, err := c.exec(ctx, cmd)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	err = talk(s)
	if stop() {
		s.Close()
	}
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return ctxErr
	}
	return err
}

// readBounded reads r to its end, at most limit bytes.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("more than %d bytes: %w", limit, ErrTooLarge)
	}
	return b, nil
}

// quote makes s one word for the phone's shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// maxExcerpt bounds a phone's own words inside an error, in bytes.
const maxExcerpt = 200

// excerpt returns the beginning of what a phone printed, fit for one line of a
// log.
func excerpt(out ...[]byte) string {
	s := strings.ToValidUTF8(string(bytes.TrimSpace(bytes.Join(out, []byte(" ")))), "?")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s[:min(len(s), 4*maxExcerpt)])
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxExcerpt {
		return s
	}
	cut := maxExcerpt
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// ended reports whether err only says that a context is over.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
