package link

import (
	"errors"
	"time"

	"phonerack/sync/wire"
)

// How the outbox is sent.
const (
	window      = 8                // entries of a class that may be unacknowledged
	resendAfter = 30 * time.Second // without acknowledgement
	retryLater  = 5 * time.Second  // shortest pause after a refusal that may pass
	maxAcks     = 64               // received and not yet committed
	maxStrikes  = 3                // then an entry is suspected of ending connections
	soonAfter   = 5 * time.Second  // a connection that ends so soon after an entry may have ended by it
	suspectTry  = time.Minute      // before a suspected entry is tried; twice as long after each try in vain
	maxSuspect  = 6                // doublings of that: to about an hour
)

// settled is the cloud's word on an entry.
type settled struct {
	id      string
	ack     wire.Type
	refusal *wire.Refusal // nil for an acknowledgement
}

// sending is how far one class was sent in this session.
type sending struct {
	lane
	flights []flight      // sent and not acknowledged, in order
	after   []byte        // key of the newest entry that was sent, nil for none
	dry     bool          // there was nothing behind it
	paused  time.Duration // until then, on the boot clock
}

type flight struct {
	id string
	at time.Duration // on the boot clock
}

// settle takes an acknowledgement, or a refusal that answers no request.
func (s *session) settle(m *wire.Message) {
	c := settled{id: m.Corr, ack: m.Type}
	if m.Type == wire.TypeError {
		c.refusal = new(wire.Refusal)
		if err := m.Decode(c.refusal); err != nil {
			s.link.counters.add("refused_content")
			return
		}
	}
	select {
	case s.acks <- c:
	case <-s.ctx.Done():
	}
}

// drain sends the outbox, class by class, until the session ends.
func (s *session) drain() error {
	select {
	case <-s.welcomed:
	case <-s.ctx.Done():
		return nil
	}
	for _, t := range []wire.Type{wire.TypeResult, wire.TypeCommandStatus, wire.TypeEvent} {
		s.lanes = append(s.lanes, &sending{lane: lanes[t]})
	}
	for {
		for _, lane := range s.lanes {
			if err := s.fill(lane); err != nil {
				return err
			}
		}
		timer := time.NewTimer(s.untilNext())
		select {
		case <-s.link.outbox.wake:
			for _, lane := range s.lanes {
				lane.dry = false
			}
		case c := <-s.acks:
			if err := s.commit(c); err != nil {
				return err
			}
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// untilNext is when something is due without anything happening.
func (s *session) untilNext() time.Duration {
	now, wait := s.link.o.Clock.Boot(), suspectTry
	for _, lane := range s.lanes {
		if len(lane.flights) > 0 {
			wait = min(wait, lane.flights[0].at+resendAfter-now)
		}
		if lane.paused > now {
			wait = min(wait, lane.paused-now)
		}
	}
	return max(wait, 10*time.Millisecond)
}

// fill sends what the window has room for, and everything again from the first
// entry when that one's acknowledgement is late.
func (s *session) fill(l *sending) error {
	now, box := s.link.o.Clock.Boot(), s.link.outbox
	if now < l.paused {
		return nil
	}
	if len(l.flights) > 0 && now-l.flights[0].at >= resendAfter {
		s.link.counters.add("outbox_timeouts")
		l.again()
	}
	for len(l.flights) < window && !l.dry {
		list, err := box.next(l.class, l.after, window-len(l.flights))
		if err != nil {
			return err
		}
		l.dry = len(list) == 0
		for _, e := range list {
			l.after = e.key
			if box.suspected(e.ID) {
				continue
			}
			if err := s.sendEntry(l, e.stored); err != nil {
				return err
			}
		}
	}
	if len(l.flights) > 0 {
		return nil
	}
	if e, ok := box.dueSuspect(l.class, now); ok {
		return s.sendEntry(l, e)
	}
	return nil
}

// again begins from the first entry: what follows it is sent in order too.
func (l *sending) again() { l.flights, l.after, l.dry = nil, nil, false }

// sendEntry makes a frame of an entry and sends it. What no frame can be made of
// would block the others for ever.
func (s *session) sendEntry(l *sending, e stored) error {
	m := e.message()
	now, _ := s.link.time.Now()
	m.TS = now.UnixMilli()
	at := s.link.o.Clock.Boot()
	err := s.say(s.ctx, l.kind, m)
	switch {
	case s.ctx.Err() != nil:
		return nil
	case err == nil:
		l.flights = append(l.flights, flight{e.ID, at})
		return nil
	}
	if _, ok := errors.AsType[slowError](err); ok { // no keys
		return err
	}
	s.link.counters.add("outbox_refused")
	return s.link.outbox.refuse(e.ID, wire.From(err))
}

// commit takes out what is acknowledged, together with what waits behind it: one
// transaction for all of them.
func (s *session) commit(c settled) error {
	list := []settled{c}
	for more := true; more && len(list) < maxAcks; {
		select {
		case c = <-s.acks:
			list = append(list, c)
		default:
			more = false
		}
	}
	var done []settled
	for _, c := range list {
		switch {
		case c.refusal == nil:
			done = append(done, c)
		case c.refusal.Retryable:
			s.postpone(c)
		default:
			held, err := s.link.outbox.Holds(c.id)
			if err != nil {
				return err
			}
			if !held {
				s.link.counters.add("ignored_late_answer")
				continue
			}
			s.link.counters.add("outbox_refused")
			s.link.o.Logger.Error("the cloud refuses an entry of the outbox for good", "id", c.id, "code", c.refusal.Code, "err", c.refusal)
			if err := s.link.outbox.refuse(c.id, c.refusal); err != nil {
				return err
			}
			s.land(c.id)
		}
	}
	if len(done) == 0 {
		return nil
	}
	gone, err := s.link.outbox.remove(done)
	if err != nil {
		return err
	}
	for i, c := range done {
		if gone[i] {
			s.link.counters.add("outbox_acknowledged")
			s.land(c.id)
		} else {
			s.link.counters.add("ignored_late_answer")
		}
	}
	return nil
}

// land takes an entry out of the window.
func (s *session) land(id string) {
	s.link.outbox.clear(id)
	for _, lane := range s.lanes {
		for i, f := range lane.flights {
			if f.id == id {
				lane.flights = append(lane.flights[:i], lane.flights[i+1:]...)
				return
			}
		}
	}
}

// postpone lets a class wait after a refusal that may pass, and then begins again
// from its first entry. An entry that is refused again and again steps aside.
func (s *session) postpone(c settled) {
	for _, lane := range s.lanes {
		for _, f := range lane.flights {
			if f.id != c.id {
				continue
			}
			s.link.counters.add("outbox_postponed")
			s.link.outbox.strike(c.id, lane.class, s.link.o.Clock.Boot())
			lane.paused = s.link.o.Clock.Boot() + max(retryLater, min(c.refusal.RetryAfter(), wire.MaxLife))
			lane.again()
			return
		}
	}
	s.link.counters.add("ignored_late_answer")
}

// strike counts against what was sent just before the broker closed the
// connection: an entry that the broker does not bear must not end each session.
// It runs when drain has ended.
func (s *session) strike() {
	now := s.link.o.Clock.Boot()
	for _, lane := range s.lanes {
		for _, f := range lane.flights {
			if now-f.at < soonAfter {
				s.link.outbox.strike(f.id, lane.class, now)
			}
		}
	}
}
