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
	"phonerack/firmware/health"
	"phonerack/usb/adb"
)

const (
	openTimeout  = 15 * time.Second
	closeTimeout = 3 * time.Second

	probeTimeout  = 20 * time.Second // that a harmless question may take; Options.Patience changes it
	attachFactor  = 9                // halves of it that may take what is asked of a phone that has come: 90 s
	probeFailures = 3                // in a row make a phone lost
)

// session uses one phone from its link to its end. It returns when the phone cannot be used, is lost or unplugged, or
// ctx ends, and leaves the slot in the state that tells.
func (s *slot) session(ctx, attached context.Context, serial string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(attached, cancel)()

	var l *live
	var err error
	s.patiently(func() { l, err = s.connect(ctx, serial) })
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errUnplugged) {
			s.become(action.Failed, err.Error())
		}
		return err
	}
	defer s.close(l.conn)
	err = s.watch(ctx, l)
	if errors.Is(err, adb.ErrDisconnected) && !errors.Is(err, adb.ErrTimeout) {
		s.tear(attached)
	}
	if _, now := s.snapshot(); now != nil {
		s.part(now)
		s.stopHelpers(now)
	}
	if ctx.Err() == nil {
		s.become(action.Lost, err.Error())
	}
	return err
}

// tear notes the attachment whose link has ended because the phone left, which the kernel may list for some time yet.
func (s *slot) tear(attached context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = attached
}

// hasLeft tells whether the phone of an attachment has left, as far as its link showed.
func (s *slot) hasLeft(attached context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.torn == attached
}

// connect opens the link, shakes hands and looks what the phone is. One whose screen cannot be used is connected all
// the same: it may be booting, and its shell tells more than a closed link.
func (s *slot) connect(ctx context.Context, serial string) (*live, error) {
	openCtx, cancel := context.WithTimeout(ctx, openTimeout)
	link, err := s.source.dial(openCtx)
	cancel()
	if errors.Is(err, errUnplugged) {
		s.look = health.Look{Bus: health.BusEmpty}
	} else if ctx.Err() == nil {
		s.look = health.Look{Bus: health.BusADB, Open: openSeen(err), Phone: serial}
	}
	if errors.Is(err, adb.ErrHeld) {
		if s.look.Holder = s.heldBy(ctx); s.look.Holder != "" {
			err = fmt.Errorf("%w: it is %s", err, s.look.Holder)
		}
	}
	if err != nil {
		return nil, err
	}
	if s.anew {
		link, s.anew = fresh{link}, false
	}
	s.become(action.Connecting, "shaking hands")
	s.named(serial)
	// Connect has a bound of its own for a silent phone; a person may take as long as the phone is plugged in.
	conn, err := adb.Connect(ctx, link, s.hello)
	s.look.Greet, s.look.Stall = greetSeen(err), errors.Is(err, adb.ErrStall)
	if err != nil {
		return nil, err
	}
	s.look.Kind, s.look.Model = conn.Banner().Type, conn.Banner().Model
	s.become(action.Connecting, "reading what the phone is")
	s.named(serial)
	used := false
	defer func() { // after a panic too: a link that stays open keeps the next one from the phone
		if !used {
			s.close(conn)
		}
	}()
	l, err := s.attach(ctx, conn, serial)
	used = err == nil
	return l, err
}

// attach looks what a connected phone is and enters the state for it. It fails only if the connection has.
func (s *slot) attach(ctx context.Context, conn *adb.Conn, serial string) (*live, error) {
	attachCtx, cancel := context.WithTimeout(ctx, s.patience*attachFactor/2)
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
		s.seen(l)
		s.tell()
		return l, nil
	case conn.Err() != nil, ctx.Err() != nil:
		s.broke(conn.Err())
		return nil, fmt.Errorf("probe the phone: %w", err)
	}
	if err := s.probe(ctx, conn); err != nil {
		return nil, fmt.Errorf("probe the phone: %w", err)
	}
	l := &live{conn: conn, serial: serial}
	s.limited(l, err.Error())
	s.answer()
	return l, nil
}

// watch waits until the connection ends, or the phone has not answered several times, or recovery needs the link closed. It
// looks at the phone whenever that is asked for. A phone whose screen could not be used is looked at again.
func (s *slot) watch(ctx context.Context, l *live) error {
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.conn.Done():
			s.broke(l.conn.Err())
			return l.conn.Err()
		case e := <-s.errands:
			return errErrand{e}
		case <-s.beat:
			stall(s.String())
			s.progress.Progress()
			continue
		case <-s.asked:
		}
		err := s.probe(ctx, l.conn)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.tell()
			if failures++; failures == probeFailures {
				return fmt.Errorf("the phone does not answer: %w", err)
			}
			continue
		}
		failures = 0
		s.seen(l)
		s.tell()
		s.readBattery(ctx, l)
		s.examine(ctx, l)
		if l.phone == nil { // it may have booted meanwhile
			if l, err = s.attach(ctx, l.conn, l.serial); err != nil {
				return err
			}
		}
	}
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
