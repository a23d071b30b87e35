package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// NewStreamLink returns a Link over a byte stream: TCP, a unix socket, one end
// of net.Pipe. If rw has the deadline methods of net.Conn they are used to end
// reads and writes; otherwise a context that ends closes rw.
func NewStreamLink(rw io.ReadWriteCloser) Link {
	l := &streamLink{rw: rw, writing: make(chan struct{}, 1)}
	l.deadline, _ = rw.(deadliner)
	return l
}

type deadliner interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

type streamLink struct {
	rw       io.ReadWriteCloser
	deadline deadliner // nil if rw has none

	// The packet being read, kept over a read that its context ended. Used by
	// the one reader only.
	head    [HeaderSize]byte
	headN   int
	payload []byte
	payN    int

	writing  chan struct{} // semaphore: held while a packet is written
	writeErr error         // under writing: set once a packet was cut short

	closeOnce sync.Once
	closeErr  error
}

func (l *streamLink) Properties() LinkProperties { return LinkProperties{MaxPayload: MaxPayload} }

func (l *streamLink) Close() error {
	l.closeOnce.Do(func() { l.closeErr = l.rw.Close() })
	return l.closeErr
}

func (l *streamLink) ReadPacket(ctx context.Context, want Expect) (Packet, error) {
	stop := l.until(ctx, func(t time.Time) error { return l.deadline.SetReadDeadline(t) })
	defer stop()
	for {
		p, err := l.read(want)
		if err != nil {
			return Packet{}, ctxError(ctx, err)
		}
		if want.Handshake && !handshakeCommand(p.Command) {
			continue
		}
		return p, nil
	}
}

func (l *streamLink) read(want Expect) (Packet, error) {
	for l.headN < HeaderSize {
		n, err := l.rw.Read(l.head[l.headN:])
		l.headN += n
		if err != nil && l.headN < HeaderSize {
			return Packet{}, l.eof(err, l.headN > 0)
		}
	}
	h, err := ParseHeader(l.head[:], want.MaxPayload)
	if err != nil {
		return Packet{}, err
	}
	if l.payload == nil {
		l.payload = make([]byte, h.Length)
	}
	for l.payN < len(l.payload) {
		n, err := l.rw.Read(l.payload[l.payN:])
		l.payN += n
		if err != nil && l.payN < len(l.payload) {
			return Packet{}, l.eof(err, true)
		}
	}
	p := Packet{Command: h.Command, Arg0: h.Arg0, Arg1: h.Arg1, Check: h.Check, Payload: l.payload}
	l.headN, l.payN, l.payload = 0, 0, nil
	return p, nil
}

// eof turns an end of the stream into a disconnection.
func (l *streamLink) eof(err error, inside bool) error {
	if errors.Is(err, io.EOF) && inside {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return disconnected(err)
	}
	return err
}

func (l *streamLink) WritePacket(ctx context.Context, p Packet) error {
	select {
	case l.writing <- struct{}{}:
		defer func() { <-l.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.writeErr != nil {
		return l.writeErr
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := l.until(ctx, func(t time.Time) error { return l.deadline.SetWriteDeadline(t) })
	defer stop()
	// One write for both parts keeps small packets in one segment; a large
	// payload is not worth the copy.
	buf := p.Header().Append(make([]byte, 0, HeaderSize+min(len(p.Payload), MaxPayloadV1)))
	rest := p.Payload
	if len(rest) <= MaxPayloadV1 {
		buf, rest = append(buf, rest...), nil
	}
	_, err := l.rw.Write(buf)
	if err == nil && len(rest) > 0 {
		_, err = l.rw.Write(rest)
	}
	if err != nil {
		err = ctxError(ctx, l.eof(err, true))
		l.writeErr = fmt.Errorf("adb: link broken by an unfinished write: %w", err)
	}
	return err
}

// until makes the end of ctx end the current read or write. The returned
// function undoes it.
func (l *streamLink) until(ctx context.Context, set func(time.Time) error) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	fired := make(chan struct{})
	after := context.AfterFunc(ctx, func() {
		defer close(fired)
		if l.deadline == nil || set(time.Unix(1, 0)) != nil {
			_ = l.Close()
		}
	})
	return func() {
		if !after() {
			<-fired
			if l.deadline != nil {
				_ = set(time.Time{})
			}
		}
	}
}

// ctxError prefers the reason ctx ended for over what it caused.
func ctxError(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, ErrProtocol) {
		return cause
	}
	if errors.Is(err, net.ErrClosed) {
		return disconnected(err)
	}
	return err
}
