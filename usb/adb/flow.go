package adb

import "encoding/binary"

// inbox is what came and was not read yet. With delayed_ack the phone sends
// while it has credit and gets some back as data is read; without, it sends one
// WRTE and waits for its OKAY, which is withheld while more than a window of
// data lies here. At most a window and one payload are kept, with delayed_ack a
// window, the overdraft and one payload.
type inbox struct {
	window  int
	delayed bool

	queue   [][]byte
	size    int   // bytes in queue
	owed    bool  // without delayed_ack: an OKAY is withheld
	credit  int64 // with delayed_ack: what the phone may still send
	read    int   // with delayed_ack: read, not yet given back as credit
	dropped bool
}

// ack is an OKAY to send: with delayed_ack it carries a count of bytes.
type ack struct {
	delayed bool
	bytes   int
}

func (a *ack) payload() []byte {
	if !a.delayed {
		return nil
	}
	return binary.LittleEndian.AppendUint32(nil, uint32(a.bytes))
}

// overdraft is how far below zero, in bytes, a phone's credit may be when it
// sends. AOSP overdraws by a payload as a rule, and at a stream's end sends what
// its socket holds without looking at its credit: adbd 34 went 4 MiB below.
const overdraft = 8 << 20

// put stores a payload. ok is false if the phone sent without leave.
func (in *inbox) put(b []byte) (reply *ack, ok bool) {
	if in.dropped {
		return nil, true
	}
	if in.delayed {
		if in.credit <= -overdraft && len(b) > 0 {
			return nil, false
		}
		in.credit -= int64(len(b))
	} else if in.owed {
		return nil, false
	}
	in.store(b)
	if in.delayed {
		return nil, true
	}
	if in.size > in.window {
		in.owed = true
		return nil, true
	}
	return &ack{}, true
}

// smallPiece is the size up to which payloads share a buffer, so that a phone
// that sends single bytes cannot make a window cost many times its size.
const smallPiece = 4096

func (in *inbox) store(b []byte) {
	in.size += len(b)
	if last := len(in.queue) - 1; last >= 0 && cap(in.queue[last])-len(in.queue[last]) >= len(b) {
		in.queue[last] = append(in.queue[last], b...)
		return
	}
	if len(b) == 0 {
		return
	}
	if len(b) < smallPiece/2 {
		b = append(make([]byte, 0, smallPiece), b...)
	}
	in.queue = append(in.queue, b)
}

// take moves data to p and returns the OKAY that this makes due, if any.
func (in *inbox) take(p []byte) (int, *ack) {
	n := 0
	for n < len(p) && len(in.queue) > 0 {
		m := copy(p[n:], in.queue[0])
		n += m
		if m == len(in.queue[0]) {
			in.queue[0] = nil
			in.queue = in.queue[1:]
		} else {
			in.queue[0] = in.queue[0][m:]
		}
	}
	in.size -= n
	if !in.delayed {
		if in.owed && in.size <= in.window {
			in.owed = false
			return n, &ack{}
		}
		return n, nil
	}
	in.read += n
	// Credit goes back in lumps, and whenever all is read: a sender may be
	// waiting for room for its next payload.
	if in.read > 0 && (in.read >= in.window/4 || in.size == 0) {
		reply := &ack{delayed: true, bytes: in.read}
		in.credit += int64(in.read)
		in.read = 0
		return n, reply
	}
	return n, nil
}

// drop forgets everything and whatever is to come.
func (in *inbox) drop() {
	in.queue, in.size, in.dropped = nil, 0, true
}

// outbox is the leave to send. Without delayed_ack one WRTE may be on its way;
// with it, as many bytes as the phone has given credit for. A whole packet's
// credit is waited for: overdrawing led to stalls and disconnects
// (flyfishxu/Kadb#35).
type outbox struct {
	delayed bool
	ready   bool  // without delayed_ack: the last WRTE was acknowledged
	credit  int64 // with delayed_ack
	most    int64 // the highest credit ever held
}

// maxCredit keeps a hostile phone's credit from overflowing.
const maxCredit = 1 << 40

// open takes in the first OKAY, whose payload tells the mode of the stream.
func (o *outbox) open(payload []byte) {
	if bytes, ok := ackedBytes(payload); ok {
		o.delayed = true
		o.grant(bytes)
		return
	}
	o.ready = true
}

// acknowledge takes in a later OKAY.
func (o *outbox) acknowledge(payload []byte) {
	if !o.delayed {
		o.ready = true
		return
	}
	if bytes, ok := ackedBytes(payload); ok {
		o.grant(bytes)
	}
}

func (o *outbox) grant(bytes int64) {
	o.credit = min(max(o.credit+bytes, -maxCredit), maxCredit)
	o.most = max(o.most, o.credit)
}

// reserve returns how many of want bytes may be sent in a packet now, and
// counts them as sent.
func (o *outbox) reserve(want int) int {
	if !o.delayed {
		if !o.ready {
			return 0
		}
		o.ready = false
		return want
	}
	// A phone whose whole window is smaller than a payload gets smaller ones.
	n := min(int64(want), o.most)
	if n <= 0 || o.credit < n {
		return 0
	}
	o.credit -= n
	return int(n)
}

// giveBack undoes a reserve whose packet was not sent.
func (o *outbox) giveBack(n int) {
	if !o.delayed {
		o.ready = true
		return
	}
	o.credit += int64(n)
}

// ackedBytes reads the payload of a delayed_ack OKAY: a signed count.
func ackedBytes(payload []byte) (int64, bool) {
	if len(payload) != 4 {
		return 0, false
	}
	return int64(int32(binary.LittleEndian.Uint32(payload))), true
}
