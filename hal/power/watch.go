package power

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// absent is the generation of a hub that was not there yet.
const absent = -1

// How often what is wrong is put right before it is left alone, and for how long.
const (
	maxInARow = 3
	rest      = 10 * time.Minute
	calm      = time.Minute // as wanted for so long: it begins to count anew
)

// Run applies what is wanted, then looks again and again whether it still is: hubs that have come anew
// power all their ports, kernels give power back, somebody pulls a plug. It ends with its context, when
// nothing of it runs any more.
func (s *Supply) Run(ctx context.Context) error {
	began := time.Now()
	for _, o := range s.outlets {
		s.note(o, func() { o.offAt = began }) // what is off now may be so since a moment ago
	}
	generations := map[string]int{}
	s.renewed(generations)
	s.putRight(ctx, generations, func(*outlet) cause { return applied })
	tick := time.NewTicker(s.config.Poll)
	defer tick.Stop()
	var hearing sync.WaitGroup
	defer hearing.Wait()
	ear := make(chan struct{}, 1) // a token for who hears
	for {
		otherwise := byItself
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.wake:
			otherwise = applied
		}
		select {
		case ear <- struct{}{}:
			hearing.Go(func() {
				defer func() { <-ear }()
				s.hear(ctx)
			})
		default: // a phone that hangs keeps nothing from being put right
		}
		anew := s.renewed(generations)
		if len(anew) > 0 {
			if !s.Maintenance() { // then hands may have done it
				s.accuse(anew)
			}
			// A hub may be silent for three seconds, and its own power-up undoes what is done meanwhile.
			if err := sleep(ctx, min(3*time.Second, s.config.Silence)); err != nil {
				return err
			}
		}
		s.putRight(ctx, generations, func(o *outlet) cause {
			if anew[o.HubPath] {
				return byReset
			}
			return otherwise
		})
	}
}

// cause is why an outlet is not as wanted.
type cause string

const (
	applied  cause = "nobody has applied it yet" // at the start, and after maintenance
	byReset  cause = "its hub has enumerated"
	byItself cause = "by itself"
)

// renewed tells which hubs have enumerated since the last call.
func (s *Supply) renewed(generations map[string]int) map[string]bool {
	anew := map[string]bool{}
	for _, o := range s.outlets {
		now, ok := s.config.Hubs.Generation(o.HubPath)
		was, known := generations[o.HubPath]
		switch {
		case !known && !ok:
			generations[o.HubPath] = absent
		case !ok: // gone: it has another number when it comes back
		case known && was != now:
			anew[o.HubPath] = true
			fallthrough
		default:
			generations[o.HubPath] = now
		}
	}
	return anew
}

// blameFor is how soon after a port was switched its hub enumerates when that was the reason: it is away for a second or two,
// and looked for each Poll.
const blameFor = 6 * time.Second

// accuse names a port that was just switched off, and so has reset its hub. One that nobody looked at meanwhile is found here.
// Several hubs that come at once have another reason.
func (s *Supply) accuse(anew map[string]bool) {
	if len(anew) > 1 {
		return
	}
	for _, o := range s.outlets {
		if !anew[o.HubPath] || !o.isPort() || s.fedAnew(o) {
			continue
		}
		s.mu.Lock()
		guilty := o.busy == "" && o.setAt == o.offAt && time.Since(o.setAt) < blameFor
		s.mu.Unlock()
		if !guilty {
			continue
		}
		err := s.found(o, ResetsHub)
		s.note(o, func() { o.fault = err })
	}
}

// fedAnew reports whether something else that feeds the port's hub was switched just now.
func (s *Supply) fedAnew(o *outlet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.outlets, func(other *outlet) bool {
		return other != o && other.cuts(o.HubPath) && (other.busy != "" || time.Since(other.setAt) < blameFor)
	})
}

// putRight makes each outlet what is wanted of it, hubs beside each other.
func (s *Supply) putRight(ctx context.Context, generations map[string]int, why func(*outlet) cause) {
	var hubs sync.WaitGroup
	defer hubs.Wait()
	for name := range s.hubs {
		hubs.Go(func() {
			for _, o := range s.outlets {
				if o.Hub == name && ctx.Err() == nil {
					s.putOutletRight(ctx, o, generations[o.HubPath], why(o))
				}
			}
		})
	}
}

// putOutletRight is a no-op for an outlet that is as wanted, that is being switched, that was put right
// in vain, or whose hub is of another generation by now: that is for the next look.
func (s *Supply) putOutletRight(ctx context.Context, o *outlet, generation int, why cause) {
	s.mu.Lock()
	wanted, resting := o.record.On, time.Now().Before(o.restAfter)
	vain := !wanted && o.record.Cut == ResetsHub // each try would disturb all phones of the hub
	skip := s.maintenance || resting || vain
	s.mu.Unlock()
	if skip || len(s.hubs[o.Hub]) > 0 { // or something is done on the hub just now
		return
	}
	on, ok := s.isOn(ctx, o)
	if !ok {
		return // silent, or gone with its hub: the next look may find it
	}
	if now, there := s.config.Hubs.Generation(o.HubPath); on == wanted || there && now != generation {
		return
	}
	rested := s.blame(o, why)
	s.log.Warn("power is not as wanted", "outlet", o.Name, "wanted", wanted, "why", why, "left_alone", rested)
	if rested {
		s.leaveAlone(o, wanted)
		return
	}
	doing := "switching off"
	if wanted {
		doing = "switching on"
	}
	err := s.operate(ctx, o, doing, Automatic, wanted, func() error {
		if wanted {
			return s.turnOn(ctx, o, Automatic)
		}
		return s.cutOff(ctx, o, Automatic) // whether it stays off is for the next look
	})
	if err != nil && !errors.Is(err, ErrMaintenance) && !errors.Is(err, ErrOvertaken) && ctx.Err() == nil {
		s.log.Warn("power could not be put right", "outlet", o.Name, "wanted", wanted, "err", err)
	}
}

// blame counts why an outlet is not as wanted; true when it is now left alone for a while.
func (s *Supply) blame(o *outlet, why cause) (rested bool) {
	if why == applied {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(o.wrongAt) > calm {
		o.inARow = 0
	}
	o.wrongAt, o.trial = time.Now(), nil // whoever had power meanwhile cannot tell what off does
	if o.inARow++; o.inARow > maxInARow {
		o.inARow, o.restAfter, rested = 0, time.Now().Add(rest), true
	}
	switch {
	case o.record.On:
	case why == byReset:
		o.resets++
	default:
		o.repowered++
	}
	return rested
}

func (s *Supply) wanted(o *outlet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.record.On
}

// leaveAlone notes that an outlet does not stay as it was put.
func (s *Supply) leaveAlone(o *outlet, wanted bool) {
	if wanted {
		s.note(o, func() { o.fault = ErrNotSet })
		return
	}
	err := s.found(o, Repowers)
	s.note(o, func() { o.fault = err })
}
