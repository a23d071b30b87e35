package adb

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBacklog     = 16 // connections of a phone that nobody has accepted yet
	maxReverseText = 512
	killTimeout    = 2 * time.Second
)

// A ReverseListener gets the connections that programs on the phone make to a
// port of the phone itself. It implements net.Listener, so that an HTTP server
// can serve them. What connects is the phone: as untrusted as anything from it.
type ReverseListener struct {
	conn *Conn
	port int    // on the phone
	name string // of the service that the phone opens here

	waiting chan *Stream  // never closed
	closed  chan struct{} // closed by Close
	once    sync.Once
}

// Reverse has the phone listen on a TCP port of its loopback; 0 lets the phone
// choose, from Android 8 on. A port that something on the phone listens on is
// ErrRefused. The listener ends with Close or with the connection. ctx bounds
// the call.
func (c *Conn) Reverse(ctx context.Context, port int) (*ReverseListener, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("adb: reverse: %d is no port", port)
	}
	l := &ReverseListener{conn: c, port: port, waiting: make(chan *Stream, maxBacklog), closed: make(chan struct{})}
	// The phone asks for a service by the name that it is given here. It is
	// registered first: a program on the phone may be waiting for the port.
	c.mu.Lock()
	for {
		c.lastReverse++
		l.name = fmt.Sprintf("tcp:%d", c.lastReverse)
		if c.reverse[l.name] == nil {
			break
		}
	}
	if c.reverse == nil {
		c.reverse = map[string]*ReverseListener{}
	}
	c.reverse[l.name] = l
	c.mu.Unlock()
	chosen, err := c.forward(ctx, fmt.Sprintf("reverse:forward:norebind:tcp:%d;%s", port, l.name), port == 0)
	if err != nil {
		l.forget()
		return nil, err
	}
	if port == 0 {
		l.port = chosen
	}
	return l, nil
}

// forward makes a request of the reverse service: OKAY, and a port if one was
// asked for, or FAIL and a text (AOSP adb.cpp, handle_forward_request).
func (c *Conn) forward(ctx context.Context, request string, wantPort bool) (int, error) {
	s, err := c.Open(ctx, request)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	_ = s.SetReadDeadline(time.Now().Add(c.o.OpenTimeout))
	status := make([]byte, 4)
	if _, err := io.ReadFull(s, status); err != nil {
		return 0, reverseError(ctx, err)
	}
	if string(status) == "OKAY" && !wantPort {
		return 0, nil
	}
	text, err := readProtocolString(s)
	if err != nil {
		return 0, reverseError(ctx, err)
	}
	switch string(status) {
	case "OKAY":
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return 0, protocolError("the phone listens on port %.20q", text)
		}
		return port, nil
	case "FAIL":
		return 0, fmt.Errorf("%w: reverse: %q", ErrRefused, text)
	}
	return 0, protocolError("answer %q to reverse", status)
}

func reverseError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("adb: reverse: %w", ctx.Err())
	}
	return fmt.Errorf("adb: reverse: %w", err)
}

// readProtocolString reads four hexadecimal digits and as many bytes.
func readProtocolString(r io.Reader) (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", err
	}
	var size [2]byte
	if _, err := hex.Decode(size[:], digits[:]); err != nil {
		return "", protocolError("length %q", digits)
	}
	n := binary.BigEndian.Uint16(size[:])
	if n > maxReverseText {
		return "", protocolError("a text of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// Port is the phone's.
func (l *ReverseListener) Port() int { return l.port }

// Accept implements net.Listener. It blocks until the phone connects; after
// Close it fails with net.ErrClosed, after the connection's end with its error.
func (l *ReverseListener) Accept() (net.Conn, error) {
	select {
	case s := <-l.waiting:
		return reverseConn{s, l.Addr()}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-l.conn.done:
		return nil, l.conn.Err()
	}
}

// Close has the phone listen no longer, which it may take two seconds to
// answer. Connections that were accepted go on.
func (l *ReverseListener) Close() error {
	var err error
	l.once.Do(func() {
		l.forget()
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		defer cancel()
		_, err = l.conn.forward(ctx, fmt.Sprintf("reverse:killforward:tcp:%d", l.port), false)
		if errors.Is(err, ErrDisconnected) || errors.Is(err, net.ErrClosed) {
			err = nil // the phone's end went with the connection
		}
	})
	return err
}

// forget takes no more connections and closes those that nobody accepted.
func (l *ReverseListener) forget() {
	l.conn.mu.Lock()
	delete(l.conn.reverse, l.name)
	l.conn.mu.Unlock()
	close(l.closed)
	for {
		select {
		case s := <-l.waiting:
			_ = s.Close()
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *ReverseListener) Addr() net.Addr { return phoneAddr(l.port) }

// phoneAddr is a port on a phone.
type phoneAddr int

func (phoneAddr) Network() string  { return "adb" }
func (a phoneAddr) String() string { return fmt.Sprintf("phone:%d", int(a)) }

// reverseConn is a stream that the phone has opened.
type reverseConn struct {
	*Stream
	addr net.Addr
}

func (c reverseConn) LocalAddr() net.Addr  { return c.addr }
func (c reverseConn) RemoteAddr() net.Addr { return c.addr }

// opened takes in an OPEN: the phone asks for a service. It reports whether
// the service is one that was given to the phone and has room. It runs on the
// reader and does not block.
func (c *Conn) opened(p Packet) bool {
	name, ended := strings.CutSuffix(string(p.Payload), "\x00")
	if p.Arg0 == 0 || !ended || (p.Arg1 != 0) != c.delayedAck {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.reverse[name]
	if l == nil || c.err != nil || len(l.waiting) == cap(l.waiting) {
		return false
	}
	s := newStream(c, c.freeID())
	s.remote = p.Arg0
	close(s.answered)
	okay := Packet{Command: CommandOkay, Arg0: s.id, Arg1: p.Arg0}
	if c.delayedAck {
		s.out.delayed = true
		s.out.grant(int64(p.Arg1))
		okay.Payload = (&ack{delayed: true, bytes: c.o.Window}).payload()
	} else {
		s.out.ready = true
	}
	if c.queueLocked(okay) {
		return false
	}
	c.streams[s.id] = s
	l.waiting <- s // room was seen above, and the reader alone adds
	return true
}
