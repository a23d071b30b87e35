package firmware

import (
	"context"
	"time"

	"phonerack/firmware/health"
	"phonerack/sync/wire"
)

// closed tells why a slot may be given no new task of the cloud; "" if it may.
func (c *care) closed(slot int) health.State {
	if c == nil {
		return "" // rackd is being put together
	}
	st, ok := c.keeper.Status(slot)
	if !ok {
		return ""
	}
	switch st.State {
	case health.Quarantined, health.Resting, health.Maintenance:
		return st.State
	case health.Well, health.Attention:
		if st.Paused { // too hot
			return health.Resting
		}
	}
	return ""
}

// wanted gives the phone in a slot whose power rests its power back, since somebody asks for it, and says so; nil if it does not
// rest. Heat goes before.
func (c *care) wanted(slot int) error {
	_, hot, resting := c.keeper.Resting(slot)
	if !resting {
		return nil
	}
	args := map[string]any{"slot": slot}
	if hot {
		return wire.Refuse(wire.PhoneHot, args)
	}
	c.mu.Lock()
	c.awaited[slot] = c.rack.clock()
	c.mu.Unlock()
	c.keeper.Wanted(slot, true)
	return wire.Refuse(wire.PhoneResting, args)
}

// sleeping gives the phone that a task of the cloud may be claimed for although it has no power: one that rests and is not hot.
func (c *care) sleeping(slot int) (serial string, is bool) {
	if c == nil {
		return "", false // rackd is being put together
	}
	serial, hot, resting := c.keeper.Resting(slot)
	return serial, resting && !hot && serial != ""
}

// wakeTime is how long a phone may take from its power to a usable screen.
const wakeTime = 4 * time.Minute

// wake gives a phone that rests its power back and waits for it. It does nothing about others.
func (c *care) wake(ctx context.Context, slot int, serial string) error {
	if is, sleeps := c.sleeping(slot); !sleeps || is != serial {
		return nil // whoever begins the task finds out
	}
	refusal := c.wanted(slot)
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if state, l := c.rack.slots[slot].snapshot(); l != nil && l.phone != nil && state.Serial == serial {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return refusal
		}
	}
}

// unwanted lets a phone rest again that nobody has used for a while.
func (c *care) unwanted(slot int, leased bool) {
	c.mu.Lock()
	since, is := c.awaited[slot]
	now := c.rack.clock()
	over := is && !leased && now-since > time.Duration(c.rack.config.Health.Battery.WantedFor)
	switch {
	case over:
		delete(c.awaited, slot)
	case is && leased:
		c.awaited[slot] = now
	}
	c.mu.Unlock()
	if over {
		c.keeper.Wanted(slot, false)
	}
}
