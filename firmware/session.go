package firmware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/phone/appium"
	"phonerack/firmware/action"
	"phonerack/usb/adb"
)

const (
	openTimeout   = 15 * time.Second
	attachTimeout = 90 * time.Second
	closeTimeout  = 3 * time.Second

	probeInterval = 30 * time.Second
	probeTimeout  = 20 * time.Second
	probeFailures = 3 // in a row make a phone lost
)

// session uses one phone from its link to its end. It returns when the phone cannot be used, is lost or unplugged, or
// ctx ends, and leaves the slot in the state that tells.
func (s *slot) session(ctx, attached context.Context, serial string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(attached, cancel)()

	l, err := s.connect(ctx, serial)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errUnplugged) {
			s.become(action.Failed, err.Error())
		}
		return err
	}
	defer s.close(l.conn)
	err = s.watch(ctx, l)
	if _, now := s.snapshot(); now != nil {
		s.part(now)
		s.stopHelpers(now)
	}
	if ctx.Err() == nil {
		s.become(action.Lost, err.Error())
	}
	return err
}

// connect opens the link, shakes hands and looks what the phone is. One whose screen cannot be used is connected all
// the same: it may be booting, and its shell tells more than a closed link.
func (s *slot) connect(ctx context.Context, serial string) (*live, error) {
	openCtx, cancel := context.WithTimeout(ctx, openTimeout)
	link, err := s.source.dial(openCtx)
	cancel()
	if err != nil {
		return nil, err
	}
	s.become(action.Connecting, "shaking hands")
	s.named(serial)
	// Connect has a bound of its own for a silent phone; a person may take as long as the phone is plugged in.
	conn, err := adb.Connect(ctx, link, s.hello)
	if err != nil {
		return nil, err
	}
	s.become(action.Connecting, "reading what the phone is")
	s.named(serial)
	l, err := s.attach(ctx, conn, serial)
	if err != nil {
		s.close(conn)
		return nil, err
	}
	return l, nil
}

// attach looks what a connected phone is and enters the state for it. It fails only if the connection has.
func (s *slot) attach(ctx context.Context, conn *adb.Conn, serial string) (*live, error) {
	attachCtx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	helper := appium.New(conn, appium.Options{Logger: s.log})
	p, err := phone.Attach(attachCtx, conn, phone.Options{Serial: serial, Strategies: s.knownWays(serial), Helpers: helper, Logger: s.log})
	switch {
	case err == nil:
		l := &live{conn: conn, phone: p, serial: p.Info().Serial, helper: helper, helpers: s.helpers, documents: s.documents, eyes: perception.NewObserver(p, perception.Options{})}
		l.hand = &hand{slot: s.number, observer: l.eyes.View()}
		s.meet(ctx, l)
		s.helpersOnArrival(ctx, attachCtx, l)
		s.ready(l)
		return l, nil
	case conn.Err() != nil, ctx.Err() != nil:
		return nil, fmt.Errorf("probe the phone: %w", err)
	}
	if err := probe(ctx, conn); err != nil {
		return nil, fmt.Errorf("probe the phone: %w", err)
	}
	l := &live{conn: conn, serial: serial}
	s.limited(l, err.Error())
	return l, nil
}

// watch waits until the connection ends, or the phone has not answered several times. A phone whose screen could not
// be used is looked at again.
func (s *slot) watch(ctx context.Context, l *live) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.conn.Done():
			return l.conn.Err()
		case <-tick.C:
		}
		if err := probe(ctx, l.conn); err == nil {
			failures = 0
			s.readBattery(ctx, l)
			if l.phone == nil { // it may have booted meanwhile
				if l, err = s.attach(ctx, l.conn, l.serial); err != nil {
					return err
				}
			}
		} else if failures++; failures == probeFailures {
			return fmt.Errorf("the phone does not answer: %w", err)
		}
	}
}

func probe(ctx context.Context, conn *adb.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := conn.Shell(ctx, "echo")
	return err
}

// close ends a connection without waiting for a link that hangs.
func (s *slot) close(conn *adb.Conn) {
	done := make(chan error, 1)
	go func() { done <- conn.Close() }()
	select {
	case err := <-done:
		if err != nil {
			s.log.Debug("connection closed", "err", err)
		}
	case <-time.After(closeTimeout):
		s.log.Error("the link to the phone does not close and is abandoned")
	}
}
