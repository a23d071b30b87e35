package hardwarerig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/usb/phonesim"
)

// Phone is a simulated phone behind a relay.
type Phone struct {
	*rackrig.Phone
	Hopeless atomic.Bool // what it has wrong outlives its power

	greeted *atomic.Int64
}

// NewPhone makes the phone of a slot.
func NewPhone(slot int, port string) (*Phone, error) {
	greeted := new(atomic.Int64)
	p, err := rackrig.Simulate(rackrig.PhoneSpec{
		Slot: slot, Port: port, Serial: fmt.Sprintf("SIM%04d", slot), Android: 14, Language: "en", Seed: int64(slot),
		Width: 360, Height: 640, Density: 160, // an emulated processor reads its screen
		Logger: slog.New(greetings{greeted}),
	})
	if err != nil {
		return nil, err
	}
	return &Phone{Phone: p, greeted: greeted}, nil
}

// Greeted is how often the phone was greeted with CNXN: each opening of its link begins with one.
func (p *Phone) Greeted() int { return int(p.greeted.Load()) }

// charge gives the phone's battery VBUS, or takes it: the phone itself tells later which it had.
func (p *Phone) charge(on bool) {
	const charging, discharging = 2, 3 // BATTERY_STATUS of Android
	now := p.Android.Battery()
	now.USB, now.Status = on, discharging
	if on {
		now.Status = charging
	}
	p.Android.SetBattery(now)
}

// greetings counts what a simulated phone logs of a host that greets it.
type greetings struct{ n *atomic.Int64 }

func (g greetings) Enabled(context.Context, slog.Level) bool { return true }
func (g greetings) WithAttrs([]slog.Attr) slog.Handler       { return g }
func (g greetings) WithGroup(string) slog.Handler            { return g }

func (g greetings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "host says CNXN" {
		g.n.Add(1)
	}
	return nil
}

// Relays joins the board's lines with the phones that they feed.
type Relays struct {
	board *rackrig.Board
	feeds map[int][]*Phone // by line
	ports map[int][]*Phone // by port of the hub whose ports are switched
	stop  context.CancelFunc
	quit  <-chan struct{} // closed by stop
	done  chan struct{}
	minds sync.WaitGroup // who mind the phones

	mu      sync.Mutex
	plugged map[*Phone]*rig.Plugged // guarded by mu, as is what follows
	out     map[*Phone]bool         // pulled, and not plugged in again
	changes []rig.Change
	err     error
	grown   chan struct{} // closed, and replaced, when something has changed
}

// Follow begins to play. Lines are those of the board; ports those of its one hub that switches them itself, behind which
// phones stay plugged: QEMU takes them from the bus. Close ends it, before the board is closed.
func Follow(b *rackrig.Board, lines, ports map[int][]*Phone) *Relays {
	ctx, stop := context.WithCancel(context.Background())
	r := &Relays{
		board: b, feeds: lines, ports: ports, stop: stop, quit: ctx.Done(), done: make(chan struct{}),
		plugged: map[*Phone]*rig.Plugged{}, out: map[*Phone]bool{}, grown: make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		r.follow(ctx)
	}()
	return r
}

func (r *Relays) follow(ctx context.Context) {
	for n := 0; ; {
		changes, now, err := r.board.Changes(ctx, n)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, rig.ErrEnded) {
				r.fail(err)
			}
			return
		}
		n = now
		for _, c := range changes {
			r.apply(ctx, c)
		}
	}
}

// apply does what a change does to the phones behind it, and then tells of it.
func (r *Relays) apply(ctx context.Context, c rig.Change) {
	phones := r.ports[c.Port]
	if c.Line >= 0 {
		phones = r.feeds[c.Line]
	}
	for _, p := range phones {
		var err error
		p.charge(c.On)
		switch {
		case !c.On:
			if !p.Hopeless.Load() {
				p.USB.SetFaults(phonesim.Faults{}) // without power nothing hangs
			}
			if c.Line >= 0 {
				err = r.Pull(p)
			}
		case c.Line >= 0:
			err = r.plug(ctx, p)
		}
		if err != nil && ctx.Err() == nil {
			r.fail(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	close(r.grown)
	r.grown = make(chan struct{})
}

func (r *Relays) plug(ctx context.Context, p *Phone) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plugLocked(ctx, p)
}

// plugLocked is plug; r.mu is held.
func (r *Relays) plugLocked(ctx context.Context, p *Phone) (err error) {
	r.out[p] = false
	in := r.plugged[p]
	if in != nil {
		err = in.Replug(ctx)
	} else {
		in, err = r.board.Plug(ctx, p.Port, p.USB)
		r.plugged[p] = in
	}
	if err == nil {
		done := in.Done()
		r.minds.Go(func() { r.mind(p, in, done) })
	}
	return err
}

// adbdStarts is how long a phone's daemon takes to start anew.
const adbdStarts = time.Second

// mind has a phone come to the bus anew that has dropped its link because the host broke the protocol, as adbd does: a host that is
// killed in the middle of a message does, when the next one greets.
func (r *Relays) mind(p *Phone, in *rig.Plugged, done <-chan struct{}) {
	select {
	case <-done:
	case <-r.quit:
		return
	}
	if _, broken := errors.AsType[*phonesim.Violation](in.Err()); !broken {
		return
	}
	select {
	case <-time.After(adbdStarts):
	case <-r.quit:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.Done() == done && !r.out[p] {
		r.err = errors.Join(r.err, r.plugLocked(ctx, p))
	}
}

// Pull takes a phone off the bus, as if it had died: it comes back when its line comes on the next time.
func (r *Relays) Pull(p *Phone) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.plugged[p]
	if in == nil {
		return nil
	}
	r.out[p] = true
	return in.Unplug()
}

// Plug plugs a phone in that no line feeds.
func (r *Relays) Plug(ctx context.Context, p *Phone) error { return r.plug(ctx, p) }

func (r *Relays) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// Changes are those that keep picks, of lines and of ports' power, from the start on.
func (r *Relays) Changes(keep func(rig.Change) bool) []rig.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.changes), func(c rig.Change) bool { return !keep(c) })
}

// Wait waits for the first change that keep picks after the first n of them.
func (r *Relays) Wait(ctx context.Context, n int, keep func(rig.Change) bool) (rig.Change, error) {
	for {
		r.mu.Lock()
		grown := r.grown
		r.mu.Unlock()
		if all := r.Changes(keep); len(all) > n {
			return all[n], nil
		}
		select {
		case <-grown:
		case <-r.done:
			return rig.Change{}, rig.ErrEnded
		case <-ctx.Done():
			return rig.Change{}, fmt.Errorf("the wire does not change: %w", context.Cause(ctx))
		}
	}
}

// stopLimit bounds what Close waits for: a phone that is being unplugged.
const stopLimit = 30 * time.Second

// Close ends the play and says what has gone wrong in it. The phones stay where they are.
func (r *Relays) Close() error {
	r.stop()
	select {
	case <-r.done:
	case <-time.After(stopLimit):
		return errors.New("the relays do not stop")
	}
	r.minds.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
