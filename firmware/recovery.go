package firmware

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/power"
)

// What the keeper of the slots' health orders is carried out here.

const (
	carryTime  = 8 * time.Minute // of an order, less than what frees its hub
	errandTime = 3 * time.Minute // of an act on a link, whose owner may be in the middle of a bounded wait
	mendTime   = 20 * time.Second
	recoverer  = "health" // who has recovery's lease while an order is carried out
)

// order has carried out what is to be done now.
func (c *care) order(ctx context.Context) {
	orders, err := c.keeper.Orders()
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	c.mu.Lock()
	if failed != "" && failed != c.failed {
		c.log.Error("nothing is done about phones: the records cannot be written", "err", err)
	}
	c.failed = failed
	c.mu.Unlock()
	for _, o := range orders {
		c.working.Go(func() { c.carry(ctx, o) })
	}
}

// carry carries an order out under recovery's lease of all slots that it touches, and reports how it ended.
func (c *care) carry(ctx context.Context, o health.Order) {
	ctx, cancel := context.WithTimeout(ctx, carryTime)
	defer cancel()
	leases, err := c.borrow(c.reach(o))
	if err != nil {
		c.keeper.Done(o, health.Refused)
		return
	}
	err = c.do(ctx, o, leases[0])
	for _, l := range leases {
		l.Release()
	}
	c.judge()
	outcome := health.Done
	if err != nil {
		outcome = health.Failed
		if _, lied := errors.AsType[*power.NotCutError](err); lied {
			outcome = health.NotCut
		} else if c.decided(o) {
			outcome = health.Done
		}
		c.log.Warn("an act of recovery failed", "slot", o.Slot, "act", o.Rung.String(), "err", err)
	}
	c.keeper.Done(o, outcome)
}

// reach gives the slots that an order touches, its own first: a hub's cycle takes the power of all that its outlet feeds, a further
// hub behind it too.
func (c *care) reach(o health.Order) []int {
	touched := []int{o.Slot}
	if o.Rung != health.HubCycle {
		return touched
	}
	out, _ := c.rack.outletOf(o.Slot, true)
	for _, n := range slices.Concat(o.Also, out.Slots) {
		if !slices.Contains(touched, n) {
			touched = append(touched, n)
		}
	}
	return touched
}

// decided tells whether an order about power that has failed counts all the same: what is wanted of the port is applied as soon as
// its hub answers. A keeper that did not know would take the phone for dead, or its port for one that cuts nothing.
func (c *care) decided(o health.Order) bool {
	out, ok := c.rack.outletOf(o.Slot, false)
	return ok && (o.Rung == health.Rest || o.Rung == health.Wake) && out.Wanted == (o.Rung == health.Wake)
}

// borrow takes recovery's lease of all slots, or of none.
func (c *care) borrow(slots []int) ([]*lease.Lease, error) {
	var leases []*lease.Lease
	for _, n := range slots {
		l, err := c.rack.leases.Acquire(n, lease.Holder{Kind: lease.Recovery, Who: recoverer}, carryTime+time.Minute)
		if err != nil {
			for _, l := range leases {
				l.Release()
			}
			return nil, err
		}
		leases = append(leases, l)
	}
	return leases, nil
}

// errPanicked stands for an act that has panicked: the log has its stack.
var errPanicked = errors.New("it panicked")

// do carries one act out. A panic in there is a failure of the act and nothing more.
func (c *care) do(ctx context.Context, o health.Order, held *lease.Lease) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("an act of recovery panicked", "slot", o.Slot, "act", o.Rung.String(), "panic", p, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	s := c.rack.slots[o.Slot]
	switch o.Rung {
	case health.Reopen, health.Resync, health.ClearHalt, health.Reset, health.Reboot:
		ctx, cancel := context.WithTimeout(ctx, errandTime)
		defer cancel()
		return s.send(ctx, o.Rung)
	case health.PortCycle, health.HubCycle:
		out, ok := c.rack.outletOf(o.Slot, o.Rung == health.HubCycle)
		if !ok {
			return errNoWay
		}
		return c.rack.cycle(ctx, out, power.Automatic)
	case health.Rest, health.Wake:
		out, ok := c.rack.outletOf(o.Slot, false)
		if whole, is := c.rack.outletOf(o.Slot, true); !ok && is && whole.Wanted && o.Rung == health.Wake {
			return nil // a person has switched the hub on
		}
		if !ok {
			return errNoWay
		}
		err := c.rack.power.Set(ctx, out.Name, o.Rung == health.Wake, power.Automatic)
		if _, lied := errors.AsType[*power.NotCutError](err); lied && o.Rung == health.Rest {
			err = errors.Join(err, c.rack.power.Set(ctx, out.Name, true, power.Automatic)) // it is not fought for a rest that is none
		}
		return err
	case health.CloseTCP, health.BatteryReset:
		return s.mend(ctx, o.Rung, held)
	}
	return errNoWay
}

// mend puts a phone's own setting right.
func (s *slot) mend(ctx context.Context, rung health.Rung, held *lease.Lease) error {
	_, l := s.snapshot()
	if l == nil {
		return errUnplugged
	}
	ctx, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	if err := held.Check(); err != nil {
		return err
	}
	if rung == health.BatteryReset {
		_, err := l.conn.Shell(ctx, "dumpsys battery reset")
		return err
	}
	return farewell(ctx, l.conn, "usb:") // as adb does it; adbd comes back on USB alone
}

// judge tells the keeper what was found out about ports and hubs.
func (c *care) judge() {
	for _, o := range c.rack.outlets() {
		if len(o.Slots) == 0 {
			continue
		}
		c.mu.Lock()
		before := c.cut[o.Name]
		c.cut[o.Name] = o.Cut
		c.mu.Unlock()
		if before == o.Cut {
			continue
		}
		lie := health.Truthful
		if !o.Cut.Works() {
			lie = health.Lie(o.Cut)
		}
		tell := c.keeper.Switchable
		if len(o.Slots) > 1 {
			tell = c.keeper.HubSwitchable
		}
		tell(o.Slots[0], lie)
	}
}
