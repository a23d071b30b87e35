package adb_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

func shellPacket(id byte, data string) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{id}, uint32(len(data)))
	return append(b, data...)
}

// serveShell2 runs f as every command of a phone with shell_v2.
func serveShell2(f func(cmd string, s *adbtest.Service)) *adbtest.Phone {
	return &adbtest.Phone{Features: []string{"shell_v2", "cmd"}, Serve: func(service string, s *adbtest.Service) error {
		cmd, ok := strings.CutPrefix(service, "shell,v2,raw:")
		if !ok {
			return adbtest.ErrRefuse
		}
		f(cmd, s)
		return nil
	}}
}

func TestShell2(t *testing.T) {
	c := phone(t, serveShell2(func(cmd string, s *adbtest.Service) {
		wire := append(shellPacket(1, "out"), shellPacket(2, "err")...)
		wire = append(wire, shellPacket(1, "")...)
		wire = append(wire, shellPacket(1, strings.Repeat("x", 100_000)+cmd)...)
		wire = append(wire, shellPacket(3, "\x2a")...)
		for _, b := range wire[:20] { // packets are cut anywhere
			_, _ = s.Write([]byte{b})
		}
		_, _ = s.Write(wire[20:])
	}), adb.Options{})
	got, err := c.Shell(within(t), "it's")
	if err != nil || got.ExitCode != 42 || string(got.Stderr) != "err" || string(got.Stdout) != "out"+strings.Repeat("x", 100_000)+"it's" {
		t.Errorf("%d, %q, %d bytes, %v", got.ExitCode, got.Stderr, len(got.Stdout), err)
	}
}

func TestShellGivesEveryExitCode(t *testing.T) {
	c := phone(t, serveShell2(func(cmd string, s *adbtest.Service) {
		code, _ := strconv.Atoi(cmd)
		_, _ = s.Write(shellPacket(3, string([]byte{byte(code)})))
	}), adb.Options{})
	for _, code := range []int{0, 1, 127, 128 + 9, 255} {
		if got, err := c.Shell(within(t), strconv.Itoa(code)); err != nil || got.ExitCode != code {
			t.Errorf("%d: got %d, %v", code, got.ExitCode, err)
		}
	}
}

