package link

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"phonerack/sync/wire"
)

// Bounds of a session.
const (
	helloLife  = 30 * time.Second
	clockStep  = time.Hour // after this time the cloud is asked for the time again
	remembered = 1024      // ids of received messages
	maxEarly   = 32        // messages that come before the welcome
)

// Why a session ends.
var (
	errNoWelcome = errors.New("the cloud does not answer the hello")
	errRefused   = errors.New("the cloud refuses the session")
	errSilent    = errors.New("the cloud does not answer any more")
	errBehind    = errors.New("the cloud has seen later sessions of this generation; going on from there")
	errGoodbye   = errors.New("the link stops")
)

// ownEnds are those that the rack chose; the others came from the connection.
var ownEnds = []error{errNoWelcome, errRefused, errSilent, errBehind, errGoodbye}

// session is one connection, from the hello to its end.
type session struct {
	link   *Link
	b      *broker
	number uint64
	nonce  string
	ctx    context.Context // ends with the session; its cause says why
	end    context.CancelCauseFunc
	places chan struct{} // one for each request in flight
	acks   chan settled  // for drain
	lanes  []*sending    // drain's own

	mu        sync.Mutex // guards what follows
	hello     string     // id of the newest hello
	greeted   time.Duration
	asked     time.Duration // when it went out
	owed      time.Duration // when the hello went out after which nothing came; 0 for none
	heard     time.Duration // when the cloud last said something; on the boot clock
	set       time.Duration // when it last told the time
	kids      []string      // that the cloud takes
	welcome   *wire.Welcome // nil before it
	welcomed  chan struct{} // closed by it
	early     []received
	exchanges map[string]*Exchange
	ids       map[string]bool
	order     []string // of ids, a ring
	next      int
}

// received is a message that is proved to be the cloud's.
type received struct {
	topic wire.Topic
	m     *wire.Message
}

// hold has one session, from dialling to its end.
func (l *Link) hold(ctx context.Context) ended {
	number, err := l.numbers.nextSession()
	if err != nil {
		return ended{err: slow(err)}
	}
	l.mu.Lock()
	l.number = number
	l.mu.Unlock()
	l.setState(Connecting)
	l.counters.add("sessions")
	s := &session{
		link: l, number: number, nonce: nonce(), places: make(chan struct{}, maxInFlight), acks: make(chan settled, maxAcks),
		welcomed: make(chan struct{}), exchanges: map[string]*Exchange{}, ids: map[string]bool{},
	}
	will, err := s.state(says{presence: wire.Offline})
	if err != nil {
		return ended{err: slow(err)}
	}
	if s.b, err = l.connect(ctx, will); err != nil {
		return ended{err: err}
	}
	l.setState(Greeting)
	s.ctx, s.end = context.WithCancelCause(context.Background())
	return s.live(ctx)
}

// live runs a session over a fresh connection until it ends, and cleans up.
func (s *session) live(ctx context.Context) ended {
	var parts sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { s.end(errGoodbye) })
	defer stop()
	part := func(run func() error) {
		parts.Go(func() {
			if err := run(); err != nil {
				s.end(err)
			}
		})
	}
	part(func() error { return s.b.publish(s.ctx) })
	part(s.receive)
	part(s.greet)
	part(s.drain)
	var e ended
	select {
	case err := <-s.b.lost:
		s.b.lost <- err // hangUp waits for it too
		s.end(fmt.Errorf("the connection is lost: %w", err))
	case <-s.ctx.Done():
	}
	s.link.session.CompareAndSwap(s, nil)
	e.err = context.Cause(s.ctx)
	e.remote = !slices.ContainsFunc(ownEnds, func(own error) bool { return errors.Is(e.err, own) })
	parts.Wait()
	s.part(e.err)
	if e.remote {
		s.strike()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.welcomed = s.welcome != nil; e.welcomed {
		e.lasted = s.link.o.Clock.Boot() - s.greeted
	}
	return e
}

// part ends the connection: politely if the link stops.
func (s *session) part(why error) {
	if errors.Is(why, errGoodbye) {
		if frame, err := s.state(says{presence: wire.Offline}); err == nil {
			s.b.goodbye(s.link.topic(wire.KindState), frame)
			return
		}
	}
	s.b.hangUp()
}

// greet opens the session and watches over it.
func (s *session) greet() error {
	if err := s.b.subscribe(s.ctx, wire.DownFilter(s.link.o.Tenant, s.link.o.Rack)); err != nil {
		return err
	}
	said, changed := s.link.saysNow()
	if err := s.announce(said); err != nil {
		return err
	}
	if err := s.sayHello(); err != nil {
		return err
	}
	again := time.NewTimer(helloAgain)
	defer again.Stop()
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	for {
		select {
		case <-s.welcomed:
			return s.watch(said, changed)
		case <-again.C:
			s.link.round()
			if err := s.sayHello(); err != nil {
				return err
			}
		case <-timer.C:
			s.link.tryNextKey()
			return errNoWelcome
		case <-s.ctx.Done():
			return nil
		}
	}
}

