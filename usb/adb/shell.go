package adb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Result is what a command left behind.
type Result struct {
	Stdout []byte
	Stderr []byte // empty on phones without shell_v2, which merge it into Stdout
	// ExitCode is the command's, 0 to 255; the shell gives 128 plus the signal
	// number for a command that a signal ended.
	ExitCode int
}

// Stdio connects a command. Nil writers discard, a nil reader is an empty
// input.
type Stdio struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ErrNoExitCode: a command's stream ended without an exit code: the phone's
// shell was killed, or adbd closed it. Whether the command ran to its end is
// unknown.
var ErrNoExitCode = errors.New("adb: the command ended without an exit code")

// Shell runs a command in the phone's shell and collects its output, at most
// Options.ShellOutput bytes (ErrTooLarge beyond). An exit code other than 0 is
// not an error. It blocks until the command ends or ctx does; then the command
// is cut off, but what it did before may have happened.
func (c *Conn) Shell(ctx context.Context, cmd string) (Result, error) {
	limit := &outputLimit{left: c.o.ShellOutput}
	stdout, stderr := limitedBuffer{limit: limit}, limitedBuffer{limit: limit}
	code, err := c.StartShell(ctx, cmd, Stdio{Stdout: &stdout, Stderr: &stderr})
	return Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: code}, err
}

// StartShell runs a command in the phone's shell and connects its input and
// output while it runs. It blocks until the command ends, ctx does, or a writer
// fails. An exit code other than 0 is not an error.
//
// Stdin's end is passed on. A Read of Stdin that still waits when the command
// ends is not waited for; what it yields is lost.
//
// Phones without shell_v2 (before Android 7, and some recoveries) merge stderr
// into stdout, and give their exit code through a line that is taken out of the
// output again; they cannot be given an input's end, so Stdin is refused with
// ErrUnsupported there.
func (c *Conn) StartShell(ctx context.Context, cmd string, stdio Stdio) (exitCode int, err error) {
	if cmd == "" {
		return 0, errors.New("adb: empty command")
	}
	if err := checkCommand(cmd); err != nil {
		return 0, err
	}
	if stdio.Stdout == nil {
		stdio.Stdout = io.Discard
	}
	if stdio.Stderr == nil {
		stdio.Stderr = io.Discard
	}
	run := c.shell1
	if c.HasFeature(FeatureShell2) {
		run = c.shell2
	}
	exitCode, err = run(ctx, cmd, stdio)
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("adb: running a command: %w", cause)
	}
	return exitCode, err
}

// checkCommand refuses what a phone's shell, which ends a command at a NUL,
// would run a part of.
func checkCommand(cmd string) error {
	if strings.IndexByte(cmd, 0) >= 0 {
		return errors.New("adb: the command holds a NUL byte")
	}
	return nil
}

// shell2 speaks the shell protocol.
func (c *Conn) shell2(ctx context.Context, cmd string, stdio Stdio) (int, error) {
	s, err := c.Open(ctx, "shell,v2,raw:"+cmd)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()

	input := make(chan error, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := sendInput(s, stdio.Stdin, c.sendMax); err != nil {
			input <- err
			_ = s.Close()
		}
	})
	code, err := receiveOutput(s, stdio.Stdout, stdio.Stderr)
	_ = s.Close()
	if stdio.Stdin == nil {
		wait.Wait()
	}
	select {
	case inputErr := <-input:
		if err != nil {
			return 0, inputErr
		}
	default:
	}
	return code, err
}

// sendInput copies stdin to the command and then closes the command's input. A
// command that has ended is no error; a failing stdin is.
func sendInput(w io.Writer, stdin io.Reader, most int) error {
	if stdin != nil {
		buf := make([]byte, min(most, 32<<10))
		for {
			n, err := stdin.Read(buf[shellHeader:])
			if n > 0 {
				putShellHeader(buf, shellStdin, n)
				if _, err := w.Write(buf[:shellHeader+n]); err != nil {
					return nil
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("adb: reading the command's input: %w", err)
			}
		}
	}
	var end [shellHeader]byte
	putShellHeader(end[:], shellCloseStdin, 0)
	_, _ = w.Write(end[:])
	return nil
}

// receiveOutput copies the command's output until its exit code comes.
func receiveOutput(r io.Reader, stdout, stderr io.Writer) (int, error) {
	packets := newShellReader(r)
	for {
		id, data, err := packets.next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, ErrNoExitCode
		case err != nil:
			return 0, err
		}
		switch id {
		case shellStdout:
			_, err = stdout.Write(data)
		case shellStderr:
			_, err = stderr.Write(data)
		case shellExit:
			return int(data[0]), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// outputLimit is shared by the outputs of one command.
type outputLimit struct{ left int }

type limitedBuffer struct {
	bytes.Buffer
	limit *outputLimit
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > b.limit.left {
		return 0, fmt.Errorf("%w: output of a command", ErrTooLarge)
	}
	b.limit.left -= len(p)
	return b.Buffer.Write(p)
}
