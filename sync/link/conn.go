package link

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/gorilla/websocket"

	"phonerack/sync/wire"
)

// Bounds of a connection's bytes.
const (
	writeStall = 10 * time.Second // longest time in which not one more chunk goes out
	writeChunk = 16 << 10
	maxPacket  = wire.MaxFrame + 1024 // bytes that an MQTT packet may announce
)

var (
	errPacket = errors.New("the broker sends a packet larger than any frame")
	errSuback = errors.New("the broker answers for filters that nobody has asked for")
)

// subackLength is that of an answer for the one filter of a link: packet id and
// one code. The MQTT client panics at an answer with more codes than filters.
const subackLength = 3

// errHungUp stands for the runtime's own error of a closed connection: the MQTT
// client knows that one by its words and would go on as if nothing had happened.
var errHungUp = errors.New("hung up")

// guardedConn is the stream under the MQTT client. Each chunk that is written has
// a deadline of its own, so that keep-alive, which the client writes past its own
// time limit (paho #723), cannot hang behind a dead link, and a slow one that
// still moves is not cut. What is read is followed packet by packet: the client
// would set aside whatever size a broker announces, up to 256 MiB.
type guardedConn struct {
	net.Conn
	whole     bool          // a packet is not cut: each write is a message of a websocket
	published chan struct{} // one for each PUBLISH that was written, or was not; room for one
	writing   chan struct{} // held by who writes: one packet after the other; room for one
	guard     packetGuard
}

func (c *guardedConn) Write(p []byte) (n int, err error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	if len(p) > 0 && p[0]>>4 == packets.Publish {
		defer func() {
			select {
			case c.published <- struct{}{}:
			default:
			}
		}()
	}
	chunk, stall := writeChunk, writeStall
	if c.whole {
		chunk, stall = len(p), writeStall*time.Duration(1+len(p)/(128<<10))
	}
	for len(p) > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return n, hungUp(err)
		}
		m, err := c.Conn.Write(p[:min(len(p), chunk)])
		n += m
		if err != nil {
			c.Close() // half a packet is out: nothing that follows could be understood
			return n, hungUp(err)
		}
		p = p[m:]
	}
	return n, nil
}

// SetWriteDeadline does nothing: Write has its own, and a websocket's must not be
// set while another goroutine writes.
func (c *guardedConn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is for what is read.
func (c *guardedConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if e := c.guard.follow(p[:n]); e != nil {
		c.Close()
		return 0, e
	}
	return n, hungUp(err)
}

func hungUp(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return errHungUp
	}
	return err
}

// packetGuard reads the fixed headers of a stream of MQTT packets.
type packetGuard struct {
	kind   byte
	body   int // bytes of the packet that are still to come
	length int // the length as far as it was read
	shift  int // 0: the next byte is a packet's first
}

func (g *packetGuard) follow(p []byte) error {
	for len(p) > 0 {
		if g.body > 0 {
			n := min(g.body, len(p))
			g.body -= n
			p = p[n:]
			continue
		}
		b := p[0]
		p = p[1:]
		if g.shift == 0 {
			g.kind, g.shift, g.length = b>>4, 1, 0
			continue
		}
		g.length |= int(b&0x7f) << (7 * (g.shift - 1))
		if g.length > maxPacket || g.shift > 4 {
			return fmt.Errorf("%w: %d bytes or more", errPacket, g.length)
		}
		g.shift++
		if b&0x80 == 0 {
			if g.kind == packets.Suback && g.length != subackLength {
				return errSuback
			}
			g.body, g.shift = g.length, 0
		}
	}
	return nil
}

// websocketConn makes a stream of a websocket's binary messages.
type websocketConn struct {
	*websocket.Conn
	message io.Reader // that is being read
}

func (c *websocketConn) Write(p []byte) (int, error) {
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *websocketConn) Read(p []byte) (int, error) {
	for {
		if c.message == nil {
			kind, message, err := c.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("the broker sends text where MQTT is binary")
			}
			c.message = message
		}
		n, err := c.message.Read(p)
		if errors.Is(err, io.EOF) {
			c.message, err = nil, nil
			if n == 0 {
				continue
			}
		}
		return n, err
	}
}

func (c *websocketConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