// watch keeps the retained state true, and asks a silent cloud for a sign of life.
func (s *session) watch(said says, changed <-chan struct{}) error {
	beat := s.link.o.Heartbeat
	ticker := time.NewTicker(max(beat/5, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.link.round()
			if err := s.beat(beat); err != nil {
				return err
			}
		case <-changed:
			var now says
			if now, changed = s.link.saysNow(); now == said {
				continue
			}
			said = now
			if err := s.announce(now); err != nil {
				return err
			}
		case <-s.ctx.Done():
			return nil
		}
	}
}

// beat ends a session whose hello got no answer for two intervals, and says hello
// again after one interval of silence, or when the time is to be asked for.
func (s *session) beat(interval time.Duration) error {
	now := s.link.o.Clock.Boot()
	s.mu.Lock()
	owed, quiet, age := s.owed, now-s.heard, now-s.set
	s.mu.Unlock()
	if err := s.link.keepFloor(); err != nil {
		s.link.o.Logger.Warn("the time floor was not stored", "err", err)
	}
	if owed != 0 {
		if now-owed >= 2*interval {
			return fmt.Errorf("%w: nothing for %s", errSilent, (now - owed).Round(time.Second))
		}
		return nil
	}
	if quiet < interval && age < clockStep {
		return nil
	}
	return s.sayHello()
}

// sayHello sends a hello of this session: the same nonce and numbers each time.
func (s *session) sayHello() error {
	l := s.link
	now, _ := l.time.Now()
	m, err := wire.NewMessage(wire.TypeHello, now, helloLife, wire.Hello{
		Nonce: s.nonce, Generation: l.o.Generation, Boot: l.o.Boot, Session: s.number, Versions: l.o.Versions,
	})
	if err != nil {
		return err
	}
	at := l.o.Clock.Boot()
	s.mu.Lock()
	s.hello, s.asked, s.owed = m.ID, at, max(1, at)
	s.mu.Unlock()
	return s.say(s.ctx, wire.KindSession, m)
}

// announce publishes the retained state.
func (s *session) announce(now says) error {
	frame, err := s.state(now)
	if err != nil {
		return err
	}
	if err := s.b.send(s.ctx, s.link.topic(wire.KindState), frame); err != nil {
		return nil // the session is over
	}
	return nil
}

// state makes the frame of the retained state, and of the will.
func (s *session) state(say says) ([]byte, error) {
	l := s.link
	now, _ := l.time.Now()
	m, err := wire.NewMessage(wire.TypeState, now, 0, wire.State{
		State: say.presence, Generation: l.o.Generation, Session: s.number, Boot: l.o.Boot, Versions: l.o.Versions, Desired: say.desired,
	})
	if err != nil {
		return nil, err
	}
	return s.seal(wire.KindState, m)
}

// seal signs a message for one of the rack's topics.
func (s *session) seal(k wire.Kind, m *wire.Message) ([]byte, error) {
	l := s.link
	key, err := s.signingKey()
	if err != nil {
		return nil, err
	}
	m.Boot, m.Seq = l.o.Boot, l.seq.Add(1)
	frame, err := wire.Seal(l.topic(k), key, m)
	if errors.Is(err, wire.ErrTooLarge) || err == nil && len(frame) > l.o.MaxFrame {
		return nil, wire.Refuse(wire.PayloadTooLarge, map[string]any{
			"what": string(m.Type), "size": max(len(frame), len(m.Body)), "limit": l.o.MaxFrame,
		})
	}
	return frame, err
}

// signingKey is the newest that the cloud takes; before the welcome, the one
// whose turn it is.
func (s *session) signingKey() (wire.Keys, error) {
	keys := s.link.o.Keys()
	if len(keys) == 0 {
		return wire.Keys{}, slow(errors.New("there are no keys: the rack is not enrolled"))
	}
	s.mu.Lock()
	kids := s.kids
	s.mu.Unlock()
	for _, k := range keys {
		if slices.Contains(kids, k.KID) {
			return k, nil
		}
	}
	return keys[int(s.link.keyTurn.Load())%len(keys)], nil
}

// say signs and sends a message of the session.
func (s *session) say(ctx context.Context, k wire.Kind, m *wire.Message) error {
	m.Sess = s.nonce
	frame, err := s.seal(k, m)
	if err != nil {
		return err
	}
	if err := s.b.send(ctx, s.link.topic(k), frame); err != nil {
		return err
	}
	s.link.counters.add("sent")
	return nil
}

// nonce is 192 random bits.
func nonce() string {
	b := make([]byte, 24)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}
