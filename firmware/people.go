package firmware

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/hal/led"
	"phonerack/hal/power"
	"phonerack/sync/wire"
)

// Care implements action.Rack.
func (r *Rack) Care() action.Care { return r.care }

// say is a finding in people's words.
func say(f health.Finding, lang string) action.Saying {
	s := action.Saying{Code: f.Code}
	s.Title, s.Why, s.Do = f.Say(lang)
	return s
}

func sayAll(all []health.Finding, lang string) []action.Saying {
	said := make([]action.Saying, len(all))
	for i, f := range all {
		said[i] = say(f, lang)
	}
	return said
}

// Slots implements action.Care.
func (c *care) Slots(lang string) []action.SlotHealth {
	now := c.rack.clock()
	var all []action.SlotHealth
	for _, st := range c.keeper.All() {
		state, _ := c.rack.slots[st.Slot].snapshot()
		one := action.SlotHealth{
			Slot: st.Slot, Label: state.Label, State: string(st.State), For: now - st.Since, Main: say(st.Main, lang), Paused: st.Paused,
			Rung: st.Rung, Left: c.hands.of(st.Slot), Serial: state.Serial, Adb: state.State,
		}
		if len(st.Others) > 0 {
			one.Others = sayAll(st.Others, lang)
		}
		if st.Next > now {
			one.Next = st.Next - now
		}
		if st.Ends > now {
			one.Ends = st.Ends - now
		}
		if o, ok := c.rack.outletOf(st.Slot, false); ok {
			shown := outlet(o)
			one.Power = &shown
		}
		if b := c.rack.config.Board; b != nil {
			if s, ok := b.Slot(st.Slot); ok {
				one.HubName = s.Hub
			}
		}
		one.Acts = acted(c.keeper.Ledger(st.Slot))
		all = append(all, one)
	}
	return all
}

// outlet is one as people see it.
func outlet(o power.State) action.Outlet {
	shown := action.Outlet{Name: o.Name, Slots: o.Slots, On: o.Wanted, Busy: o.Busy, Repowered: o.Repowered, Resets: o.Resets}
	if o.Cut != power.Unseen {
		shown.Cut = o.Cut.String()
	}
	if o.Fault != nil {
		shown.Fault = o.Fault.Error()
	}
	return shown
}

// Rack implements action.Care.
func (c *care) Rack(lang string) action.RackStatus {
	st := action.RackStatus{
		Findings: sayAll(c.controller(), lang), Slots: map[string]int{}, Maintenance: c.hands.of(0) != "", Outlets: []action.Outlet{},
		Way: c.toPage(),
	}
	for state, n := range c.keeper.Count() {
		st.Slots[string(state)] = n
	}
	for _, o := range c.rack.outlets() {
		st.Outlets = append(st.Outlets, outlet(o))
	}
	return st
}

// outlet finds what feeds a slot, or says that nothing can be switched.
func (c *care) outlet(slot int, hub bool) (power.State, error) {
	o, ok := c.rack.outletOf(slot, hub)
	if !ok {
		what := "port"
		if hub {
			what = "hub"
		}
		return o, wire.Refuse(wire.PowerFixed, map[string]any{"slot": slot, "what": what})
	}
	return o, nil
}

// Touched implements action.Care.
func (c *care) Touched(slot int, hub bool) ([]int, error) {
	o, err := c.outlet(slot, hub)
	return o.Slots, err
}

// Power implements action.Care. What a person has switched off recovery leaves alone, until a person switches it on.
func (c *care) Power(ctx context.Context, slot int, hub, on bool) error {
	o, err := c.outlet(slot, hub)
	if err != nil {
		return err
	}
	var noted []int
	if !on {
		if noted, err = c.darken(o.Slots); err != nil {
			c.undarken(noted)
			return kept(err)
		}
	}
	err = switched(o, c.rack.power.Set(ctx, o.Name, on, power.Person))
	c.judge()
	if now, _ := c.outlet(slot, hub); err != nil && now.Wanted {
		c.undarken(noted) // that it is to be off could not be written down, or somebody wants it on meanwhile
	}
	if on {
		err = errors.Join(err, c.light(o.Slots))
	}
	return err
}

// darken notes that a person has slots switched off, before they are, and gives those of which this was not noted yet.
func (c *care) darken(slots []int) (noted []int, err error) {
	for _, n := range slots {
		before := c.hands.has(n, darkened)
		if err := c.hands.set(n, darkened, true); err != nil {
			return noted, err
		}
		if c.keeper.Darkened(n); !before { // it is not missed
			noted = append(noted, n)
		}
	}
	return noted, nil
}

// undarken takes back what was noted of slots that are not switched off after all.
func (c *care) undarken(slots []int) {
	for _, n := range slots {
		c.hands.forget(n, darkened)
		if c.powered(n) {
			c.keeper.Lit(n)
		}
	}
}

