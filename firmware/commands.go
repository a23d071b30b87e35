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
	"phonerack/hal/led"
	"phonerack/sync/fleet"
	"phonerack/sync/wire"
)

// command is what this rack knows of a command by its name.
type command struct {
	idempotent bool // it may be done again if a restart has cut it
	do         func(p phones, ctx context.Context, c wire.Command) (fleet.Report, error)
}

var commands = map[string]command{
	"ping":       {true, phones.ping},
	"identify":   {true, phones.identify},
	"screenshot": {true, phones.screenshot},
	"reboot":     {false, phones.reboot},

	"power_on":       {true, byAction("power_on")},
	"power_off":      {true, byAction("power_off")},
	"power_cycle":    {false, byAction("power_cycle")},
	"quarantine":     {true, byAction("quarantine")},
	"quarantine_end": {true, byAction("quarantine_end")},
	"maintenance":    {true, byAction("maintenance")},
	"slot_retry":     {true, byAction("slot_retry")},
	"sign":           {true, byAction("sign")},
	"sign_end":       {true, byAction("sign_end")},
}

// byAction has the registry of actions do a command: its slot is an argument there.
func byAction(name string) func(p phones, ctx context.Context, c wire.Command) (fleet.Report, error) {
	return func(p phones, ctx context.Context, c wire.Command) (fleet.Report, error) {
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
		actor := action.Actor{Name: cloudActor, Role: action.Operator, Via: "cloud"}
		result, err := p.rack.actions.Call(ctx, actor, name, raw, action.Pipes{})
		if err != nil {
			return fleet.Report{}, err
		}
		return report(result)
	}
}

// Knows implements fleet.Runner.
func (p phones) Knows(name string) (known, idempotent bool) {
	c, known := commands[name]
	return known, c.idempotent
}

// Execute implements fleet.Runner.
func (p phones) Execute(ctx context.Context, c wire.Command) (fleet.Report, error) {
	known, ok := commands[c.Name]
	if !ok {
		return fleet.Report{}, wire.Refuse(wire.UnknownAction, map[string]any{"action": c.Name})
	}
	if !known.idempotent {
		if err := p.rack.noteOrigin(); err != nil {
			return fleet.Report{}, fmt.Errorf("note the database, so that an old copy of it does not do this again: %w", err)
		}
	}
	return known.do(p, ctx, c)
}

func report(detail any) (fleet.Report, error) {
	raw, err := json.Marshal(detail)
	return fleet.Report{Detail: raw}, err
}

func (p phones) ping(context.Context, wire.Command) (fleet.Report, error) {
	return report(map[string]any{"boot": p.rack.store.Boot(), "slots": len(p.rack.slots)})
}

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

// screenshot takes a picture of a slot's phone. Looking needs no lease.
func (p phones) screenshot(ctx context.Context, c wire.Command) (fleet.Report, error) {
	slot := c.Target.Slot
	p.arrive(ctx, slot)
	phone, err := p.rack.Phone(slot)
	if err != nil {
		return fleet.Report{}, err
	}
	seen, err := phone.Observe(ctx, action.Want{Image: true})
	if err != nil {
		return fleet.Report{}, err
	}
	if seen.Image == nil {
		return fleet.Report{}, wire.Refuse(wire.ObservationFailed, map[string]any{"slot": slot, "part": "the picture", "reason": "the phone gave none"})
	}
	made, err := report(map[string]any{"slot": slot, "package": seen.Package, "width": seen.Width, "height": seen.Height})
	made.Attachments = []wire.Attachment{{Name: wire.ScreenAttachment, Type: "image/jpeg", Data: seen.Image}}
	return made, err
}

// How a phone shows which one it is: its screen goes dark and bright, each for blinkPause.
const (
	blinkPause     = 700 * time.Millisecond
	identifyTime   = 4 * time.Second // unless the command says another
	maxIdentify    = 600             // seconds
	identifyMargin = 15 * time.Second
	brightTime     = 5 * time.Second // for the key that ends it, whatever else ends
)

