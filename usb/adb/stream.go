package adb

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Stream is one service on the phone. It is safe for concurrent use; reads are
// served one after another, and so are writes.
//
// ADB has no half-close: CLSE ends both directions. After the phone has closed
// a stream what it sent before can still be read, then Read returns io.EOF;
// Write fails with ErrStreamClosed at once. After Close both fail with
// net.ErrClosed, and what the phone still sends is dropped. To end only the
// input of a command use the shell v2 protocol (Conn.StartShell).
type Stream struct {
	conn *Conn
	id   uint32

	answered chan struct{} // closed by the reader when OPEN is answered
	closed   chan struct{} // closed by Close
	ended    chan struct{} // closed by the reader: nothing more will come

	reading, writing      chan struct{} // semaphores of Read and Write
	readable, writable    chan struct{} // cap 1: state below changed
	readLimit, writeLimit *deadline

	mu     sync.Mutex // guards the fields below
	remote uint32     // the phone's id; 0 until OPEN is accepted
	fault  error      // why the stream ended, if not by CLSE
	in     inbox
	out    outbox
}

func newStream(c *Conn, id uint32) *Stream {
	return &Stream{
		conn: c, id: id,
		answered: make(chan struct{}), closed: make(chan struct{}), ended: make(chan struct{}),
		reading: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		readLimit: newDeadline(), writeLimit: newDeadline(),
		in: inbox{window: c.o.Window, delayed: c.delayedAck, credit: int64(c.o.Window)},
	}
}

func (s *Stream) accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remote != 0
}

// Read reads what the phone has sent. It blocks until there is something, the
// stream or the connection ends, or the read deadline passes
// (os.ErrDeadlineExceeded). Reading makes room, which lets the phone send on.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.acquire(s.reading, s.readLimit); err != nil {
		return 0, err
	}
	defer func() { <-s.reading }()
	for {
		// Looked at before the queue: all data comes before the end.
		over := isClosed(s.ended)
		dead := isClosed(s.conn.done)
		s.mu.Lock()
		n, ack := s.in.take(p)
		remote, fault := s.remote, s.fault
		s.mu.Unlock()
		if n > 0 {
			if !over && ack != nil {
				s.conn.queue(Packet{Command: CommandOkay, Arg0: s.id, Arg1: remote, Payload: ack.payload()})
			}
			return n, nil
		}
		switch {
		case fault != nil:
			return 0, fault
		case over:
			return 0, io.EOF
		case dead:
			return 0, s.conn.Err()
		}
		select {
		case <-s.readable:
		case <-s.ended:
		case <-s.closed:
			return 0, net.ErrClosed
		case <-s.readLimit.passed():
			return 0, os.ErrDeadlineExceeded
		case <-s.conn.done:
		}
	}
}

// Write sends p. It blocks while the phone gives no room, until the stream or
// the connection ends or the write deadline passes (os.ErrDeadlineExceeded).
// It returns when p has been handed over, not when the phone has consumed it.
// The count says how much was handed over; what was is sent whole.
func (s *Stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.acquire(s.writing, s.writeLimit); err != nil {
		return 0, err
	}
	defer func() { <-s.writing }()
	sent := 0
	for sent < len(p) {
		n, err := s.writeSome(p[sent:])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// writeSome waits for room and sends one packet of p.
func (s *Stream) writeSome(p []byte) (int, error) {
	for {
		// Ends come first: the wait below may take either of two ready cases.
		if err := s.writeError(); err != nil {
			return 0, err
		}
		s.mu.Lock()
		n := s.out.reserve(min(len(p), s.conn.sendMax))
		remote := s.remote
		s.mu.Unlock()
		var data chan *outgoing
		var o *outgoing
		if n > 0 {
			o = &outgoing{write: newWrite(s.id, remote, p[:n])}
			data = s.conn.data
		}
		select {
		case data <- o:
			return n, nil
		case <-s.writable:
		case <-s.ended:
		case <-s.closed:
		case <-s.writeLimit.passed():
		case <-s.conn.done:
		}
		if n > 0 {
			s.mu.Lock()
			s.out.giveBack(n)
			s.mu.Unlock()
			o.write.release()
		}
	}
}

// writeError says why nothing can be written, if so.
func (s *Stream) writeError() error {
	switch {
	case isClosed(s.closed):
		return net.ErrClosed
	case isClosed(s.ended):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fault != nil {
			return s.fault
		}
		return ErrStreamClosed
	case isClosed(s.writeLimit.passed()):
		return os.ErrDeadlineExceeded
	}
	return s.conn.Err()
}

// acquire takes a semaphore, or says why the stream cannot be used.
func (s *Stream) acquire(semaphore chan struct{}, limit *deadline) error {
	switch {
	case isClosed(s.closed):
		return net.ErrClosed
	case isClosed(limit.passed()):
		return os.ErrDeadlineExceeded
	}
	select {
	case semaphore <- struct{}{}:
		return nil
	case <-s.closed:
		return net.ErrClosed
	case <-limit.passed():
		return os.ErrDeadlineExceeded
	}
}

// Close ends the stream in both directions and lets the phone know. It does
// not block. Data already handed over by Write is sent before the CLSE.
func (s *Stream) Close() error {
	s.mu.Lock()
	if isClosed(s.closed) {
		s.mu.Unlock()
		return nil
	}
	close(s.closed)
	s.in.drop()
	tell := s.remote != 0 && !isClosed(s.ended)
	remote := s.remote
	s.mu.Unlock()
	_ = s.SetDeadline(time.Time{}) // stops the timers
	s.conn.remove(s)
	if tell {
		s.conn.queue(Packet{Command: CommandClose, Arg0: s.id, Arg1: remote})
	}
	return nil
}

// SetDeadline sets both deadlines. The zero time removes them. A deadline also
// ends a call that is already waiting.
func (s *Stream) SetDeadline(t time.Time) error {
	s.readLimit.set(t)
	s.writeLimit.set(t)
	return nil
}

// SetReadDeadline sets the deadline of Read.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.readLimit.set(t)
	return nil
}

// SetWriteDeadline sets the deadline of Write.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.writeLimit.set(t)
	return nil
}
