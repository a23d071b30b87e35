package firmware

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/board"
	"phonerack/hal/led"
	"phonerack/hal/power"
)

const (
	careInterval = time.Second     // between two rounds
	carryTime    = 8 * time.Minute // of an order, less than what frees its hub
	recoverer    = "health"        // who has recovery's lease while an order is carried out
)

// care joins the health of the slots with what can be done about it: it has the slots' owners look, carries out what the
// keeper orders, each order on its own so that a bad phone delays no other, and shows on the light how the rack is.
type care struct {
	rack   *Rack
	keeper *health.Keeper
	hands  *occupied // which slots people have their hands in
	log    *slog.Logger

	light *led.Light // nil without one

	every   time.Duration  // between two rounds
	working sync.WaitGroup // orders that are being carried out

	mu       sync.Mutex // guards what follows
	checks   health.Checks
	findings []health.Finding      // of the controller, by the last check
	cut      map[string]power.Cut  // of an outlet, as the keeper was told
	awaited  map[int]time.Duration // since when somebody wants a phone that rested
	failed   string                // why orders could not be written down, so that it is logged once

	// Of Serve alone.
	told    map[int]health.State // what the cloud was told last
	checked time.Duration        // boot time of the last check
}

// newCare makes the keeper of the slots' health.
func (r *Rack) newCare(every time.Duration) error {
	bucket, err := r.store.Bucket(health.BucketName)
	if err != nil {
		return err
	}
	c := &care{rack: r, log: r.log, every: cmp.Or(every, careInterval), cut: map[string]power.Cut{}, awaited: map[int]time.Duration{}, told: map[int]health.State{}}
	c.keeper, err = health.New(health.Options{
		Config: r.config.Health, Places: r.places(), Memory: health.OpenRecords(bucket), Now: r.clock, Wall: r.wall, Log: r.log,
	})
	if err != nil {
		return err
	}
	for _, o := range r.outlets() {
		if len(o.Slots) == 1 {
			c.cut[o.Name] = o.Cut
			if !o.Wanted {
				c.keeper.Powered(o.Slots[0], false)
			}
		}
	}
	if c.hands, err = r.openHands(c.keeper); err != nil {
		return err
	}
	for n := range r.slots {
		if c.hands.of(n) == darkened {
			c.keeper.Powered(n, false)
		}
	}
	c.recall()
	for _, s := range r.slots {
		s.saw, s.measured = c.saw, c.measured
	}
	r.care = c
	return nil
}

// recall tells when each phone took the rack's key last, as far as the clock can be trusted.
func (c *care) recall() {
	now, trusted := c.rack.wall()
	known, err := c.rack.book.List()
	if err != nil || !trusted {
		return
	}
	for _, p := range known {
		if ago := now.Sub(p.KeyUsed); !p.KeyUsed.IsZero() && ago > 0 {
			c.keeper.Heard(p.Slot, ago)
		}
	}
}

// outlets are those of the rack.
func (r *Rack) outlets() []power.State {
	if r.power == nil {
		return nil
	}
	return r.power.States()
}

// places are the slots as the ladder sees them.
func (r *Rack) places() []health.Place {
	var all []health.Place
	for n := range r.slots {
		p := health.Place{Slot: n, Hub: fmt.Sprintf("slot %d", n)}
		if b := r.config.Board; b != nil {
			if s, ok := b.Slot(n); ok {
				p.Hub = hubOf(b, s)
			}
		}
		if o, ok := r.outletOf(n, false); ok {
			p.PortPower = o.Cut.Works()
		}
		_, p.HubPower = r.outletOf(n, true)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b health.Place) int { return a.Slot - b.Slot })
	return all
}

// hubOf is the port path of what a slot loses its power with: the hub that a line feeds, else the nearest one.
func hubOf(b *board.Board, s board.Slot) string {
	for _, h := range b.Hubs {
		if h.Feed == board.Lines && board.Behind(s.Path, h.Path) {
			return h.Path
		}
	}
	if h, ok := b.Hub(s.Hub); ok {
		return h.Path
	}
	return s.Path
}

// wall is the board's clock, and whether somebody who knows has set it: the cloud, or the kernel's own discipline (NTP).
func (r *Rack) wall() (time.Time, bool) {
	if r.cloud != nil && r.cloud.link.Status().Trusted {
		return time.Now(), true
	}
	var t unix.Timex
	const timeError = 5 // TIME_ERROR: the clock is not synchronised, adjtimex(2)
	state, err := unix.Adjtimex(&t)
	return time.Now(), err == nil && state != timeError
}

