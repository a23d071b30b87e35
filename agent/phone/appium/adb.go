package appium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

// Stream is a service on the phone that carries bytes both ways.
type Stream interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// ADB is what this package uses of an ADB connection; *adb.Conn implements
// ADB[*adb.Stream]. S is the stream type and is inferred by [New].
type ADB[S Stream] interface {
	// Shell runs cmd and returns what it printed and its exit code.
	Shell(ctx context.Context, cmd string) (adb.Result, error)
	// StartShell runs cmd until it ends or ctx does.
	StartShell(ctx context.Context, cmd string, stdio adb.Stdio) (int, error)
	// Exec runs cmd with its raw input and output.
	Exec(ctx context.Context, cmd string) (S, error)
	// Open opens a service such as "tcp:6790".
	Open(ctx context.Context, service string) (S, error)
}

// conn is an ADB connection without its type parameter.
type conn struct {
	shell func(ctx context.Context, cmd string) (adb.Result, error)
	start func(ctx context.Context, cmd string, stdio adb.Stdio) (int, error)
	exec  func(ctx context.Context, cmd string) (Stream, error)
	open  func(ctx context.Context, service string) (Stream, error)
}

func connOf[S Stream](a ADB[S]) conn {
	stream := func(s S, err error) (Stream, error) {
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return conn{
		shell: a.Shell,
		start: a.StartShell,
		exec:  func(ctx context.Context, cmd string) (Stream, error) { return stream(a.Exec(ctx, cmd)) },
		open:  func(ctx context.Context, service string) (Stream, error) { return stream(a.Open(ctx, service)) },
	}
}

// Time allowed for one command, on top of what it lasts by itself.
const commandTimeout = 10 * time.Second

// maxText bounds the answer to a command that prints a few lines, in bytes.
const maxText = 1 << 20

// read runs a command that changes nothing and returns what it printed, with LF
// line ends.
func (c conn) read(ctx context.Context, cmd string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	r, err := c.shell(ctx, cmd)
	if err != nil {
		return "", err
	}
	if len(r.Stdout) > maxText {
		return "", fmt.Errorf("%d bytes: %w", len(r.Stdout), phone.ErrTooLarge)
	}
	return strings.ReplaceAll(string(r.Stdout), "\r\n", "\n"), nil
}

// ask asks the fence; nothing may come between it and the write.
func ask(ctx context.Context, f phone.Fence) error {
	if f == nil {
		return phone.ErrNoFence
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.Check()
}

// write asks the fence and sends cmd once. A phone that refuses to open the
// service has not run it; after any other failure it may have.
func (c conn) write(ctx context.Context, f phone.Fence, cmd string) (adb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := ask(ctx, f); err != nil {
		return adb.Result{}, err
	}
	return c.send(ctx, cmd)
}

// send sends cmd once and looks for a complaint.
func (c conn) send(ctx context.Context, cmd string) (adb.Result, error) {
	r, err := c.once(ctx, cmd)
	if err == nil {
		err = complaint(r)
	}
	return r, err
}

// once sends cmd, which is a write.
func (c conn) once(ctx context.Context, cmd string) (adb.Result, error) {
	r, err := c.shell(ctx, cmd)
	switch {
	case errors.Is(err, adb.ErrRefused):
		return adb.Result{}, fmt.Errorf("%w: %w", phone.ErrRejected, err)
	case err != nil:
		return adb.Result{}, fmt.Errorf("%w: %w", phone.ErrUnknownOutcome, err)
	}
	return r, nil
}

// complaint finds what commands print with exit code 0 when they may not do
// what was asked.
func complaint(r adb.Result) error {
	said := said(r)
	switch {
	case needsSetting(said):
		return phone.ErrDeviceSetup
	case strings.Contains(said, "SecurityException"):
		return fmt.Errorf("not permitted, %s: %w", excerpt(said), phone.ErrRejected)
	}
	return nil
}

// needsSetting reports whether the phone's settings keep the shell from what was
// asked.
func needsSetting(said string) bool {
	return strings.Contains(said, "INJECT_EVENTS") || strings.Contains(said, "WRITE_SECURE_SETTINGS")
}

// said is all that a command printed.
func said(r adb.Result) string {
	return string(bytes.TrimSpace(bytes.Join([][]byte{r.Stdout, r.Stderr}, []byte("\n"))))
}

// quote makes s one word for the phone's shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// maxExcerpt bounds a phone's own words inside an error, in bytes.
const maxExcerpt = 200

// excerpt returns the beginning of what a phone said, quoted for one line.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > maxExcerpt {
		s = strings.ToValidUTF8(s[:maxExcerpt], "") + "..."
	}
	return strconv.Quote(s)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll asks until done or an error, every interval for at most limit. It
// reports false if the time was up.
func poll(ctx context.Context, interval, limit time.Duration, ask func(context.Context) (bool, error)) (bool, error) {
	for start := time.Now(); ; {
		done, err := ask(ctx)
		if done || err != nil {
			return done, err
		}
		if time.Since(start) >= limit {
			return false, nil
		}
		if err := pause(ctx, interval); err != nil {
			return false, err
		}
	}
}

// tcpStream is a stream to a port of the phone, as net/http wants it.
type tcpStream struct{ Stream }

func (tcpStream) LocalAddr() net.Addr  { return phoneAddr{} }
func (tcpStream) RemoteAddr() net.Addr { return phoneAddr{} }

type phoneAddr struct{}

func (phoneAddr) Network() string { return "adb" }
func (phoneAddr) String() string  { return "phone" }
