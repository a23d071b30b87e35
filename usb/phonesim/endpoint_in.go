package phonesim

import (
	"sync"

	"phonerack/usb/phonesim/usbredir"
)

// inRequest is a bulk read that the host has pending.
type inRequest struct {
	id    uint64
	asked int // bytes
	got   []byte
}

// inCompletion ends a bulk read.
type inCompletion struct {
	id     uint64
	status usbredir.Status
	data   []byte
}

// inEndpoint moves the phone's transfers to the host's reads, packet by packet as a host controller does:
// a read ends when it is full or when a packet is shorter than the endpoint's packet size. A transfer that is
// longer than a read goes on in the next. The daemon never sends a zero-length packet, so a transfer that fills its last
// packet does not end a longer read; the next transfer then continues in it. A packet that is longer
// than what is left of a read is lost, and the read ends with babble.
type inEndpoint struct {
	phone    *Phone
	packet   int                // bytes
	complete func(inCompletion) // called in order, with mu held; must not block
	unplug   func(error)        // the same

	mu       sync.Mutex // guards what follows
	requests []*inRequest
	queue    []inTransfer
	halted   bool
}

// inTransfer is a transfer, or what is left of it. sent runs when its first packet goes, and is nil then.
type inTransfer struct {
	data []byte
	sent func()
}

// read adds a pending read.
func (e *inEndpoint) read(id uint64, asked int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, &inRequest{id: id, asked: asked})
	e.pump()
}

// cancel ends a pending read early; what it got goes with it. Unknown reads have ended already.
func (e *inEndpoint) cancel(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, r := range e.requests {
		if r.id == id {
			e.requests = append(e.requests[:i:i], e.requests[i+1:]...)
			e.complete(inCompletion{id: id, status: usbredir.StatusCancelled, data: r.got})
			return
		}
	}
}

// send queues transfers. Empty ones do not exist on the bus.
func (e *inEndpoint) send(sent func(), transfers ...[]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, data := range transfers {
		if len(data) > 0 {
			e.queue = append(e.queue, inTransfer{data: data, sent: sent})
			sent = nil
		}
	}
	e.pump()
}

// drop forgets all transfers; half of one may be gone already.
func (e *inEndpoint) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = nil
}

func (e *inEndpoint) isHalted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.halted
}

func (e *inEndpoint) setHalt(halt bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.halted = halt
	e.pump()
}

// pump moves what can be moved; e.mu is held.
func (e *inEndpoint) pump() {
	for len(e.requests) > 0 {
		r := e.requests[0]
		if e.halted {
			e.finish(usbredir.StatusStall)
			continue
		}
		if len(e.queue) == 0 {
			return
		}
		if len(r.got) == 0 {
			if failure := e.phone.faults.transfer(false); failure != NoError {
				e.halted = failure == Stall
				e.finish(failure.status())
				continue
			}
		}
		e.move(r)
	}
}

// move moves packets of the first transfer to the first read; e.mu is held.
func (e *inEndpoint) move(r *inRequest) {
	t := &e.queue[0]
	room := r.asked - len(r.got)
	if t.sent != nil {
		t.sent()
		t.sent = nil
	}
	n := len(t.data)
	short := n%e.packet != 0
	if n > room {
		n = room - room%e.packet
		short = false
	}
	pass, ends := e.phone.faults.pass(false, n)
	r.got = append(r.got, t.data[:pass]...)
	if ends {
		e.finish(usbredir.StatusIOError)
		e.unplug(ErrUnplugged)
		return
	}
	t.data = t.data[n:]
	lost := len(t.data) > 0 && len(r.got) < r.asked
	if lost {
		e.phone.record(violationf(RuleReadSize, "a packet of %d bytes came to a read with room for %d",
			min(e.packet, len(t.data)), r.asked-len(r.got)))
		t.data = t.data[min(e.packet, len(t.data)):]
	}
	if len(t.data) == 0 {
		e.queue = e.queue[1:]
	}
	switch {
	case lost:
		e.finish(usbredir.StatusBabble)
	case short || len(r.got) == r.asked:
		e.finish(usbredir.StatusSuccess)
	}
}

// finish ends the first read; e.mu is held.
func (e *inEndpoint) finish(status usbredir.Status) {
	r := e.requests[0]
	e.requests = e.requests[1:]
	e.complete(inCompletion{id: r.id, status: status, data: r.got})
}