func TestStartShellPassesInputAndItsEnd(t *testing.T) {
	c := phoneUSB(t, serveShell2(func(_ string, s *adbtest.Service) {
		for {
			var head [5]byte
			if _, err := io.ReadFull(s, head[:]); err != nil {
				return
			}
			data := make([]byte, binary.LittleEndian.Uint32(head[1:]))
			_, _ = io.ReadFull(s, data)
			switch head[0] {
			case 0:
				_, _ = s.Write(shellPacket(1, string(data)))
			case 4:
				_, _ = s.Write(shellPacket(3, "\x00"))
				return
			}
		}
	}), 64, adb.Options{})
	var out strings.Builder
	input := strings.Repeat("0123456789", 20_000)
	code, err := c.StartShell(within(t), "cat", adb.Stdio{Stdin: strings.NewReader(input), Stdout: &out})
	if err != nil || code != 0 || out.String() != input {
		t.Errorf("%d, %d bytes, %v", code, out.Len(), err)
	}
	code, err = c.StartShell(within(t), "cat", adb.Stdio{})
	if err != nil || code != 0 {
		t.Errorf("without input: %d, %v", code, err)
	}
	broken := errors.New("disk on fire")
	if _, err = c.StartShell(within(t), "cat", adb.Stdio{Stdin: failingReader{broken}}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err = c.StartShell(within(t), "cat", adb.Stdio{Stdin: strings.NewReader("x"), Stdout: failingWriter{broken}}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestShellErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		send []byte
		want error
	}{
		{"no exit code", shellPacket(1, "out"), adb.ErrNoExitCode},
		{"nothing", nil, adb.ErrNoExitCode},
		{"cut in a header", []byte{1, 5}, io.ErrUnexpectedEOF},
		{"cut in data", shellPacket(1, "out")[:6], io.ErrUnexpectedEOF},
		{"bad kind", shellPacket(9, "x"), adb.ErrProtocol},
		{"bad exit", shellPacket(3, "xx"), adb.ErrProtocol},
		{"too much", shellPacket(2, strings.Repeat("x", 2000)), adb.ErrTooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := phone(t, serveShell2(func(_ string, s *adbtest.Service) { _, _ = s.Write(test.send) }), adb.Options{ShellOutput: 1000})
			if _, err := c.Shell(within(t), "x"); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestShellEndsWithItsContext(t *testing.T) {
	for _, features := range [][]string{{"shell_v2"}, nil} {
		dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
			p.Accept(features...)
			id := p.Expect(adb.CommandOpen).Arg0
			p.Send(adb.CommandOkay, 7, id)
			p.UntilClosed()
		}, func(t *testing.T, c *adb.Conn) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Shell(ctx, "sleep 100"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if _, err := c.Shell(t.Context(), ""); err == nil {
				t.Error("empty command accepted")
			}
			if _, err := c.Shell(t.Context(), "rm /a\x00b"); err == nil || !strings.Contains(err.Error(), "NUL") {
				t.Errorf("a command with a NUL: %v", err)
			}
			if _, err := c.Exec(t.Context(), "rm /a\x00b"); err == nil || !strings.Contains(err.Error(), "NUL") {
				t.Errorf("a raw command with a NUL: %v", err)
			}
		})
	}
}

// localShell is a phone without shell_v2 that runs commands in this machine's
// shell, with the CR LF of a terminal if crlf is set.
func localShell(t *testing.T, crlf bool) *adbtest.Phone {
	return &adbtest.Phone{Serve: func(service string, s *adbtest.Service) error {
		line, ok := strings.CutPrefix(service, "shell:")
		if !ok {
			return adbtest.ErrRefuse
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Logf("sh: %v", err)
		}
		text := string(out)
		if crlf {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		_, _ = io.WriteString(s, text)
		return nil
	}}
}

func TestShell1(t *testing.T) {
	for _, crlf := range []bool{false, true} {
		c := phone(t, localShell(t, crlf), adb.Options{})
		for _, test := range []struct {
			cmd, out string
			code     int
		}{
			{"echo hello", "hello\n", 0},
			{"printf nothing", "nothing", 0},
			{"true", "", 0},
			{"exit 3", "", 3},
			{"echo it\\'s; (exit 200)", "it's\n", 200},
			{"echo 'single quotes' # and a comment", "single quotes\n", 0},
			{"echo error >&2; false", "error\n", 1},
			{"echo trailing \\", "", 0},
			{"echo exit-:0; echo", "exit-:0\n\n", 0},
			{"seq 20000", "", 0},
		} {
			got, err := c.Shell(within(t), test.cmd)
			if crlf {
				test.out = strings.ReplaceAll(test.out, "\n", "\r\n")
			}
			if err != nil || got.ExitCode != test.code || test.out != "" && string(got.Stdout) != test.out {
				t.Errorf("%s: %q, %d, %v", test.cmd, got.Stdout, got.ExitCode, err)
			}
		}
		// An unclosed quote is the inner shell's error, and has an exit code.
		if got, err := c.Shell(within(t), "echo 'open"); err != nil || got.ExitCode == 0 {
			t.Errorf("%d, %v", got.ExitCode, err)
		}
		if _, err := c.StartShell(within(t), "cat", adb.Stdio{Stdin: strings.NewReader("x")}); !errors.Is(err, adb.ErrUnsupported) {
			t.Errorf("input: %v", err)
		}
	}
}

func TestShell1WithoutMarker(t *testing.T) {
	for _, text := range []string{"", "out", "exit-AAAA:0\n", strings.Repeat("y\n", 50_000)} {
		p := &adbtest.Phone{Serve: func(_ string, s *adbtest.Service) error {
			_, _ = io.WriteString(s, text)
			return nil
		}}
		got, err := phone(t, p, adb.Options{}).Shell(within(t), "x")
		if !errors.Is(err, adb.ErrNoExitCode) || string(got.Stdout) != text {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestExec(t *testing.T) {
	p := &adbtest.Phone{Serve: func(service string, s *adbtest.Service) error {
		_, _ = fmt.Fprintf(s, "%s\x00\r\n", service)
		return nil
	}}
	s, err := phone(t, p, adb.Options{}).Exec(within(t), "screencap")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := io.ReadAll(s); err != nil || string(got) != "exec:screencap\x00\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A Stdin that never yields does not keep StartShell from returning.
func TestStartShellDoesNotWaitForInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Accept("shell_v2")
			id := p.ExpectOpen("shell,v2,raw:true")
			p.Send(adb.CommandOkay, 7, id)
			p.SendData(adb.CommandWrite, 7, id, shellPacket(3, "\x05"))
			p.UntilClosed()
		})
		c := connectSlowly(t, link, adb.Options{})
		defer c.Close()
		r, w := io.Pipe()
		defer w.Close()
		if code, err := c.StartShell(t.Context(), "true", adb.Stdio{Stdin: r}); err != nil || code != 5 {
			t.Errorf("%d, %v", code, err)
		}
	})
}