// saw takes a look of a slot's owner. A serial number that another slot's phone has too names none.
func (c *care) saw(slot int, l health.Look) {
	if l.Phone != "" {
		for n, s := range c.rack.slots {
			if state, _ := s.snapshot(); n != slot && state.Serial == l.Phone {
				l.Phone = ""
				break
			}
		}
	}
	c.keeper.Look(slot, l)
}

func (c *care) measured(slot int, m measures) {
	if m.battery != nil {
		c.keeper.Battery(slot, *m.battery)
	}
	if m.storage != nil {
		c.keeper.Storage(slot, m.storage.Free, m.storage.Total)
	}
	if m.tcp != nil {
		c.keeper.TCP(slot, *m.tcp)
	}
}

// String implements fmt.Stringer for the supervisor's log.
func (c *care) String() string { return "health of the slots" }

// Serve implements suture.Service. What it has begun ends with ctx too, but a cycle gives the power back first: finish waits.
func (c *care) Serve(ctx context.Context) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		c.round(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finish waits until nothing is being carried out or switched any more.
func (c *care) finish() {
	c.working.Wait()
	for slices.ContainsFunc(c.rack.outlets(), func(o power.State) bool { return o.Busy != "" }) {
		time.Sleep(lookAgain)
	}
}

// round does all that is due.
func (c *care) round(ctx context.Context) {
	for n := range c.rack.slots {
		held, is := c.rack.leases.Lookup(n)
		leased := is && !(held.Holder.Kind == lease.Recovery && held.Holder.Who == recoverer)
		c.keeper.Leased(n, leased)
		c.unwanted(n, leased)
	}
	due, _ := c.keeper.Due()
	for _, n := range due {
		c.rack.slots[n].ask(c.rack.config.USB.Sysfs)
	}
	c.judge()
	c.order(ctx)
	if now := c.rack.clock(); c.checked == 0 || now-c.checked >= checkInterval {
		c.checked = now
		c.check(now)
	}
	c.tell()
	c.shine()
}

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
	touched := []int{o.Slot}
	if o.Rung == health.HubCycle {
		touched = append(touched, o.Also...)
	}
	leases, err := c.borrow(touched)
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
		c.log.Warn("an act of recovery failed", "slot", o.Slot, "act", o.Rung.String(), "err", err)
	}
	c.keeper.Done(o, outcome)
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

const errandTime = 3 * time.Minute // of an act on a link, whose owner may be in the middle of a bounded wait

// do carries one act out.
func (c *care) do(ctx context.Context, o health.Order, held *lease.Lease) error {
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
		return c.rack.power.Cycle(ctx, out.Name, power.Automatic)
	case health.Rest, health.Wake:
		out, ok := c.rack.outletOf(o.Slot, false)
		if whole, is := c.rack.outletOf(o.Slot, true); !ok && is && whole.Wanted && o.Rung == health.Wake {
			return nil // a person has switched the hub on
		}
		if !ok {
			return errNoWay
		}
		return c.rack.power.Set(ctx, out.Name, o.Rung == health.Wake, power.Automatic)
	case health.CloseTCP, health.Undump:
		return s.mend(ctx, o.Rung, held)
	}
	return errNoWay
}

const mendTime = 20 * time.Second

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
	if rung == health.Undump {
		_, err := l.conn.Shell(ctx, "dumpsys battery reset")
		return err
	}
	answer, err := l.conn.Open(ctx, "usb:") // as adb does it; the phone hangs up and comes back on USB alone
	if err == nil {
		answer.Close()
	}
	return err
}

// judge tells the keeper what was found out about ports.
func (c *care) judge() {
	for _, o := range c.rack.outlets() {
		if len(o.Slots) != 1 {
			continue
		}
		c.mu.Lock()
		before := c.cut[o.Name]
		c.cut[o.Name] = o.Cut
		c.mu.Unlock()
		if before != o.Cut {
			c.keeper.Switchable(o.Slots[0], o.Cut.Works())
		}
	}
}

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

// wantedFor is how long a phone that somebody has asked for keeps its power without being used.
const wantedFor = 10 * time.Minute

// wanted notes that somebody asks for a phone whose power rests.
func (c *care) wanted(slot int) {
	if st, ok := c.keeper.Status(slot); !ok || st.State != health.Resting {
		return
	}
	c.mu.Lock()
	c.awaited[slot] = c.rack.clock()
	c.mu.Unlock()
	c.keeper.Wanted(slot, true)
}

// unwanted lets a phone rest again that nobody has used for a while.
func (c *care) unwanted(slot int, leased bool) {
	c.mu.Lock()
	since, is := c.awaited[slot]
	now := c.rack.clock()
	over := is && !leased && now-since > wantedFor
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
