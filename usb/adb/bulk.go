package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Endpoints is a claimed pair of raw USB bulk endpoints. One goroutine reads
// and one writes at a time.
//
// Errors: [ErrNoMemory], [ErrStall], [ErrOverflow], and [ErrDisconnected] for a
// device that is gone or endpoints that were closed; ctx.Err() for a transfer
// that ctx ended. After any other error than ErrNoMemory or the context's the
// endpoints are not used again, and buf may stay in use by them.
type Endpoints interface {
	// Read performs one IN transfer: it ends when buf is full or a packet
	// shorter than the maximum packet size has come. The count of bytes is
	// valid with an error too: a cancelled transfer may have moved some.
	Read(ctx context.Context, buf []byte) (int, error)
	// Write performs one OUT transfer of exactly buf; an empty buf sends a
	// zero-length packet.
	Write(ctx context.Context, buf []byte) (int, error)
	// Close ends pending transfers and releases the interface. It blocks for a
	// bounded time only.
	Close() error
}

// BulkOptions describe a pair of bulk endpoints.
type BulkOptions struct {
	// MaxPacket is wMaxPacketSize in bytes: 64 at full speed, 512 at high
	// speed, 1024 at SuperSpeed. Required.
	MaxPacket int
	// NoZeroPacket leaves out the zero-length packet after a payload that is a
	// multiple of MaxPacket. Only for devices known to choke on it (recoveries
	// with an old minadbd, TeamWin#1607).
	NoZeroPacket bool
	// MaxPayload is the largest ADB payload in bytes to announce.
	// 0 means 256 KiB.
	MaxPayload int
	// TransferSize bounds one USB transfer in bytes, so that many phones fit
	// into the kernel's buffer budget (usbfs_memory_mb, 16 MiB for all devices
	// together unless raised). 0 means 128 KiB.
	TransferSize int
}

const (
	defaultBulkPayload  = 256 << 10
	defaultTransferSize = 128 << 10
	// smallTransfer is what transfers shrink to when the kernel's buffer
	// budget is used up; usbfs never splits it into several requests.
	smallTransfer = 16 << 10
	// memoryPatience is how long the smallest transfer is tried again.
	memoryPatience = 2 * time.Second
	memoryPause    = 10 * time.Millisecond
	// maxEmptyReads bounds zero-length transfers in a row, which no device
	// should send at all.
	maxEmptyReads = 64
)

// NewBulkLink returns a Link over raw bulk endpoints, with the transfer rules
// of AOSP's docs/dev/zero_length_packet.md: header and payload are separate
// transfers; a payload that is a non-zero multiple of MaxPacket is followed by
// a zero-length packet on the way out and never on the way in; reads are
// rounded up to MaxPacket, and no more than one packet is asked for while the
// phone is idle.
func NewBulkLink(ep Endpoints, o BulkOptions) (Link, error) {
	if o.MaxPacket < 8 || o.MaxPacket > 1024 || o.MaxPacket&(o.MaxPacket-1) != 0 {
		return nil, fmt.Errorf("adb: bulk endpoints with a maximum packet size of %d bytes", o.MaxPacket)
	}
	l := &bulkLink{
		ep: ep, mps: o.MaxPacket, zeroPacket: !o.NoZeroPacket,
		maxPayload: defaultBulkPayload,
		writing:    make(chan struct{}, 1),
	}
	if o.MaxPayload > 0 {
		l.maxPayload = min(max(o.MaxPayload, MaxPayloadV1), MaxPayload)
	}
	size := defaultTransferSize
	if o.TransferSize > 0 {
		size = o.TransferSize
	}
	l.inSize = l.roundUp(size)
	l.outSize = l.inSize
	l.head = make([]byte, 0, l.roundUp(HeaderSize)+HeaderSize)
	return l, nil
}

type bulkLink struct {
	ep         Endpoints
	mps        int
	zeroPacket bool
	maxPayload int

	// The packet being read, kept over a read that its context ended. Used by
	// the one reader only.
	head    []byte // header bytes so far
	started bool   // head is a valid header, its payload is being read
	header  Header
	payload []byte
	payN    int
	empty   int // zero-length transfers in a row
	inSize  int // current bound of an IN transfer
	readErr error

	writing  chan struct{} // semaphore: held while a packet is written
	outSize  int           // under writing: current bound of an OUT transfer
	writeErr error         // under writing: set once a packet was cut short

	closeOnce sync.Once
	closeErr  error
}

func (l *bulkLink) Properties() LinkProperties {
	return LinkProperties{MaxPayload: l.maxPayload, Stale: true}
}

func (l *bulkLink) Close() error {
	l.closeOnce.Do(func() { l.closeErr = l.ep.Close() })
	return l.closeErr
}

func (l *bulkLink) roundUp(n int) int { return (n + l.mps - 1) / l.mps * l.mps }

// ReadPacket implements Link. A read that ctx ended loses nothing.
func (l *bulkLink) ReadPacket(ctx context.Context, want Expect) (Packet, error) {
	for {
		if l.readErr != nil {
			return Packet{}, l.readErr
		}
		p, ok, err := l.step(ctx, want)
		switch {
		case err != nil:
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
				l.readErr = err
			}
			return Packet{}, err
		case ok:
			return p, nil
		}
	}
}