// identify makes a person see which phone is in a slot, or which rack it is: then each phone that nobody else has blinks.
func (p phones) identify(ctx context.Context, c wire.Command) (fleet.Report, error) {
	lasts := identifyTime
	if len(c.Args) > 0 {
		var args struct {
			Seconds int `json:"seconds"`
		}
		if err := wire.Unmarshal(c.Args, &args); err != nil || args.Seconds < 0 || args.Seconds > maxIdentify {
			return fleet.Report{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("seconds is not 1 to %d", maxIdentify)})
		}
		if args.Seconds > 0 {
			lasts = time.Duration(args.Seconds) * time.Second
		}
	}
	if c.Target.Slot != 0 {
		return p.blink(ctx, c.Target.Slot, lasts)
	}
	if light := p.rack.care.light; light != nil {
		light.Identify(min(lasts, led.IdentifyFor))
		defer light.Identify(0)
	}
	seen, err := p.blinkAll(ctx, lasts)
	if err != nil {
		return fleet.Report{}, err
	}
	return report(map[string]any{"slots": seen})
}

// blinkAll has every free phone blink, and tells which did. It fails only if none could.
func (p phones) blinkAll(ctx context.Context, lasts time.Duration) ([]int, error) {
	var (
		mu      sync.Mutex // guards what follows
		seen    = []int{}
		first   error
		blinked sync.WaitGroup
	)
	for slot := range p.rack.slots {
		blinked.Go(func() {
			_, err := p.blink(ctx, slot, lasts)
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

// blink makes a slot's screen dark and bright again and again, if nobody else has the phone.
func (p phones) blink(ctx context.Context, slot int, lasts time.Duration) (_ fleet.Report, err error) {
	s, ok := p.rack.slots[slot]
	if !ok {
		return fleet.Report{}, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	}
	p.arrive(ctx, slot)
	l, err := s.usable()
	if err != nil {
		return fleet.Report{}, err
	}
	held, err := p.rack.leases.Acquire(slot, lease.Holder{Kind: lease.Recovery, Who: "identify"}, lasts+identifyMargin)
	if err != nil {
		return fleet.Report{}, err
	}
	defer held.Release()
	controls := l.phone.Under(held)
	for begun := time.Now(); time.Since(begun) < lasts; {
		if err := blinkOnce(ctx, controls); err != nil {
			return fleet.Report{}, err
		}
	}
	state, _ := s.snapshot()
	return report(map[string]any{"slot": slot, "label": state.Label, "port": state.Port, "serial": state.Serial, "model": state.Model})
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

const (
	rebootTerm = fleet.DefaultCommandTime // the lease of a phone that restarts
	backEvery  = 500 * time.Millisecond   // looks whether it is back
)

// reboot restarts a slot's phone, if nobody else has it, and waits until it can be used again.
func (p phones) reboot(ctx context.Context, c wire.Command) (fleet.Report, error) {
	slot := c.Target.Slot
	s, ok := p.rack.slots[slot]
	if !ok {
		return fleet.Report{}, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	}
	p.arrive(ctx, slot)
	before, err := s.usable()
	if err != nil {
		return fleet.Report{}, err
	}
	held, err := p.rack.leases.Acquire(slot, lease.Holder{Kind: lease.Recovery, Who: "reboot"}, rebootTerm)
	if err != nil {
		return fleet.Report{}, err
	}
	defer held.Release()
	if err := held.Check(); err != nil {
		return fleet.Report{}, err
	}
	begun := time.Now()
	if err := reboot(ctx, before.conn); err != nil {
		return fleet.Report{}, wire.Refuse(wire.PhoneRejected, map[string]any{"slot": slot, "serial": before.serial, "what": "restart", "detail": "it has no such service"}).Because(err)
	}
	tick := time.NewTicker(backEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fleet.Report{}, wire.Refuse(wire.OutcomeUnknown, map[string]any{"slot": slot, "serial": before.serial, "what": "restart"})
		}
		if now, err := s.usable(); err == nil && now.conn != before.conn {
			return report(map[string]any{"slot": slot, "serial": now.serial, "ms": time.Since(begun).Milliseconds()})
		}
	}
}
