package firmware

import (
	"context"
	"encoding/json"
	"time"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/firmware/action"
	"phonerack/hal/board"
	"phonerack/hal/button"
	"phonerack/hal/gpio"
	"phonerack/hal/led"
)

// equip makes what looks after the rack: the health of its slots, the light, the button and the watchdog, and adds them and
// the slots to the tree.
func (r *Rack) equip(o Options) error {
	r.watchOvercurrent()
	if err := r.newCare(o.CareInterval, o.Kernel); err != nil {
		return err
	}
	r.care.lights = r.openLights()
	r.watchProgress(o)
	for _, s := range r.slots {
		r.watch.Add(r.tree, s, stopPart)
	}
	r.watch.Add(r.tree, r.care, stopPart)
	if r.power != nil {
		r.watch.Add(r.tree, service{powerPart, r.power.Run}, stopPart)
	}
	r.addButton()
	return nil
}

// lights show the same.
type lights []*led.Light

func (all lights) set(c led.Condition, is bool) {
	for _, l := range all {
		l.Set(c, is)
	}
}

// identify has them show themselves for d; end ends it before.
func (all lights) identify(d time.Duration) (end func()) {
	var ends []func()
	for _, l := range all {
		ends = append(ends, l.Identify(d))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// openLights opens the LEDs of the board file: those of the rack are at 0, those of a slot at its number. One that cannot be
// opened is logged.
func (r *Rack) openLights() map[int]lights {
	all := map[int]lights{}
	if r.config.Board == nil {
		return all
	}
	for _, l := range r.config.Board.LEDs {
		if light := r.openLight(l); light != nil {
			all[l.Slot] = append(all[l.Slot], light)
			r.watch.Add(r.tree, service{"LED " + l.Name, light.Run}, stopPart)
		}
	}
	return all
}

// openLight opens one LED; nil if none of its lamps can be opened.
func (r *Rack) openLight(l board.LED) *led.Light {
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
	r.watch.Add(r.tree, service{"button", func(ctx context.Context) error { return r.care.watchButton(ctx, pin) }}, stopPart)
}

// watchButton reads the button until ctx ends.
func (c *care) watchButton(ctx context.Context, pin conn.PinIn) error {
	return button.Watch(ctx, pin, false, button.Events{Stage: c.stage, Act: func(a button.Act) { c.pressed(ctx, a) }})
}

// feedback is what the light shows of a held button.
var feedback = map[button.Stage]led.Feedback{
	button.Held: led.FeedbackHeld, button.LongHeld: led.FeedbackLong, button.Warning: led.FeedbackWarn, button.ResetHeld: led.FeedbackLast,
}

func (c *care) stage(s button.Stage) {
	if s == button.Stuck {
		c.log.Error("the button is stuck")
	}
	for _, l := range c.lights[0] {
		l.Feedback(feedback[s])
	}
}

// pointOut has a free phone's screen show the way to the page, if there is one to show; the button does not wait for it.
func (c *care) pointOut(ctx context.Context) {
	if len(c.rack.way.reachable) == 0 {
		return
	}
	c.rack.works(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.rack.halt, cancel)()
		c.ask(ctx, "sign", action.SignArgs{Seconds: int(led.IdentifyFor / time.Second)})
	})
}

// pressed does what a press asks for, as anybody's order: by the registry, which writes down who asked and what came of it.
func (c *care) pressed(ctx context.Context, a button.Act) {
	c.log.Info("button", "act", string(a))
	switch a {
	case button.Identify:
		c.lights[0].identify(led.IdentifyFor)
		c.pointOut(ctx)
	case button.Maintenance:
		c.ask(ctx, "maintenance", action.MaintenanceArgs{Off: c.hands.of(0) != ""})
	case button.FactoryReset:
		c.ask(ctx, "factory_reset", action.FactoryResetArgs{Yes: true}) // who holds it for 20 s means it
	}
}

// ask calls an action for the button. What comes of it is logged.
func (c *care) ask(ctx context.Context, name string, args any) {
	raw, err := json.Marshal(args)
	if err != nil { // of plain fields: it does not happen
		c.log.Error("what the button asks for cannot be written as JSON", "action", name, "err", err)
		return
	}
	c.rack.actions.Call(ctx, action.Button, name, raw, action.Pipes{})
}
