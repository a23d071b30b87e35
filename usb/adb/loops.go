package adb

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// readLoop is the one reader of the link. It never waits for a stream's user
// or for the writer.
func (c *Conn) readLoop(ctx context.Context) {
	for {
		p, err := c.link.ReadPacket(ctx, Expect{MaxPayload: c.o.MaxPayload})
		if err == nil {
			err = c.dispatch(p)
		}
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				err = disconnected(err)
			}
			c.fail(err)
			return
		}
	}
}

// dispatch applies the rules of AOSP adb.cpp, handle_packet.
func (c *Conn) dispatch(p Packet) error {
	if c.version < VersionSkipChecksum {
		if err := p.Verify(); err != nil {
			return err
		}
	}
	switch p.Command {
	case CommandOkay:
		if s := c.stream(p.Arg1); s != nil && s.okay(p) {
			return nil
		}
		// The stream is closed here already: free the phone's end. A closing
		// answer to a CLSE is never sent this way.
		if p.Arg0 != 0 {
			c.queue(Packet{Command: CommandClose, Arg0: p.Arg1, Arg1: p.Arg0})
		}
	case CommandWrite:
		if s := c.stream(p.Arg1); s != nil {
			s.receive(p)
		}
	case CommandClose:
		if s := c.stream(p.Arg1); s != nil {
			s.peerClosed(p)
		}
	case CommandOpen:
		if c.opened(p) {
			return nil
		}
		c.queue(Packet{Command: CommandClose, Arg1: p.Arg0})
	case CommandConnect, CommandAuth:
		if p.Command == CommandConnect && c.repeated() {
			return nil
		}
		// The phone's adbd forgot us: all streams are gone with it.
		return disconnected(errors.New("the phone restarted the conversation"))
	}
	return nil
}

// repeated reports whether a CNXN may answer one that was sent twice. With a
// stream open it cannot be harmless: the phone has closed the stream.
func (c *Conn) repeated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.repeats == 0 || len(c.streams) > 0 {
		return false
	}
	c.repeats--
	return true
}

// writeLoop is the one writer of the link: small packets first, then one
// stream's data at a time, in the order the streams asked.
func (c *Conn) writeLoop(ctx context.Context) {
	for {
		if !c.writeControl(ctx) {
			return
		}
		select {
		case <-c.wake:
		case o := <-c.data:
			if !c.writeOutgoing(ctx, o) {
				return
			}
		case <-c.done:
			return
		}
	}
}

// writeControl writes what is queued and reports whether the link is alive.
func (c *Conn) writeControl(ctx context.Context) bool {
	for {
		c.mu.Lock()
		queued := c.control
		c.control = nil
		c.mu.Unlock()
		if len(queued) == 0 {
			return true
		}
		for _, p := range queued {
			if !c.write(ctx, p) {
				return false
			}
		}
	}
}

// writeOutgoing reports whether more may be written.
func (c *Conn) writeOutgoing(ctx context.Context, o *outgoing) bool {
	if o.last != nil {
		c.writeControl(ctx)
		close(o.last)
		return false
	}
	// A failed transfer may hold on to its buffer.
	if !c.write(ctx, o.write.packet) {
		return false
	}
	o.write.release()
	return true
}

// write sends one packet or ends the connection.
func (c *Conn) write(ctx context.Context, p Packet) bool {
	if c.version < VersionSkipChecksum {
		p.Check = p.Sum()
	}
	timed, cancel := context.WithTimeout(ctx, c.o.WriteTimeout)
	defer cancel()
	err := c.link.WritePacket(timed, p)
	if err == nil {
		return true
	}
	if ctx.Err() == nil && timed.Err() != nil {
		err = fmt.Errorf("%w: the phone does not take %s: %w", ErrDisconnected, p.Command, ErrTimeout)
	}
	c.fail(disconnected(err))
	return false
}

// writeBuffers recycles the copies that streams' data is sent from.
var writeBuffers = sync.Pool{New: func() any { return new(writeBuffer) }}

// newWrite returns a WRTE packet with a copy of data.
func newWrite(id, remote uint32, data []byte) *writeBuffer {
	w := writeBuffers.Get().(*writeBuffer)
	w.buf = append(w.buf[:0], data...)
	w.packet = Packet{Command: CommandWrite, Arg0: id, Arg1: remote, Payload: w.buf}
	return w
}

func (w *writeBuffer) release() {
	w.packet = Packet{}
	writeBuffers.Put(w)
}
