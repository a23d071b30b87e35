package api

import (
	"sync"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/sync/wire"
)

// Bounds of the answers that are kept for repeated requests.
const (
	maxRepeats  = 8192
	repeatBytes = 32 << 20
	repeatTime  = wire.MaxLife + maxEarly // no frame lives longer, but those that never expire, which the store knows again
)

// repeats gives a repeated message the first answer, on this replica. That a message has no second effect is the
// store's doing; here it only costs less, and answers the same where the store would answer "done already".
type repeats struct {
	clock func() time.Time

	mu    sync.Mutex // guards what follows
	known map[repeatKey]*repeat
	order []repeatKey // oldest first
	bytes int
}

type repeatKey struct {
	caller enroll.Caller
	id     string
}

type repeat struct {
	at      time.Time
	t       wire.Type // of the request
	pending bool
	answer  reply
}

// begin tells whether a message is to be handled. If not, known is its first answer; an empty one if that is on its way
// or there is none.
func (r *repeats) begin(c enroll.Caller, id string, t wire.Type) (first bool, known reply) {
	if !kept(t) {
		return true, reply{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	for len(r.order) > 0 {
		oldest := r.known[r.order[0]]
		if oldest != nil && now.Sub(oldest.at) < repeatTime && len(r.order) < maxRepeats && r.bytes < repeatBytes {
			break
		}
		if oldest != nil {
			r.drop(r.order[0])
		}
		r.order = r.order[1:]
	}
	k := repeatKey{c, id}
	if e := r.known[k]; e != nil {
		if e.pending || e.t != t {
			return false, reply{}
		}
		return false, e.answer
	}
	if r.known == nil {
		r.known = map[repeatKey]*repeat{}
	}
	r.known[k] = &repeat{at: now, t: t, pending: true}
	r.order = append(r.order, k)
	return true, reply{}
}

// done notes the answer of a message, or forgets the message if its answer does not last.
func (r *repeats) done(c enroll.Caller, id string, a reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := repeatKey{c, id}
	e := r.known[k]
	switch {
	case e == nil:
	case !a.lasting:
		r.drop(k)
	default:
		e.pending, e.answer = false, a
		r.bytes += len(a.body)
	}
}

func (r *repeats) drop(k repeatKey) {
	r.bytes -= len(r.known[k].answer.body)
	delete(r.known, k)
}

// kept tells whether answers of a type are kept. A hello is guarded by generation and session, a plan request has an id
// of its own in the store, a lasting message may come again after any time, and what only reads is read again.
func kept(t wire.Type) bool {
	switch t {
	case wire.TypeHello, wire.TypePlanRequest, wire.TypeState, wire.TypeTelemetry, wire.TypeSkillChanges, wire.TypeBlobGet:
		return false
	}
	return true
}

func keep(t wire.Type, a reply) reply {
	if !kept(t) {
		return reply{}
	}
	return a
}
