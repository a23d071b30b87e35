package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/sync/fleet"
	"phonerack/sync/wire"
)

// ordered are the actions that the cloud may ask for as commands of the same name. What they take, and whether they may be done
// again after a restart has cut them, the registry says.
var ordered = []string{
	"ping", "identify", "screenshot", "reboot", "power_on", "power_off", "power_cycle", "quarantine", "quarantine_end", "maintenance", "slot_retry",
	"sign", "sign_end",
}

// Knows implements fleet.Runner.
func (p phones) Knows(name string) (known, idempotent bool) {
	d, err := p.rack.actions.Definition(name)
	return err == nil && slices.Contains(ordered, name), d.Idempotent
}

// Execute implements fleet.Runner: the registry of actions does a command, whose slot is an argument there.
func (p phones) Execute(ctx context.Context, c wire.Command) (fleet.Report, error) {
	known, idempotent := p.Knows(c.Name)
	if !known {
		return fleet.Report{}, wire.Refuse(wire.UnknownAction, map[string]any{"action": c.Name})
	}
	if !idempotent {
		if err := p.rack.noteOrigin(); err != nil {
			return fleet.Report{}, fmt.Errorf("note the database, so that an old copy of it does not do this again: %w", err)
		}
	}
	args := map[string]json.RawMessage{}
	if len(c.Args) > 0 {
		if err := wire.Unmarshal(c.Args, &args); err != nil {
			return fleet.Report{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": "its arguments are no object"})
		}
	}
	if c.Target.Slot != 0 {
		args["slot"] = json.RawMessage(strconv.Itoa(c.Target.Slot))
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return fleet.Report{}, err
	}
	if c.Name == "screenshot" || c.Name == "reboot" { // identify waits by itself, all others do not need the phone
		p.arrive(ctx, c.Target.Slot)
	}
	actor := action.Actor{Name: cloudActor, Role: action.Operator, Via: "cloud"}
	result, err := p.rack.actions.Call(ctx, actor, c.Name, raw, action.Pipes{})
	if err != nil {
		return fleet.Report{}, err
	}
	if shot, ok := result.(action.Screenshot); ok { // its picture goes beside it
		image := shot.Image
		shot.Image = nil
		made, err := report(shot)
		made.Attachments = []wire.Attachment{{Name: wire.ScreenAttachment, Type: "image/jpeg", Data: image}}
		return made, err
	}
	return report(result)
}

func report(detail any) (fleet.Report, error) {
	raw, err := json.Marshal(detail)
	return fleet.Report{Detail: raw}, err
}

// Ping implements action.Rack.
func (r *Rack) Ping() action.Pong { return action.Pong{Boot: r.store.Boot(), Slots: len(r.slots)} }

// How long a command waits for a phone that is on its way: it may have come with the start of rackd, or right after a
// restart of the phone. A slot in which nothing is plugged in is not waited for, but right after the start, when nobody
// has looked yet.
const (
	arrivalTime = time.Minute
	startTime   = 5 * time.Second
	lookAgain   = 200 * time.Millisecond
)

// arrive waits until a slot's phone can be used, or it is clear that it cannot. The caller looks which it is.
func (p phones) arrive(ctx context.Context, slot int) {
	s, ok := p.rack.slots[slot]
	if !ok {
		return
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < arrivalTime; {
		switch state, _ := s.snapshot(); state.State {
		case action.Connecting, action.Lost:
		case action.Empty:
			if time.Since(p.rack.began) > startTime {
				return
			}
		default:
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// How a phone shows which one it is: its screen goes dark and bright, each for blinkPause.
const (
	blinkPause     = 700 * time.Millisecond
	identifyMargin = 15 * time.Second
	brightTime     = 5 * time.Second // for the key that ends it, whatever else ends
)

// blinkAll has every free phone blink, and tells which did. It fails only if none could.
func (p phones) blinkAll(ctx, coming context.Context, lasts time.Duration) ([]int, error) {
	var (
		mu      sync.Mutex // guards what follows
		seen    = []int{}
		first   error
		blinked sync.WaitGroup
	)
	for slot := range p.rack.slots {
		blinked.Go(func() {
			err := p.blink(ctx, coming, slot, lasts)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				seen = append(seen, slot)
			} else if first == nil {
				first = err
			}
		})
	}
	blinked.Wait()
	if len(seen) == 0 && first != nil {
		return seen, first
	}
	slices.Sort(seen)
	return seen, nil
}

// blink makes a slot's screen dark and bright again and again, if nobody else has the phone. A phone that is on its way is waited for
// until coming ends.
func (p phones) blink(ctx, coming context.Context, slot int, lasts time.Duration) error {
	s, ok := p.rack.slots[slot]
	if !ok {
		return wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	}
	p.arrive(coming, slot)
	l, err := s.usable()
	if err != nil {
		return err
	}
	held, err := p.rack.leases.Acquire(slot, lease.Holder{Kind: lease.Recovery, Who: lease.Identify}, lasts+identifyMargin)
	if err != nil {
		return err
	}
	defer held.Release()
	controls := l.phone.Under(held)
	for begun := time.Now(); time.Since(begun) < lasts; {
		if err := blinkOnce(ctx, controls); err != nil {
			return err
		}
	}
	return nil
}

// blinkOnce makes a screen dark and bright again. It is bright in the end, also if the context ends in between.
func blinkOnce(ctx context.Context, screen interface {
	Key(ctx context.Context, name string) error
},
) error {
	if err := screen.Key(ctx, "sleep"); err != nil {
		return err
	}
	pause(ctx, blinkPause)
	bright, cancel := context.WithTimeout(context.WithoutCancel(ctx), brightTime)
	defer cancel()
	if err := screen.Key(bright, "wakeup"); err != nil {
		return err
	}
	pause(ctx, blinkPause)
	return context.Cause(ctx)
}

// pause waits for a while, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// backEvery is how often it is looked whether a phone is back.
const backEvery = 500 * time.Millisecond

// Reboot implements action.Care.
func (c *care) Reboot(ctx context.Context, slot int, fence action.Fence) (action.Rebooted, error) {
	s := c.rack.slots[slot]
	before, err := s.usable()
	if err != nil {
		return action.Rebooted{}, err
	}
	if err := fence.Check(); err != nil {
		return action.Rebooted{}, err
	}
	begun := time.Now()
	if err := farewell(ctx, before.conn, "reboot:"); err != nil {
		return action.Rebooted{}, wire.Refuse(wire.PhoneRejected, map[string]any{"slot": slot, "serial": before.serial, "what": "restart", "detail": "it has no such service"}).Because(err)
	}
	tick := time.NewTicker(backEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return action.Rebooted{}, wire.Refuse(wire.OutcomeUnknown, map[string]any{"slot": slot, "serial": before.serial, "what": "restart"})
		}
		if now, err := s.usable(); err == nil && now.conn != before.conn {
			return action.Rebooted{Slot: slot, Serial: now.serial, MS: time.Since(begun).Milliseconds()}, nil
		}
	}
}
