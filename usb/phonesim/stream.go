package phonesim

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"
)

// socketBuffer is how many bytes the daemon acknowledges before the service has read them: the service
// is a process behind a socket pair, whose buffer has this size.
const socketBuffer = 208 << 10

// stream is one stream of a daemon. Its service reads what the host writes and writes what the host reads.
type stream struct {
	daemon   *daemon
	id, peer uint32        // ours and the host's; peer is 0 while a stream of ours is not accepted
	opened   chan struct{} // of a stream of ours: closed when the host has accepted it
	ctx      context.Context
	cancel   context.CancelFunc

	// What the host may send. Both change when an OKAY leaves, under locks of the link, hence atomic.
	unanswered atomic.Bool  // a WRTE has come and its OKAY has not left (without delayed acknowledgement)
	credit     atomic.Int64 // bytes left of the window (with it)

	mu       sync.Mutex // guards what follows
	cond     *sync.Cond // signals each change
	closed   bool
	inbox    []byte
	owed     int  // bytes that are not acknowledged yet
	owes     bool // a WRTE, perhaps an empty one, is not acknowledged yet
	ready    bool // nothing is in flight to the host (without delayed acknowledgement)
	wrote    bool // something has been
	window   int64
	maxWrite int
	delayed  bool
	sums     bool
}

// newStream returns a stream that may write at once; d.mu is held.
func newStream(d *daemon, id, peer, window uint32) *stream {
	s := &stream{
		daemon: d, id: id, peer: peer, ready: true, window: int64(window),
		maxWrite: d.maxPayload, delayed: d.delayedAck, sums: d.sums,
	}
	s.ctx, s.cancel = context.WithCancel(d.ctx)
	s.cond = sync.NewCond(&s.mu)
	return s
}

// deliver takes a WRTE.
func (s *stream) deliver(b []byte) error {
	if s.delayed {
		if left := s.credit.Add(-int64(len(b))) + int64(len(b)); left <= 0 && len(b) > 0 {
			return violationf(RuleWindow, "WRTE of %d bytes on stream %d with a window of %d bytes left", len(b), s.id, left)
		}
	} else if s.unanswered.Swap(true) {
		return violationf(RuleFlow, "WRTE on stream %d before the OKAY for the one before", s.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox = append(s.inbox, b...)
	s.owed += len(b)
	s.owes = true
	s.acknowledge()
	s.cond.Broadcast()
	return nil
}

// acknowledge sends OKAY for what has come, unless too much of it is unread; s.mu is held.
func (s *stream) acknowledge() {
	if !s.owes || len(s.inbox) > socketBuffer || s.closed {
		return
	}
	n := s.owed
	s.owed, s.owes = 0, false
	var payload []byte
	if s.delayed {
		payload = binary.LittleEndian.AppendUint32(nil, uint32(n))
	}
	sent := func() {
		s.credit.Add(int64(n))
		s.unanswered.Store(false)
	}
	okay := newMessage(cmdOKAY, s.id, s.peer, payload, s.sums)
	faults := s.daemon.phone.Faults()
	if faults.DropOKAY {
		return
	}
	if faults.DelayOKAY == 0 {
		s.daemon.link.queue(okay, sent)
		return
	}
	s.daemon.start(func() {
		if sleep(s.ctx, faults.DelayOKAY) == nil {
			s.daemon.link.queue(okay, sent)
		}
	})
}

// acknowledged takes an OKAY.
func (s *stream) acknowledged(payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.delayed && len(payload) == 4:
		s.window += int64(int32(binary.LittleEndian.Uint32(payload)))
	case s.delayed:
		// A payload of another length says nothing.
	case s.ready && !s.wrote:
		return violationf(RuleFlow, "OKAY on stream %d without a WRTE", s.id)
	case s.ready:
		// The adb client sends one for each part of a WRTE that it has passed on (local_socket_flush_incoming).
	default:
		s.ready = true
	}
	s.cond.Broadcast()
	return nil
}

// Read reads what the host has written; io.EOF when the stream has ended.
func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.inbox) == 0 && !s.closed {
		s.cond.Wait()
	}
	if len(s.inbox) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.inbox)
	s.inbox = s.inbox[n:]
	s.acknowledge()
	return n, nil
}

// Write writes to the host; it waits for the host to take what was written before.
func (s *stream) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n := min(len(b), s.maxWrite)
		s.mu.Lock()
		for !s.closed && !s.mayWrite() {
			s.cond.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return written, io.ErrClosedPipe
		}
		s.ready, s.wrote = false, true
		s.window -= int64(n)
		s.daemon.link.queue(newMessage(cmdWRTE, s.id, s.peer, append([]byte(nil), b[:n]...), s.sums), nil)
		s.mu.Unlock()
		b = b[n:]
		written += n
	}
	return written, nil
}

// mayWrite tells whether the host waits for a WRTE; s.mu is held. With delayed acknowledgement the last
// one may be longer than the window that is left, as real daemons send it.
func (s *stream) mayWrite() bool {
	if s.delayed {
		return s.window > 0
	}
	return s.ready
}

// close ends reading and writing, and the service's context.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	s.cond.Broadcast()
	s.mu.Unlock()
	s.cancel()
}

// finish closes the stream when its service has ended. Data in flight is waited for: a daemon
// notices the end of a service when it would read on.
func (s *stream) finish() {
	s.mu.Lock()
	for !s.closed && !s.mayWrite() {
		s.cond.Wait()
	}
	s.mu.Unlock()
	s.daemon.mu.Lock()
	s.daemon.closeStream(s, true)
	s.daemon.mu.Unlock()
	s.cancel()
}
