package firmware

import (
	"context"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	conn "periph.io/x/conn/v3/gpio"

	"phonerack/firmware/store"
	"phonerack/hal/board"
	"phonerack/hal/button"
	"phonerack/hal/gpio"
	"phonerack/hal/led"
	"phonerack/hal/watchdog"
	"phonerack/sync/link"
)

// equip makes what looks after the rack: the health of its slots, the light, the button and the watchdog, and adds them and
// the slots to the tree.
func (r *Rack) equip(o Options) error {
	r.watchCurrent()
	if err := r.newCare(o.CareInterval); err != nil {
		return err
	}
	r.care.light = r.openLight()
	if o.Watchdog != nil {
		r.feeder = watchdog.NewFeeder(watchdog.Options{Device: o.Watchdog, Late: r.late, Logger: r.log})
		r.watchParts(o.Watch == nil)
		r.watch.Add(r.tree, service{"feeder of the watchdog", r.feeder.Run}, stopPart)
		r.watch.Add(r.tree, service{"watch over store and link", r.watchStore}, stopPart)
	}
	for _, s := range r.slots {
		r.watch.Add(r.tree, s, stopPart)
	}
	r.watch.Add(r.tree, r.care, stopPart)
	if r.power != nil {
		r.watch.Add(r.tree, service{"power of the phones", r.power.Run}, stopPart)
	}
	if r.care.light != nil {
		r.watch.Add(r.tree, service{"light", r.care.light.Run}, stopPart)
	}
	r.addButton()
	return nil
}

// openLight opens the first LED of the board file; nil if there is none, or none can be opened.
func (r *Rack) openLight() *led.Light {
	if r.config.Board == nil || len(r.config.Board.LEDs) == 0 {
		return nil
	}
	l := r.config.Board.LEDs[0]
	lamps := map[board.Colour]led.Lamp{}
	for _, one := range l.Lights {
		lamp, err := r.openLamp(l.Name, one)
		if err != nil {
			r.log.Error("a lamp cannot be used", "led", l.Name, "colour", string(one.Colour), "err", err)
			continue
		}
		lamps[one.Colour] = lamp
	}
	first := lamps[board.Plain]
	if first == nil {
		first = lamps[board.Green]
	}
	red := lamps[board.Red]
	if first == nil {
		first, red = red, nil
	}
	if first == nil {
		return nil
	}
	return led.New(first, red, r.log)
}

func (r *Rack) openLamp(name string, l board.Light) (led.Lamp, error) {
	if len(l.Sysfs) > 0 {
		lamp, err := led.OpenClass(r.config.USB.Sysfs, l.Sysfs, nil)
		if err == nil {
			return lamp, nil
		}
		if l.Line == nil {
			return nil, err
		}
	}
	pin, err := r.lines.Output(lineSpec(*l.Line, "rackd-led-"+name+"-"+string(l.Colour)), gpio.Initial{})
	if err != nil {
		return nil, err
	}
	r.pins = append(r.pins, pin)
	return led.OnPin(pin, false), nil // the line knows its polarity itself
}

// addButton adds the reader of the board's button, if there is one.
func (r *Rack) addButton() {
	if r.config.Board == nil || r.config.Board.Button == nil {
		return
	}
	b := r.config.Board.Button
	pull := map[string]conn.Pull{"up": conn.PullUp, "down": conn.PullDown, "none": conn.Float, "": conn.PullNoChange}[b.Pull]
	pin, err := r.lines.Input(lineSpec(b.Line, "rackd-button"), pull)
	if err != nil {
		r.log.Error("the button cannot be read", "err", err)
		return
	}
	r.pins = append(r.pins, pin)
	r.watch.Add(r.tree, service{"button", func(ctx context.Context) error {
		return button.Watch(ctx, pin, false, button.Events{Stage: r.care.stage, Act: func(a button.Act) { r.care.pressed(ctx, a) }})
	}}, stopPart)
}

// feedback is what the light shows of a held button.
var feedback = map[button.Stage]led.Feedback{
	button.Held: led.FeedbackHeld, button.LongHeld: led.FeedbackLong, button.Warning: led.FeedbackWarn, button.ResetHeld: led.FeedbackLast,
}

func (c *care) stage(s button.Stage) {
	if s == button.Stuck {
		c.log.Error("the button is stuck")
	}
	if c.light != nil {
		c.light.Feedback(feedback[s])
	}
}

// pressed does what a press asks for.
func (c *care) pressed(ctx context.Context, a button.Act) {
	c.log.Info("button", "act", string(a))
	switch a {
	case button.Identify:
		if c.light != nil {
			c.light.Identify(led.IdentifyFor)
		}
	case button.Maintenance:
		on := c.hands.of(0) == ""
		if err := c.Maintain(0, on); err != nil {
			c.log.Error("maintenance was not switched", "on", on, "err", err)
		}
	case button.FactoryReset:
		c.log.Warn("a factory reset was asked for by the button, and this version has none")
	}
}

// Bounds of the critical parts, each more than what the part may wait for outside.
const (
	beatEvery  = 5 * time.Second
	busBound   = 30 * time.Second // it reads sysfs again every 3 s
	slotBound  = 3 * time.Minute  // reading a phone is bounded by 90 s
	storeBound = time.Minute
)

// watchParts gives each critical part its share in the watchdog. Only the rack's own watcher of the bus tells of its rounds.
func (r *Rack) watchParts(ownBus bool) {
	for _, s := range r.slots {
		s.progress = r.feeder.Part(fmt.Sprintf("slot %d", s.number), slotBound)
	}
	if r.config.Board != nil && ownBus {
		r.bus.progress = r.feeder.Part("bus", busBound)
	}
}

var errLookOnly = errors.New("nothing is written")

// watchStore takes the store's writer and asks the link again and again: one that hangs, or never lets go, makes no progress.
func (r *Rack) watchStore(ctx context.Context) error {
	bucket, err := r.store.Bucket(powerBucket)
	if err != nil {
		return err
	}
	stored := r.feeder.Part("store", storeBound)
	defer stored.End()
	var linked *watchdog.Part
	if r.cloud != nil {
		linked = r.feeder.Part("link", storeBound)
		defer linked.End()
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		// Rolled back at once: the lock of the writer is what is asked for, and the card is spared.
		if err := bucket.Update(func(*bolt.Bucket) error { return errLookOnly }); errors.Is(err, errLookOnly) || errors.Is(err, store.ErrFull) {
			stored.Progress()
		}
		if linked != nil && r.cloud.link.Status().State != link.Stopped {
			linked.Progress()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// late logs what holds the watchdog up.
func (r *Rack) late(parts []watchdog.Lateness) {
	if parts == nil {
		r.log.Warn("all parts make progress again")
		return
	}
	for _, p := range parts {
		r.log.Error("a part makes no progress: the board is reset", "part", p.Part, "silent", p.Silent, "bound", p.Bound)
	}
}
