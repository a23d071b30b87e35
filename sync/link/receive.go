package link

import (
	"errors"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

// Reasons for which a frame is refused, as the counters name them.
var refusals = map[error]string{
	wire.ErrMalformed: "refused_malformed",
	wire.ErrTooLarge:  "refused_oversize",
	wire.ErrMAC:       "refused_mac",
	wire.ErrUnknown:   "refused_unknown_key",
	wire.ErrContent:   "refused_content",
}

// receive takes what the broker delivers until the session ends.
func (s *session) receive() error {
	for {
		select {
		case in := <-s.b.in:
			s.b.inBytes.Add(-int64(len(in.frame)))
			if err := s.take(in); err != nil {
				return err
			}
		case <-s.ctx.Done():
			return nil
		}
	}
}

// take proves a frame and acts on it. Nothing that fails is answered: nobody
// knows who has sent it.
func (s *session) take(in inbound) error {
	l := s.link
	l.counters.add("received")
	t, m, reason := s.prove(in)
	if reason != "" {
		l.counters.add(reason)
		l.o.Logger.Debug("a frame was refused", "topic", fmt.Sprintf("%.80q", in.topic), "reason", reason)
		return nil
	}
	if t.Kind == wire.KindSession && m.Type == wire.TypeWelcome {
		return s.takeWelcome(m)
	}
	s.mu.Lock()
	if m.Type == wire.TypeError && m.Corr != "" && m.Corr == s.hello {
		s.mu.Unlock()
		return refusedHello(m)
	}
	if s.welcome == nil {
		if len(s.early) < maxEarly {
			s.early = append(s.early, received{t, m})
		} else {
			l.counters.add("refused_overflow")
		}
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.act(received{t, m})
}

// prove tells whose a frame is, or why it is refused.
func (s *session) prove(in inbound) (t wire.Topic, m *wire.Message, reason string) {
	t, err := wire.ParseTopic(in.topic)
	if err != nil || t.Tenant != s.link.o.Tenant || t.Rack != s.link.o.Rack || t.Direction != wire.Down {
		return t, nil, "refused_topic"
	}
	desired := t.Kind == wire.KindDesired
	if in.retained && !desired {
		return t, nil, "refused_retained"
	}
	if desired && len(in.frame) == 0 {
		return t, nil, "ignored_empty_desired"
	}
	m, err = wire.Open(t, s.key, in.frame)
	for kind, name := range refusals {
		if errors.Is(err, kind) {
			return t, nil, name
		}
	}
	if err != nil || desired && m.Type != wire.TypeDesired {
		return t, nil, "refused_content"
	}
	if !desired && m.Sess != s.nonce {
		return t, nil, "refused_session"
	}
	return t, m, ""
}

// key looks up one of the enrolment's keys.
func (s *session) key(kid string) (wire.Keys, bool) {
	for _, k := range s.link.o.Keys() {
		if k.KID == kid {
			return k, true
		}
	}
	return wire.Keys{}, false
}

// takeWelcome opens the session, or takes the answer to a later hello.
func (s *session) takeWelcome(m *wire.Message) error {
	l := s.link
	var w wire.Welcome
	s.mu.Lock()
	expected := m.Corr != "" && m.Corr == s.hello
	sent, first := s.asked, s.welcome == nil
	s.mu.Unlock()
	if err := m.Decode(&w); err != nil || w.Nonce != s.nonce || !expected || w.Now <= 0 {
		l.counters.add("refused_welcome")
		return nil
	}
	if w.Session > s.number {
		if err := l.numbers.goOn(w.Session); err != nil {
			return err
		}
		return errBehind
	}
	now := l.o.Clock.Boot()
	trip := now - sent
	l.time.set(time.UnixMilli(w.Now).Add(trip / 2))
	l.mu.Lock()
	l.trip = trip
	l.mu.Unlock()
	s.mu.Lock()
	s.heard, s.set, s.owed, s.kids = now, now, 0, w.Keys
	early := s.early
	s.early = nil
	if first {
		s.welcome, s.greeted = &w, now
	}
	s.mu.Unlock()
	if err := l.keepFloor(); err != nil {
		l.o.Logger.Warn("the time floor was not stored", "err", err)
	}
	// To the cloud a hello says online.
	if now, _ := l.saysNow(); now.presence != wire.Online {
		if err := s.announce(now); err != nil {
			return err
		}
	}
	if !first {
		return nil
	}
	return s.begin(m, early)
}

// refusedHello is why a session cannot be: numbers that are history, a rack that
// is revoked. Little of that passes by itself.
func refusedHello(m *wire.Message) error {
	var r wire.Refusal
	if err := m.Decode(&r); err != nil {
		return err
	}
	err := fmt.Errorf("%w: %w", errRefused, &r)
	if r.Retryable {
		return err
	}
	return slow(err)
}

// begin makes the session everybody's, and acts on what came before its welcome.
func (s *session) begin(m *wire.Message, early []received) error {
	l := s.link
	l.mu.Lock()
	l.last = nil
	l.mu.Unlock()
	l.session.Store(s)
	if s.ctx.Err() != nil { // it ended meanwhile, and live has looked already
		l.session.CompareAndSwap(s, nil)
		return nil
	}
	l.setState(Online)
	l.o.Logger.Info("session with the cloud", "rack", l.o.Rack, "broker", l.broker.Redacted(), "session", s.number)
	close(s.welcomed)
	l.dispatch(wire.KindSession, m)
	for _, r := range early {
		if err := s.act(r); err != nil {
			return err
		}
	}
	return nil
}

// act routes a proved message: to who waits for it, to the outbox, or to a handler.
func (s *session) act(r received) error {
	l, m := s.link, r.m
	now, _ := l.time.Now()
	if r.topic.Kind == wire.KindDesired {
		s.takeDesired(m)
		return nil
	}
	if m.Expired(now) {
		l.counters.add("refused_expired")
		return nil
	}
	if s.seen(m.ID) {
		l.counters.add("ignored_repeated")
		return nil
	}
	s.mu.Lock()
	s.heard = l.o.Clock.Boot()
	s.owed = 0
	x := s.exchanges[m.Corr]
	s.mu.Unlock()
	switch {
	case x != nil:
		select {
		case x.answers <- m:
		default:
			l.counters.add("refused_overflow")
		}
	case m.Type == wire.TypeError || m.Type == wire.TypeTaskAck || m.Type == wire.TypeCommandAck || m.Type == wire.TypeEventAck:
		s.settle(m)
	case l.dispatch(r.topic.Kind, m):
	case m.Corr != "" && m.Type.Known():
		l.counters.add("ignored_late_answer")
	default:
		return s.unsupported(r)
	}
	return nil
}

// takeDesired lets the configuration through if it is none that is over.
func (s *session) takeDesired(m *wire.Message) {
	l := s.link
	var d wire.Desired
	if err := m.Decode(&d); err != nil || d.Version == 0 {
		l.counters.add("refused_content")
		return
	}
	s.mu.Lock()
	least := s.welcome.DesiredVersion
	s.mu.Unlock()
	if d.Version < least {
		l.counters.add("refused_stale_desired")
		return
	}
	err := l.numbers.desire(d)
	switch {
	case errors.Is(err, errStale):
		l.counters.add("refused_stale_desired")
	case err != nil:
		l.o.Logger.Error("a desired configuration could not be counted", "version", d.Version, "err", err)
	default:
		l.dispatch(wire.KindDesired, m)
	}
}

// unsupported answers what this version cannot do.
func (s *session) unsupported(r received) error {
	s.link.counters.add("unsupported")
	now, _ := s.link.time.Now()
	m, err := wire.NewMessage(wire.TypeError, now, wire.MaxLife, wire.Refuse(wire.Unsupported, map[string]any{"what": string(r.m.Type)}))
	if err != nil {
		return err
	}
	m.Corr = r.m.ID
	if err := s.say(s.ctx, r.topic.Kind, m); err != nil && s.ctx.Err() == nil {
		return err
	}
	return nil
}

// seen remembers an id and tells whether it was here already in this session.
func (s *session) seen(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return true
	}
	if len(s.order) < remembered {
		s.order = append(s.order, id)
	} else {
		delete(s.ids, s.order[s.next])
		s.order[s.next] = id
		s.next = (s.next + 1) % remembered
	}
	s.ids[id] = true
	return false
}
