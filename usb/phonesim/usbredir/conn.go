package usbredir

import (
	"bufio"
	"io"
	"sync"
	"sync/atomic"
)

// Conn is one usbredir connection. One goroutine may read while others write.
type Conn struct {
	r    *bufio.Reader
	met  bool          // the other side's hello has been read; for Read only
	caps atomic.Uint32 // what both sides have: Capabilities, none before that hello

	mu  sync.Mutex // keeps written packets whole and guards what follows
	w   io.Writer
	buf []byte
}

// NewConn returns a connection over rw. It writes nothing: the first packet of either side is Hello.
func NewConn(rw io.ReadWriter) *Conn {
	return &Conn{r: bufio.NewReaderSize(rw, 64<<10), w: rw}
}

// Read returns the next packet. The other side's first packet must be Hello, and only that.
func (c *Conn) Read() (Packet, error) {
	caps := c.Capabilities()
	p, err := readPacket(c.r, idSize(caps), caps)
	if err != nil {
		return Packet{}, err
	}
	hello, ok := p.Body.(*Hello)
	if ok == c.met {
		return Packet{}, protocolError("hello must come first and once; got packet type %d", p.Body.Type())
	}
	if ok {
		c.met = true
		c.caps.Store(uint32(hello.Capabilities & Offered))
	}
	return p, nil
}

// Write sends one packet. Before the other side's hello has been read only Hello may be written.
func (c *Conn) Write(id uint64, body Body) error {
	caps := c.Capabilities()
	if body.Type() == TypeHello {
		caps = 0 // whoever reads it does not know ours yet
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendPacket(c.buf[:0], Packet{ID: id, Body: body}, idSize(caps), caps)
	_, err := c.w.Write(c.buf)
	return err
}

// Capabilities tells what both sides have; nothing before the other side's hello has been read.
func (c *Conn) Capabilities() Capabilities { return Capabilities(c.caps.Load()) }

// idSize is the size of the ID in a packet's header in bytes.
func idSize(caps Capabilities) int {
	if caps&Cap64BitIDs != 0 {
		return 8
	}
	return 4
}
