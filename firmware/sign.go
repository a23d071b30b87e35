package firmware

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/signpost"
	"phonerack/sync/wire"
)

const (
	signMargin = 30 * time.Second // of the lease over the sign, for the phone to be opened and put back
	maxTries   = 5                // free phones that are tried
)

// signs are the phones that show people the way to the page.
type signs struct {
	mu     sync.Mutex
	bySlot map[int]*sign // guarded by mu
}

// sign is one of them. It ends with ctx; what is below mu changes when it is asked for again.
type sign struct {
	slot  int
	urls  []string
	pass  string // that the QR code has
	held  *lease.Lease
	ctx   context.Context
	stop  context.CancelFunc
	shown chan struct{} // closed when the screen shows it
	ended chan error    // why it was not, or nil at its end; takes one

	mu    sync.Mutex
	timer *time.Timer // guarded by mu, as is ends; nil before it is shown
	ends  time.Time
}

// Sign implements action.Care. On a slot that shows it already it lasts anew.
func (c *care) Sign(ctx context.Context, slot int, d time.Duration) (action.Sign, error) {
	if len(c.rack.way.reachable) == 0 {
		return action.Sign{}, wire.Refuse(wire.PageClosed, nil)
	}
	if slot != 0 {
		return c.show(ctx, slot, d)
	}
	for _, s := range c.signs.list() {
		if seen, err := c.show(ctx, s.Slot, d); err == nil {
			return seen, nil
		}
	}
	var first error
	tries := 0
	for _, st := range c.keeper.All() {
		if _, leased := c.rack.leases.Lookup(st.Slot); leased || st.State != health.Well {
			continue
		}
		seen, err := c.show(ctx, st.Slot, d)
		if err == nil {
			return seen, nil
		}
		if first == nil {
			first = err
		}
		if tries++; tries == maxTries || ctx.Err() != nil {
			break
		}
	}
	if first != nil { // there was a free phone, which cannot show it
		return action.Sign{}, first
	}
	return action.Sign{}, wire.Refuse(wire.NoFreePhone, nil)
}

// show has one phone show it, if nobody else has the phone.
func (c *care) show(ctx context.Context, slot int, d time.Duration) (action.Sign, error) {
	r := c.rack
	s, ok := r.slots[slot]
	if !ok {
		return action.Sign{}, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
	}
	l, err := s.usable()
	if err != nil {
		return action.Sign{}, err
	}
	urls := r.way.urls()
	if old := c.signs.of(slot); old != nil && slices.Equal(old.urls, urls) && r.page.Pass(old.pass) == old.pass && old.last(d) {
		return old.state(), nil
	}
	held, err := r.leases.Acquire(slot, lease.Holder{Kind: lease.Sign, Who: "sign"}, d+signMargin)
	if err != nil {
		return action.Sign{}, err
	}
	x := &sign{slot: slot, urls: urls, pass: r.page.Pass(""), held: held, shown: make(chan struct{}), ended: make(chan error, 1)}
	x.ctx, x.stop = context.WithCancel(r.halt)
	if !r.works(func() { c.signs.run(x, l, r.config.Rack.ID, d, c.log) }) {
		x.stop()
		held.Release()
		return action.Sign{}, wire.Refuse(wire.ShuttingDown, nil)
	}
	phone := readyPhone{slot, l}
	select {
	case <-x.shown:
		return x.state(), nil
	case err = <-x.ended:
	case <-ctx.Done():
		x.stop()
		<-x.ended
		err = context.Cause(ctx)
	}
	return action.Sign{}, phone.explain(ctx, "show the way to the rack's page", "a browser", err)
}

// works runs what has to end before the rack does; false if the rack stops already.
func (r *Rack) works(fn func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.working.Go(fn)
	return true
}

// run shows the sign until its time is over, somebody else has the phone, the phone is gone, or it is stopped.
func (all *signs) run(x *sign, l *live, rack string, d time.Duration, log *slog.Logger) {
	defer x.held.Release()
	defer x.stop()
	all.mu.Lock()
	all.bySlot[x.slot] = x
	all.mu.Unlock()
	defer func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.bySlot[x.slot] == x {
			delete(all.bySlot, x.slot)
		}
	}()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer x.stop()
	watching.Go(func() {
		defer x.stop()
		select {
		case <-x.held.Done():
		case <-l.conn.Done():
		case <-x.ctx.Done():
		}
	})
	defer func() {
		if p := recover(); p != nil { // it is this phone's alone
			log.Error("a sign panicked", "slot", x.slot, "panic", p, "stack", string(debug.Stack()))
			x.ended <- errPanicked
		}
	}()
	controls := l.phone.Under(x.held)
	x.ended <- signpost.Show(x.ctx, signpost.Phone{
		Reverse: l.conn.Reverse,
		Wake:    controls.Wake,
		OpenURL: func(ctx context.Context, url, pkg string) error {
			if err := controls.OpenURL(ctx, url, pkg); err != nil {
				return err
			}
			x.begin(d)
			return nil
		},
		Key: controls.Key,
	}, signpost.Sign{Rack: rack, Slot: x.slot, Addresses: x.urls, Path: x.pass})
}

// begin starts the time of a sign that is shown.
func (x *sign) begin(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends, x.timer = time.Now().Add(d), time.AfterFunc(d, x.stop)
	close(x.shown)
}

// last gives a sign that is shown its time anew. False: it is ending, or not there yet.
func (x *sign) last(d time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timer == nil || !x.timer.Stop() || x.held.Renew(d+signMargin) != nil {
		return false
	}
	x.timer.Reset(d)
	x.ends = time.Now().Add(d)
	return true
}

func (x *sign) state() action.Sign {
	x.mu.Lock()
	defer x.mu.Unlock()
	return action.Sign{Slot: x.slot, Ends: max(time.Until(x.ends), 0), URLs: x.urls}
}

func (all *signs) of(slot int) *sign {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.bySlot[slot]
}

// list gives those that are shown, by slot.
func (all *signs) list() []action.Sign {
	all.mu.Lock()
	defer all.mu.Unlock()
	shown := []action.Sign{}
	for _, x := range all.bySlot {
		if s := x.state(); s.Ends > 0 {
			shown = append(shown, s)
		}
	}
	slices.SortFunc(shown, func(a, b action.Sign) int { return a.Slot - b.Slot })
	return shown
}

// EndSign implements action.Care. What is not shown has ended already.
func (c *care) EndSign(slot int) error {
	c.signs.mu.Lock()
	defer c.signs.mu.Unlock()
	for n, x := range c.signs.bySlot {
		if slot == 0 || slot == n {
			x.stop()
		}
	}
	return nil
}
