package adbtest

import (
	"context"
	"fmt"

	"phonerack/usb/adb"
)

// Phone returns the phone's end of the cable as a link with the strictness of
// adbd before 2024: a header must come as one transfer of 24 bytes, a payload
// as transfers that add up to its length, with a zero-length packet exactly
// where one belongs. Breaking a rule ends the link with an adb.ErrProtocol.
func (c *Cable) Phone() adb.Link { return &gadget{c: c} }

type gadget struct {
	c    *Cable
	owed bool // the last payload filled its requests: one of 0 bytes follows
}

func (g *gadget) Properties() adb.LinkProperties {
	return adb.LinkProperties{MaxPayload: adb.MaxPayload}
}

// Close unplugs.
func (g *gadget) Close() error {
	g.c.Unplug()
	return nil
}

func (g *gadget) request(ctx context.Context) ([]byte, error) {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if len(c.out) > 0 {
			b := c.out[0]
			c.out = c.out[1:]
			c.change()
			return b, nil
		}
		if c.gone || c.closed {
			return nil, adb.ErrDisconnected
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.wait(ctx)
	}
}

// ReadPacket implements adb.Link.
func (g *gadget) ReadPacket(ctx context.Context, want adb.Expect) (adb.Packet, error) {
	head, err := g.request(ctx)
	if err != nil {
		return adb.Packet{}, err
	}
	if g.owed {
		g.owed = false
		if len(head) != 0 {
			return adb.Packet{}, fmt.Errorf("%w: no zero-length packet after a payload that needs one", adb.ErrProtocol)
		}
		if head, err = g.request(ctx); err != nil {
			return adb.Packet{}, err
		}
	}
	h, err := adb.ParseHeader(head, want.MaxPayload)
	if err != nil {
		return adb.Packet{}, err
	}
	p := adb.Packet{Command: h.Command, Arg0: h.Arg0, Arg1: h.Arg1, Check: h.Check, Payload: make([]byte, 0, h.Length)}
	for len(p.Payload) < int(h.Length) {
		b, err := g.request(ctx)
		if err != nil {
			return adb.Packet{}, err
		}
		if len(b) == 0 || len(p.Payload)+len(b) > int(h.Length) {
			return adb.Packet{}, fmt.Errorf("%w: transfer of %d bytes, %d of payload to come", adb.ErrProtocol, len(b), int(h.Length)-len(p.Payload))
		}
		p.Payload = append(p.Payload, b...)
	}
	g.owed = h.Length > 0 && h.Length%requestSize == 0
	return p, nil
}

// WritePacket implements adb.Link.
func (g *gadget) WritePacket(_ context.Context, p adb.Packet) error {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.closed {
		return adb.ErrDisconnected
	}
	c.queue(p.Header().Append(nil))
	if len(p.Payload) > 0 {
		c.queue(p.Payload)
	}
	c.change()
	return nil
}
