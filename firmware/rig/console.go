package rig

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// consoleLimit is how many lines of a console are kept; older ones are dropped.
const consoleLimit = 50_000

// Line is one line of the serial console, as it came, less the line end.
type Line struct {
	At   time.Time
	Text string
}

// console keeps what the board prints. It is the writer that QEMU's output goes to.
type console struct {
	started time.Time

	mu      sync.Mutex // guards all below
	lines   []Line
	dropped int           // lines that came before lines[0]
	rest    []byte        // the last line as long as it has no end
	grown   chan struct{} // closed, and replaced, when a line has come
	ended   bool          // no more will come
}

func newConsole() *console {
	return &console{started: time.Now(), grown: make(chan struct{})}
}

// Write takes output in pieces of any size.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, n := time.Now(), len(p)
	for {
		text, rest, ok := bytes.Cut(p, []byte("\n"))
		if !ok {
			break
		}
		line := strings.TrimRight(string(c.rest)+string(text), "\r")
		c.lines = append(c.lines, Line{now, line})
		c.rest, p = nil, rest
	}
	c.rest = append(c.rest, p...)
	if over := len(c.lines) - consoleLimit; over > 0 {
		c.lines = append([]Line(nil), c.lines[over:]...)
		c.dropped += over
	}
	c.wake()
	return n, nil
}

// end says that nothing more will come: waits end.
func (c *console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.wake()
}

// wake lets those who wait look again. c.mu is held.
func (c *console) wake() {
	close(c.grown)
	c.grown = make(chan struct{})
}

func (c *console) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped + len(c.lines)
}

// wait returns the first line, of those numbered from and up, that matches.
func (c *console) wait(ctx context.Context, from int, pattern *regexp.Regexp) (string, error) {
	for {
		c.mu.Lock()
		from = max(from, c.dropped)
		for ; from < c.dropped+len(c.lines); from++ {
			if line := c.lines[from-c.dropped]; pattern.MatchString(line.Text) {
				c.mu.Unlock()
				return line.Text, nil
			}
		}
		grown, ended := c.grown, c.ended
		c.mu.Unlock()
		if ended {
			return "", fmt.Errorf("waiting for a console line that matches %q: %w", pattern, ErrEnded)
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for a console line that matches %q: %w", pattern, context.Cause(ctx))
		}
	}
}

// after returns the lines numbered from and up, once there is one.
func (c *console) after(ctx context.Context, from int) ([]Line, error) {
	for {
		c.mu.Lock()
		if from -= c.dropped; from < 0 {
			c.mu.Unlock()
			return nil, fmt.Errorf("%d lines were dropped before they were read", -from)
		}
		if from < len(c.lines) {
			defer c.mu.Unlock()
			return append([]Line(nil), c.lines[from:]...), nil
		}
		from += c.dropped
		grown, ended := c.grown, c.ended
		c.mu.Unlock()
		if ended {
			return nil, ErrEnded
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tail returns the last n lines (all with n < 0), each with the seconds since the board was switched on.
func (c *console) tail(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%8.3f %s\n", l.At.Sub(c.started).Seconds(), l.Text)
	}
	if len(c.rest) > 0 {
		fmt.Fprintf(&out, "         %s\n", c.rest)
	}
	return out.String()
}
