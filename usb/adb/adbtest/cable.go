package adbtest

import (
	"context"
	"fmt"
	"net"
	"sync"

	"phonerack/usb/adb"
)

const (
	// requestSize and requests are how adbd reads: eight queued requests of
	// 16 KiB (AOSP daemon/usb.cpp).
	requestSize = 16384
	requests    = 8
)

// Cable joins a host's bulk endpoints to a phone's.
type Cable struct {
	maxPacket int

	mu      sync.Mutex    // guards the fields below
	changed chan struct{} // closed and replaced at every change

	in       [][]byte // packets waiting for the host
	out      [][]byte // completed read requests waiting for the phone
	partial  []byte   // the request being filled
	gone     bool
	stallIn  bool
	stallOut bool
	inLeft   int // bytes until the cable is pulled; negative: never
	outLeft  int
	memory   int // largest transfer; 0: any
	reads    []int
	writes   []int
	closed   bool
}

// NewCable returns a cable for packets of maxPacket bytes.
func NewCable(maxPacket int) *Cable {
	return &Cable{maxPacket: maxPacket, changed: make(chan struct{}), inLeft: -1, outLeft: -1}
}

// change must be called with mu held.
func (c *Cable) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cable) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.change()
}

// Unplug ends everything.
func (c *Cable) Unplug() { c.set(func() { c.gone = true }) }

// UnplugAfterIn pulls the cable when n more bytes have gone to the host.
func (c *Cable) UnplugAfterIn(n int) { c.set(func() { c.inLeft = n }) }

// UnplugAfterOut pulls the cable when n more bytes have gone to the phone.
func (c *Cable) UnplugAfterOut(n int) { c.set(func() { c.outLeft = n }) }

// StallIn halts the endpoint to the host.
func (c *Cable) StallIn() { c.set(func() { c.stallIn = true }) }

// StallOut halts the endpoint to the phone.
func (c *Cable) StallOut() { c.set(func() { c.stallOut = true }) }

// LimitMemory makes transfers of more than n bytes fail with adb.ErrNoMemory.
func (c *Cable) LimitMemory(n int) { c.set(func() { c.memory = n }) }

// Queue puts a transfer of the phone's into the endpoint to the host as it is:
// stale frames, garbage, an empty one for a zero-length packet.
func (c *Cable) Queue(transfer []byte) { c.set(func() { c.queue(transfer) }) }

// queue cuts a transfer into packets. Phones send no zero-length packet after
// a multiple of the packet size.
func (c *Cable) queue(transfer []byte) {
	if len(transfer) == 0 {
		c.in = append(c.in, nil)
	}
	for len(transfer) > 0 {
		n := min(len(transfer), c.maxPacket)
		c.in = append(c.in, append([]byte(nil), transfer[:n]...))
		transfer = transfer[n:]
	}
}

// Transfers returns the sizes that the host asked for in its reads and sent in
// its writes so far.
func (c *Cable) Transfers() (reads, writes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int(nil), c.reads...), append([]int(nil), c.writes...)
}

// Host returns the host's endpoints.
func (c *Cable) Host() adb.Endpoints { return (*hostEnd)(c) }

type hostEnd Cable

func (h *hostEnd) Close() error {
	c := (*Cable)(h)
	c.set(func() { c.closed = true })
	return nil
}

func (c *Cable) hostError(stalled bool) error {
	switch {
	case c.closed:
		return fmt.Errorf("%w: %w", adb.ErrDisconnected, net.ErrClosed)
	case c.gone:
		return fmt.Errorf("%w: unplugged", adb.ErrDisconnected)
	case stalled:
		return adb.ErrStall
	}
	return nil
}

// Read implements adb.Endpoints.
func (h *hostEnd) Read(ctx context.Context, buf []byte) (int, error) {
	c := (*Cable)(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, len(buf))
	if c.memory > 0 && len(buf) > c.memory {
		return 0, adb.ErrNoMemory
	}
	n := 0
	for {
		if err := c.hostError(c.stallIn); err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if len(c.in) == 0 {
			c.wait(ctx)
			continue
		}
		packet := c.in[0]
		if c.inLeft >= 0 && len(packet) > c.inLeft {
			n += copy(buf[n:], packet[:c.inLeft])
			c.gone = true
			c.change()
			continue
		}
		c.in = c.in[1:]
		if len(packet) > len(buf)-n {
			return n, adb.ErrOverflow
		}
		n += copy(buf[n:], packet)
		if c.inLeft >= 0 {
			c.inLeft -= len(packet)
		}
		c.change()
		if len(packet) < c.maxPacket || n == len(buf) {
			return n, nil
		}
	}
}

// Write implements adb.Endpoints.
func (h *hostEnd) Write(ctx context.Context, buf []byte) (int, error) {
	c := (*Cable)(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, len(buf))
	if c.memory > 0 && len(buf) > c.memory {
		return 0, adb.ErrNoMemory
	}
	n := 0
	for {
		if err := c.hostError(c.stallOut); err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if len(c.out) == requests {
			c.wait(ctx)
			continue
		}
		packet := buf[n:min(len(buf), n+c.maxPacket)]
		if c.outLeft >= 0 && len(packet) > c.outLeft {
			n += c.outLeft
			c.gone = true
			c.change()
			continue
		}
		if c.outLeft >= 0 {
			c.outLeft -= len(packet)
		}
		n += len(packet)
		c.partial = append(c.partial, packet...)
		if len(packet) < c.maxPacket || len(c.partial) == requestSize {
			c.out = append(c.out, c.partial)
			c.partial = nil
		}
		c.change()
		if n == len(buf) {
			return n, nil
		}
	}
}

// wait gives mu up until something changes or ctx ends.
func (c *Cable) wait(ctx context.Context) {
	changed := c.changed
	c.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	c.mu.Lock()
}
