package link

import (
	"context"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

func (s *session) telemetry(ctx context.Context, body any) error {
	now, _ := s.link.time.Now()
	m, err := wire.NewMessage(wire.TypeTelemetry, now, wire.MaxLife, body)
	if err != nil {
		return err
	}
	return s.ask(ctx, wire.KindTelemetry, m)
}

// ask says something for a caller, whose context and the session's both end it.
func (s *session) ask(ctx context.Context, k wire.Kind, m *wire.Message) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.say(both, k, m)
	switch {
	case err == nil || both.Err() == nil:
		return err
	case s.ctx.Err() != nil:
		return ErrOffline
	}
	return late(ctx)
}

// open sends a request and registers who waits for its answers.
func (s *session) open(ctx context.Context, c Call) (*Exchange, error) {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, late(ctx)
	case <-s.ctx.Done():
		return nil, ErrOffline
	}
	m, err := s.request(ctx, c)
	if err != nil {
		<-s.places
		return nil, err
	}
	x := &Exchange{
		id: m.ID, sent: s.link.o.Clock.Boot(), ended: s.ctx.Done(),
		answers: make(chan *wire.Message, maxAnswers),
	}
	x.release = func() {
		s.mu.Lock()
		delete(s.exchanges, m.ID)
		s.mu.Unlock()
		<-s.places
	}
	s.mu.Lock()
	taken := s.exchanges[m.ID] != nil
	if !taken {
		s.exchanges[m.ID] = x
	}
	s.mu.Unlock()
	if taken {
		<-s.places
		return nil, fmt.Errorf("%s %s waits for its answer already", c.Type, m.ID)
	}
	if err := s.ask(ctx, c.Kind, m); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// request makes the message of a call; it expires when its caller stops waiting.
func (s *session) request(ctx context.Context, c Call) (*wire.Message, error) {
	life := wire.MaxLife
	if deadline, ok := ctx.Deadline(); ok {
		life = min(life, time.Until(deadline))
	}
	if life < time.Millisecond {
		return nil, ErrTimeout
	}
	now, _ := s.link.time.Now()
	m, err := wire.NewMessage(c.Type, now, life, c.Body)
	if err != nil {
		return nil, err
	}
	if c.ID != "" {
		m.ID = c.ID
	}
	for _, a := range c.Attachments {
		m.Attach(a.Name, a.Type, a.Data)
	}
	return m, nil
}
