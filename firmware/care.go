package firmware

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/power"
	"phonerack/usb/bus"
)

const careInterval = time.Second // between two rounds

// care joins the health of the slots with what can be done about it: it has the slots' owners look, carries out what the
// keeper orders, each order on its own so that a bad phone delays no other, and shows on the light how the rack is.
type care struct {
	rack   *Rack
	keeper *health.Keeper
	hands  *occupied // which slots people want left alone
	log    *slog.Logger

	lights map[int]lights // of the rack at 0, of a slot at its number
	ports  *ports         // what is at ports without a phone
	signs  signs          // on phones' screens

	every   time.Duration  // between two rounds
	working sync.WaitGroup // orders that are being carried out

	maintaining sync.Mutex // held while the power is told whether the rack is in maintenance

	mu       sync.Mutex // guards what follows
	checks   health.Checks
	limits   health.Rack           // a reload changes them
	findings []health.Finding      // of the controller, by the last check
	cut      map[string]power.Cut  // of an outlet, as the keeper was told
	awaited  map[int]time.Duration // since when somebody wants a phone that rested
	failed   string                // why orders could not be written down, so that it is logged once

	// Of Serve alone.
	told    map[int]health.State // what the cloud was told last
	checked time.Duration        // boot time of the last check
}

// newCare makes the keeper of the slots' health.
func (r *Rack) newCare(every time.Duration, kernel bus.Records) error {
	bucket, err := r.store.Bucket(health.BucketName)
	if err != nil {
		return err
	}
	c := &care{rack: r, log: r.logOf(carePart), every: cmp.Or(every, careInterval), cut: map[string]power.Cut{}, signs: signs{bySlot: map[int]*sign{}}, awaited: map[int]time.Duration{}, told: map[int]health.State{}}
	c.keeper, err = health.New(health.Options{
		Config: r.config.Health, Places: r.places(), Memory: health.OpenRecords(bucket), Now: r.clock, Wall: r.wall, Log: r.logOf(carePart),
		Ended: func(slot int, rung health.Rung, how health.Outcome) {
			r.tally.tried(slot, rung, how)
			r.events.tried(slot, rung, how)
		},
	})
	if err != nil {
		return err
	}
	for _, o := range r.outlets() {
		if len(o.Slots) == 1 && !o.Wanted {
			c.keeper.FoundOff(o.Slots[0])
		}
	}
	c.judge()
	if c.hands, err = r.openHands(c.keeper); err != nil {
		return err
	}
	for n := range r.slots {
		switch {
		case !c.hands.has(n, darkened):
		case c.lit(n): // rackd ended between the note and what was to follow
			c.hands.forget(n, darkened)
		case !c.fed(n): // by the board file of now: nobody could switch it on, and the note holds again if that was a mistake
			c.hands.overlook(n, darkened)
		default:
			c.keeper.Darkened(n)
		}
	}
	c.recall()
	c.ports = r.newPorts(kernel)
	for _, s := range r.slots {
		s.saw, s.measured, s.left = c.saw, c.measured, c.keeper.Left
	}
	c.limits = r.config.Health.Rack
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
	c.rack.tally.saw(slot, l, time.Now())
	c.keeper.Look(slot, l)
}

func (c *care) measured(slot int, m measures) {
	c.rack.tally.measured(slot, c.rack.serialOf(slot), m, c.rack.clock())
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
func (c *care) String() string { return carePart }

// Serve implements suture.Service. What it has begun ends with ctx too, but a cycle gives the power back first: finish waits.
func (c *care) Serve(ctx context.Context) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	defer c.ports.open()()
	for {
		c.round(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finish waits until nothing is being carried out or switched any more, nor waits in the kernel.
func (c *care) finish() {
	c.working.Wait()
	for slices.ContainsFunc(c.rack.outlets(), func(o power.State) bool { return o.Busy != "" }) {
		time.Sleep(lookAgain)
	}
	if c.rack.hubs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopPower)
	defer cancel()
	if err := c.rack.hubs.Wait(ctx); err != nil {
		c.log.Warn("a port may be switched yet, after rackd", "err", err)
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
	c.ports.round(c.rack.outlets(), func(slot int) string { return c.rack.slots[slot].source.port() })
	due, _ := c.keeper.Due()
	for _, n := range due {
		c.rack.slots[n].ask(c.ports.look)
	}
	c.judge()
	c.order(ctx)
	if now := c.rack.clock(); c.checked == 0 || now-c.checked >= checkRounds*c.every {
		c.checked = now
		c.check(now)
	}
	c.tell()
	c.shine()
}
