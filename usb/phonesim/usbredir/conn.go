package usbredir

import (
	"bufio"
	"io"
	"sync"
)

// Conn is one usbredir connection. One goroutine may read while others write.
type Conn struct {
	r *bufio.Reader
	w io.Writer

	mu   sync.Mutex // guards what follows and keeps packets whole
	caps Capabilities
	met  bool // the other side's hello has been read
	buf  []byte
}

// NewConn returns a connection over rw. It writes nothing: the first packet of either side is Hello.
func NewConn(rw io.ReadWriter) *Conn {
	return &Conn{r: bufio.NewReaderSize(rw, 64<<10), w: rw}
}

// Read returns the next packet. The other side's first packet must be Hello, and only that.
func (c *Conn) Read() (Packet, error) {
	c.mu.Lock()
	idSize, caps, met := c.idSize(), c.caps, c.met
	c.mu.Unlock()
	p, err := readPacket(c.r, idSize, caps)
	if err != nil {
		return Packet{}, err
	}
	hello, ok := p.Body.(*Hello)
	if ok == met {
		return Packet{}, protocolError("hello must come first and once; got packet type %d", p.Body.Type())
	}
	if ok {
		c.mu.Lock()
		c.caps, c.met = hello.Capabilities&Offered, true
		c.mu.Unlock()
	}
	return p, nil
}

// Write sends one packet. Before the other side's hello has been read only Hello may be written.
func (c *Conn) Write(id uint64, body Body) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendPacket(c.buf[:0], Packet{ID: id, Body: body}, c.idSize(), c.caps)
	_, err := c.w.Write(c.buf)
	return err
}

// Capabilities tells what both sides have; nothing before the other side's hello has been read.
func (c *Conn) Capabilities() Capabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// idSize is the size of the ID in a packet's header; c.mu is held.
func (c *Conn) idSize() int {
	if c.caps&Cap64BitIDs != 0 {
		return 8
	}
	return 4
}
