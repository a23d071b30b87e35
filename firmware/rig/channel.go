package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// channel is a shell in the guest that runs one command at a time; guest/channel is its other end.
type channel struct {
	name string // of the virtio port
	conn net.Conn
	// interrupt ends the command that runs on this channel; nil on the channel that carries the interrupts.
	interrupt func(ctx context.Context) error
	broken    error // why the channel can no longer be used
}

// Times that a channel allows for a command to be ended.
const (
	interruptEvery = time.Second
	interruptLimit = 30 * time.Second
)

// newMarker returns a word that no output holds by chance or by guess.
func newMarker() string { return "rig-" + rand.Text() }

// run sends a command and copies what it writes to stdout until its end. When ctx ends first, the command is killed and
// the channel stays usable; if the guest does not answer to that either, the channel is broken.
func (c *channel) run(ctx context.Context, command string, stdin []byte, stdout io.Writer) (exit int, err error) {
	if c.broken != nil {
		return 0, c.broken
	}
	marker := newMarker()
	ended := make(chan struct{})
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		c.watch(ctx, ended)
	}()
	request := fmt.Sprintf("%s %d %s\n", marker, len(stdin), base64.StdEncoding.EncodeToString([]byte(command)))
	_, err = c.conn.Write(append([]byte(request), stdin...))
	var sinkErr error
	if err == nil {
		exit, sinkErr, err = readFrame(c.conn, marker, stdout)
	}
	close(ended)
	<-interrupted
	if err != nil {
		c.broken = fmt.Errorf("guest shell %s: %w", c.name, err)
		c.conn.Close()
	}
	switch {
	case ctx.Err() != nil:
		return exit, context.Cause(ctx)
	case c.broken != nil:
		return exit, c.broken
	}
	return exit, sinkErr
}

// watch ends the running command when ctx ends, and gives up on the guest when that has no effect.
func (c *channel) watch(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	limit := time.Now().Add(interruptLimit)
	c.conn.SetReadDeadline(limit)
	c.conn.SetWriteDeadline(limit)
	defer c.conn.SetDeadline(time.Time{})
	if c.interrupt == nil {
		c.conn.SetReadDeadline(time.Now())
	}
	for c.interrupt != nil {
		// The limit is on this attempt alone: ctx has ended already.
		attempt, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
		err := c.interrupt(attempt)
		cancel()
		if err != nil {
			c.conn.SetReadDeadline(time.Now())
			break
		}
		select {
		case <-ended:
			return
		case <-time.After(interruptEvery):
		}
	}
	<-ended
}

// readFrame copies from r to stdout until the line "marker exit-code". An error of stdout does not end the reading, so
// that the channel stays in step; it comes back as sinkErr.
func readFrame(r io.Reader, marker string, stdout io.Writer) (exit int, sinkErr, err error) {
	var held []byte // not yet given to stdout: may be the beginning of the frame's last line
	give := func(p []byte) {
		if sinkErr == nil && len(p) > 0 {
			_, sinkErr = stdout.Write(p)
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		held = append(held, buf[:n]...)
		if at := bytes.Index(held, []byte(marker)); at >= 0 {
			if code, rest, ok := bytes.Cut(held[at+len(marker):], []byte("\n")); ok {
				give(held[:at])
				if len(rest) > 0 {
					return 0, sinkErr, errors.New("output after the end of a command: a program was left running with its output here")
				}
				exit, err := strconv.Atoi(string(bytes.TrimSpace(code)))
				return exit, sinkErr, err
			}
		} else if keep := len(marker) - 1; len(held) > keep {
			give(held[:len(held)-keep])
			held = append(held[:0], held[len(held)-keep:]...)
		}
		if err != nil {
			return 0, sinkErr, err
		}
	}
}