// step makes one transfer and looks at what it brought.
func (l *bulkLink) step(ctx context.Context, want Expect) (p Packet, ok bool, err error) {
	if !l.started {
		err = l.readHead(ctx, want)
	} else if l.payN < len(l.payload) {
		err = l.readPayload(ctx, want)
	}
	if err != nil || !l.started || l.payN < len(l.payload) {
		return Packet{}, false, err
	}
	p = Packet{Command: l.header.Command, Arg0: l.header.Arg0, Arg1: l.header.Arg1, Check: l.header.Check, Payload: l.payload}
	l.restart()
	// A stale header followed by somebody else's payload shows here.
	if want.Handshake && p.Check != 0 && p.Verify() != nil {
		return Packet{}, false, nil
	}
	return p, true, nil
}

// restart forgets the packet being read.
func (l *bulkLink) restart() {
	l.head, l.started, l.payload, l.payN = l.head[:0], false, nil, 0
}

func (l *bulkLink) readHead(ctx context.Context, want Expect) error {
	// A read that its context ended may have left the whole header here.
	if have := len(l.head); have < HeaderSize {
		n, err := l.in(ctx, l.head[have:have+l.roundUp(HeaderSize-have)])
		l.head = l.head[:have+n]
		if err != nil {
			return err
		}
		if n == 0 {
			return l.countEmpty()
		}
	}
	h, err := ParseHeader(l.head, want.MaxPayload)
	if err != nil {
		if want.Handshake {
			l.restart()
			return nil
		}
		return err
	}
	if want.Handshake && !handshakeCommand(h.Command) {
		// Its payload, if it comes, is no header either and goes the same way.
		l.restart()
		return nil
	}
	l.begin(h)
	return nil
}

func (l *bulkLink) begin(h Header) {
	l.started, l.header, l.payN = true, h, 0
	l.payload = make([]byte, h.Length, l.roundUp(int(h.Length)))
}

func (l *bulkLink) readPayload(ctx context.Context, want Expect) error {
	length := len(l.payload)
	size := min(l.roundUp(length-l.payN), l.inSize)
	if l.payN+size > cap(l.payload) {
		// After a short packet in the middle the rest is no longer aligned.
		grown := make([]byte, length, l.payN+size)
		copy(grown, l.payload[:l.payN])
		l.payload = grown
	}
	buf := l.payload[l.payN : l.payN+size : l.payN+size]
	n, err := l.in(ctx, buf)
	l.payN += n
	if l.payN > length {
		if want.Handshake {
			l.restart()
			return nil
		}
		return &PacketError{Command: l.header.Command, Field: "payload", Got: uint64(l.payN), Want: uint64(length)}
	}
	if err != nil {
		if l.payN == length {
			return nil
		}
		return err
	}
	if n == 0 {
		return l.countEmpty()
	}
	if want.Handshake && l.payN < length && n%l.mps != 0 {
		// The payload of a handshake packet comes in one piece. What came
		// instead may be the next header.
		h, err := ParseHeader(buf[:n], want.MaxPayload)
		l.restart()
		if err == nil && handshakeCommand(h.Command) {
			l.begin(h)
		}
	}
	return nil
}

func (l *bulkLink) countEmpty() error {
	if l.empty++; l.empty > maxEmptyReads {
		return protocolError("%d zero-length transfers in a row", l.empty)
	}
	return nil
}

// in performs one IN transfer into at most buf, less if memory is short.
func (l *bulkLink) in(ctx context.Context, buf []byte) (int, error) {
	n, err := l.patiently(ctx, &l.inSize, len(buf), func(size int) (int, error) { return l.ep.Read(ctx, buf[:size]) })
	if n > 0 {
		l.empty = 0
	}
	return n, err
}

// WritePacket implements Link.
func (l *bulkLink) WritePacket(ctx context.Context, p Packet) error {
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
	if err := l.write(ctx, p); err != nil {
		l.writeErr = fmt.Errorf("adb: link broken by an unfinished write: %w", err)
		return err
	}
	return nil
}

func (l *bulkLink) write(ctx context.Context, p Packet) error {
	head := p.Header().Append(make([]byte, 0, HeaderSize))
	if err := l.out(ctx, head); err != nil {
		return err
	}
	if err := l.out(ctx, p.Payload); err != nil {
		return err
	}
	if len(p.Payload) > 0 && len(p.Payload)%l.mps == 0 && l.zeroPacket {
		// It takes a request of the kernel's budget as well.
		_, err := l.patiently(ctx, &l.outSize, 0, func(int) (int, error) { return l.ep.Write(ctx, nil) })
		return err
	}
	return nil
}

// out sends b in transfers whose boundaries no device can see: all but the
// last are multiples of the maximum packet size.
func (l *bulkLink) out(ctx context.Context, b []byte) error {
	for len(b) > 0 {
		size := min(len(b), l.outSize)
		n, err := l.patiently(ctx, &l.outSize, size, func(size int) (int, error) { return l.ep.Write(ctx, b[:size]) })
		if err != nil {
			return err
		}
		if n < len(b) && (n == 0 || n%l.mps != 0) {
			return io.ErrShortWrite
		}
		b = b[n:]
	}
	return nil
}

// patiently runs one transfer of at most want bytes. While the kernel has no
// memory for it, it makes *bound smaller (for good: a smaller transfer costs
// little) and then waits a little for other transfers to finish.
func (l *bulkLink) patiently(ctx context.Context, bound *int, want int, transfer func(size int) (int, error)) (int, error) {
	var waited time.Duration
	for {
		n, err := transfer(min(want, *bound))
		if !errors.Is(err, ErrNoMemory) {
			return n, err
		}
		small := l.roundUp(smallTransfer)
		shrunk := *bound > small
		*bound = max(l.roundUp(*bound/2), small)
		if n > 0 {
			return n, nil
		}
		if shrunk {
			continue
		}
		if waited >= memoryPatience {
			return 0, err
		}
		select {
		case <-time.After(memoryPause):
			waited += memoryPause
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
