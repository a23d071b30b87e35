package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestFrameEndsAtTheMarkerAlone(t *testing.T) {
	const marker = "rig-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for name, output := range map[string]string{
		"nothing":             "",
		"no line end":         "output",
		"lines":               "one\ntwo\n",
		"binary":              "\x00\xff\n\x00",
		"beginning of marker": marker[:len(marker)-1] + "\n" + marker[:8],
		"large":               strings.Repeat("0123456789abcdef\n", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			frame := output + marker + " 42\n"
			for _, r := range []io.Reader{
				strings.NewReader(frame),
				iotest.OneByteReader(strings.NewReader(frame)),
				iotest.DataErrReader(strings.NewReader(frame)),
			} {
				var got bytes.Buffer
				exit, sinkErr, err := readFrame(r, marker, &got)
				if exit != 42 || sinkErr != nil || err != nil {
					t.Fatalf("%d, %v, %v", exit, sinkErr, err)
				}
				if got.String() != output {
					t.Fatalf("%d bytes of output, want %d", got.Len(), len(output))
				}
			}
		})
	}
}

func TestFrameErrors(t *testing.T) {
	for name, stream := range map[string]string{
		"ends early":            "output",
		"ends before exit code": "outputM",
		"no exit code":          "M x\n",
		"more behind the end":   "M 0\nrest",
	} {
		t.Run(name, func(t *testing.T) {
			if exit, _, err := readFrame(strings.NewReader(stream), "M", io.Discard); err == nil {
				t.Errorf("exit code %d", exit)
			}
		})
	}
	full := errors.New("disk full")
	exit, sinkErr, err := readFrame(strings.NewReader("outputM 3\n"), "M", failingWriter{full})
	if exit != 3 || sinkErr != full || err != nil {
		t.Errorf("a full disk must not end the reading: %d, %v, %v", exit, sinkErr, err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// guest plays the shell of guest/channel on conn: it hands each request to run, which returns output and exit code.
func guest(conn net.Conn, run func(command, stdin string) (string, int)) {
	requests := bufio.NewReader(conn)
	for {
		var marker, encoded string
		var length int
		if _, err := fmt.Fscanf(requests, "%s %d %s\n", &marker, &length, &encoded); err != nil {
			return
		}
		stdin := make([]byte, length)
		if _, err := io.ReadFull(requests, stdin); err != nil {
			return
		}
		command, _ := base64.StdEncoding.DecodeString(encoded)
		output, exit := run(string(command), string(stdin))
		fmt.Fprintf(conn, "%s%s %d\n", output, marker, exit)
	}
}

func TestCommandsFollowEachOther(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go guest(theirs, func(command, stdin string) (string, int) { return command + "|" + stdin, len(stdin) })
	c := &channel{conn: ours}
	for _, stdin := range []string{"", "input\n\x00"} {
		var out bytes.Buffer
		exit, err := c.run(t.Context(), "echo 'a\nb'", []byte(stdin), &out)
		if err != nil || exit != len(stdin) || out.String() != "echo 'a\nb'|"+stdin {
			t.Errorf("%q, %d, %v", out.String(), exit, err)
		}
	}
}

func TestCommandIsKilledWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		killed := make(chan struct{}, 1)
		go guest(theirs, func(command, _ string) (string, int) {
			if command == "sleep" {
				<-killed
				return "", 137
			}
			return command, 0
		})
		c := &channel{conn: ours, interrupt: func(context.Context) error {
			killed <- struct{}{}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.run(ctx, "sleep", nil, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		var out bytes.Buffer
		if _, err := c.run(t.Context(), "next", nil, &out); err != nil || out.String() != "next" {
			t.Errorf("the shell is no longer in step: %q, %v", out.String(), err)
		}
	})
}

func TestShellThatCannotBeInterruptedIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go io.Copy(io.Discard, theirs)
		c := &channel{conn: ours, interrupt: func(context.Context) error { return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := c.run(ctx, "sleep", nil, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took > interruptLimit+10*time.Second {
			t.Errorf("took %v", took)
		}
		if _, err := c.run(t.Context(), "next", nil, io.Discard); err == nil {
			t.Error("a shell that is out of step was used again")
		}
	})
}

func TestConsoleWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole()
		go func() {
			for _, piece := range []string{"one\r\ntw", "o\nthree", "\n"} {
				time.Sleep(time.Second)
				c.Write([]byte(piece))
			}
			time.Sleep(time.Second)
			c.end()
		}()
		wait := func(from int, pattern string, limit time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return c.wait(ctx, from, regexp.MustCompile(pattern))
		}
		if line, err := wait(0, "^two$", time.Minute); line != "two" || err != nil {
			t.Errorf("a line in two pieces: %q, %v", line, err)
		}
		if line, err := wait(0, "^one$", 0); line != "one" || err != nil {
			t.Errorf("a line that is there, without carriage return: %q, %v", line, err)
		}
		if _, err := wait(0, "^three$", 500*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "^three$") {
			t.Errorf("a line that is not complete: %v", err)
		}
		if _, err := wait(1, "^one$", time.Minute); !errors.Is(err, ErrEnded) {
			t.Errorf("a line before those asked for: %v", err)
		}
		if got := c.tail(2); !strings.Contains(got, "3.000 three\n") || strings.Contains(got, "one") {
			t.Errorf("the last two lines: %q", got)
		}
	})
}

func TestConsoleForgetsItsBeginning(t *testing.T) {
	c := newConsole()
	c.Write([]byte("first\n"))
	c.Write(bytes.Repeat([]byte("x\n"), consoleLimit-1))
	c.Write([]byte("last\n"))
	if n := c.count(); n != consoleLimit+1 {
		t.Errorf("%d lines", n)
	}
	if strings.Contains(c.tail(-1), "first") {
		t.Error("the first line is still there")
	}
	if line, err := c.wait(t.Context(), consoleLimit, regexp.MustCompile(".")); line != "last" || err != nil {
		t.Errorf("lines keep their numbers: %q, %v", line, err)
	}
}