// Cycle implements action.Care.
func (c *care) Cycle(ctx context.Context, slot int, hub bool) error {
	o, err := c.outlet(slot, hub)
	if err != nil {
		return err
	}
	err = switched(o, c.rack.cycle(ctx, o, power.Person))
	c.judge()
	return errors.Join(err, c.light(o.Slots))
}

// light ends what switching off has begun, by whomever, and gives the phones their time to come back. The keeper is told at once: until
// then it holds the phones to be without power, and takes one that comes back for one whose port cuts nothing.
func (c *care) light(slots []int) error {
	for _, n := range slots {
		if err := c.hands.set(n, darkened, false); err != nil {
			return kept(err)
		}
		if c.powered(n) {
			c.keeper.Lit(n)
		}
	}
	return nil
}

// powered tells whether everything that feeds a slot is wanted to be on.
func (c *care) powered(slot int) bool {
	return !slices.ContainsFunc(c.rack.outlets(), func(o power.State) bool { return !o.Wanted && slices.Contains(o.Slots, slot) })
}

// lit tells whether something feeds a slot, and all that does is wanted to be on.
func (c *care) lit(slot int) bool {
	return c.fed(slot) && c.powered(slot)
}

// fed tells whether anything that can be switched feeds a slot.
func (c *care) fed(slot int) bool {
	return slices.ContainsFunc(c.rack.outlets(), func(o power.State) bool { return slices.Contains(o.Slots, slot) })
}

// switched says what came of switching an outlet.
func switched(o power.State, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*power.NotCutError](err); ok {
		return wire.Refuse(wire.PowerNotCut, map[string]any{"outlet": o.Name, "detail": e.Cut.String()}).Because(err)
	}
	return wire.Refuse(wire.PowerFailed, map[string]any{"outlet": o.Name, "detail": err.Error()}).Because(err)
}

// kept says that something could not be written down.
func kept(err error) error {
	if err == nil {
		return nil
	}
	return wire.Refuse(wire.RackFull, nil).Because(err)
}

// Quarantine implements action.Care.
func (c *care) Quarantine(slot int, length time.Duration, by, reason string) error {
	return c.explain(slot, c.keeper.Quarantine(slot, length, by, reason))
}

// EndQuarantine implements action.Care.
func (c *care) EndQuarantine(slot int) error { return c.explain(slot, c.keeper.Release(slot)) }

// explain says why the keeper did not do what a person wants.
func (c *care) explain(slot int, err error) error {
	switch {
	case errors.Is(err, health.ErrNoPhone):
		return wire.Refuse(wire.SlotEmpty, map[string]any{"slot": slot})
	case errors.Is(err, health.ErrLength):
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	return kept(err)
}

// Maintain implements action.Care.
func (c *care) Maintain(slot int, on bool) error {
	if err := c.hands.set(slot, inside, on); err != nil {
		return kept(err)
	}
	if slot == 0 && c.rack.power != nil {
		c.maintaining.Lock() // of two at once, such as page and button, the one that was noted last counts for the power too
		defer c.maintaining.Unlock()
		c.rack.power.SetMaintenance(c.hands.has(0, inside))
	}
	return nil
}

// Retry implements action.Care.
func (c *care) Retry(slot int) error {
	c.keeper.Retry(slot)
	return nil
}

// Forget implements action.Care.
func (c *care) Forget(slot int) error { return kept(c.keeper.Forget(slot)) }

// Identify implements action.Care. Lights show themselves whoever has the phone; where there is one, it is enough that this is seen.
func (c *care) Identify(ctx context.Context, slot int, d time.Duration) (action.Identified, error) {
	seen := action.Identified{Slots: []int{}, Light: len(c.lights[0]) > 0, LED: slot != 0 && len(c.lights[slot]) > 0}
	coming := ctx // that is waited for of a phone that is on its way
	if seen.Light || seen.LED {
		var cancel context.CancelFunc
		coming, cancel = context.WithTimeout(ctx, min(d, led.IdentifyFor))
		defer cancel()
		for _, n := range slices.Compact([]int{0, slot}) {
			defer c.lights[n].identify(d)()
		}
	}
	p := phones{c.rack}
	var err error
	if slot != 0 {
		if err = p.blink(ctx, coming, slot, d); err == nil {
			seen.Slots = append(seen.Slots, slot)
		}
	} else {
		seen.Slots, err = p.blinkAll(ctx, coming, d)
	}
	if coming == ctx || ctx.Err() != nil {
		return seen, cmp.Or(context.Cause(ctx), err)
	}
	if err != nil && slot != 0 {
		seen.Refusal = wire.From(err)
	}
	<-coming.Done()
	return seen, context.Cause(ctx)
}
