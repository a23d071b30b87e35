package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// SlotArgs name a slot.
type SlotArgs struct {
	Slot int `json:"slot" doc:"number of the slot"`
}

func (a *SlotArgs) slot() int { return a.Slot }

// ObserveArgs are the arguments of observe.
type ObserveArgs struct {
	SlotArgs
	Image bool `json:"image,omitempty" doc:"also take a picture"`
	Marks bool `json:"marks,omitempty" doc:"draw a box with its index around each element of the picture; a grid where there are none"`
	Grid  bool `json:"grid,omitempty" doc:"draw a grid with columns A to J and rows 1 to 10 on the picture; not together with marks"`
}

func (a *ObserveArgs) validate() error {
	if a.Marks && a.Grid {
		return errors.New("marks and grid cannot be drawn on one picture: choose one")
	}
	return nil
}

// TapArgs are the arguments of tap and long_press: an element with its generation, a text, or a point.
type TapArgs struct {
	SlotArgs
	Element    *int   `json:"element,omitempty" doc:"index in the observation"`
	Generation uint64 `json:"generation,omitempty" doc:"generation of the observation that the element is from"`
	Text       string `json:"text,omitempty" doc:"visible text or description, the whole of it"`
	X          *int   `json:"x,omitempty" doc:"pixels from the left"`
	Y          *int   `json:"y,omitempty" doc:"pixels from the top"`
}

func (a *TapArgs) validate() error {
	ways := 0
	for _, given := range []bool{a.Element != nil, a.Text != "", a.X != nil || a.Y != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("exactly one of element with generation, text, or x with y must be given")
	case a.Element != nil && a.Generation == 0:
		return errors.New("an element needs the generation of its observation")
	case a.Element == nil && a.Text == "" && (a.X == nil || a.Y == nil):
		return errors.New("a point needs x and y")
	}
	return nil
}

// SwipeArgs are the arguments of swipe.
type SwipeArgs struct {
	SlotArgs
	X1 int `json:"x1" doc:"start, pixels from the left"`
	Y1 int `json:"y1" doc:"start, pixels from the top"`
	X2 int `json:"x2" doc:"end, pixels from the left"`
	Y2 int `json:"y2" doc:"end, pixels from the top"`
	MS int `json:"ms,omitempty" doc:"how long it takes, in milliseconds; 300 if not given"`
}

func (a *SwipeArgs) validate() error {
	if a.MS < 0 || a.MS > maxSwipe {
		return fmt.Errorf("ms must be from 1 to %d", maxSwipe)
	}
	return nil
}

// TextArgs are the arguments of input_text.
type TextArgs struct {
	SlotArgs
	Text string `json:"text" doc:"what to type into the focused field"`
}

// KeyArgs are the arguments of press_key.
type KeyArgs struct {
	SlotArgs
	Key string `json:"key" doc:"name of the key, such as back, home or enter"`
}

// AppArgs are the arguments of launch_app.
type AppArgs struct {
	SlotArgs
	App string `json:"app" doc:"package name"`
}

// HoldArgs are the arguments of hold.
type HoldArgs struct {
	SlotArgs
	Seconds int `json:"seconds,omitempty" doc:"how long; 15 minutes, or the longest allowed if that is less, when not given"`
}

// validate only keeps the number a duration; how long a hold may be is for the leases to say.
func (a *HoldArgs) validate() error { return validSeconds(a.Seconds, maxSeconds) }

// Phones is the result of phones.
type Phones struct {
	Phones []PhoneState `json:"phones"`
}

// Done is the result of an act that has nothing to tell.
type Done struct{}

// Typed is the result of input_text.
type Typed struct {
	Text string `json:"text"` // "verified" if the field shows the text, "unverified" if no field could be read
}

const (
	lookTimeout  = time.Minute
	touchTimeout = 30 * time.Second
	quick        = 10 * time.Second
	appsTimeout  = 6 * time.Minute // 21 MB over a slow bus, and a server that starts
	longPress    = time.Second
	defaultSwipe = 300 * time.Millisecond
	maxSwipe     = 10_000 // milliseconds
	maxSeconds   = 86_400 // of a hold, whatever the configuration allows
)

func phoneActions() []entry {
	touch := func(name, summary string) Definition {
		return Definition{Name: name, Summary: summary, Role: Operator, NeedsLease: true, Timeout: touchTimeout}
	}
	return []entry{
		define(Definition{Name: "phones", Summary: "list slots and phones", Role: Viewer, Idempotent: true, Timeout: quick}, listPhones),
		define(Definition{Name: "observe", Summary: "read a phone's screen", Role: Viewer, Idempotent: true, Timeout: lookTimeout}, observe),
		define(Definition{Name: "ping", Summary: "tell that the rack is there", Role: Viewer, Idempotent: true, Timeout: quick}, ping),
		define(Definition{Name: "screenshot", Summary: "take a picture of a phone's screen", Role: Viewer, Idempotent: true, Timeout: lookTimeout}, screenshot),
		define(Definition{
			Name: "phone_info", Summary: "read what a phone tells of itself and what is remembered of it", Role: Viewer, Idempotent: true, Timeout: lookTimeout,
		}, phoneInfo),
		define(touch("tap", "tap an element, a text or a point"), tap),
		define(touch("long_press", "press an element, a text or a point for a second"), press),
		define(touch("swipe", "move a finger over the screen"), swipe),
		define(Definition{
			Name: "input_text", Summary: "type into the focused field and read it back", Role: Operator, NeedsLease: true, Timeout: lookTimeout,
		}, inputText),
		define(touch("press_key", "press a key"), pressKey),
		define(touch("launch_app", "start an app"), launchApp),
		define(Definition{Name: "helpers_status", Summary: "tell which helper apps a phone has", Role: Viewer, Idempotent: true, Timeout: touchTimeout}, helpersStatus),
		define(Definition{
			Name: "helpers_install", Summary: "install the helper apps on a phone and start them", Role: Operator, NeedsLease: true, Idempotent: true, Timeout: appsTimeout,
		}, helpersInstall),
		define(Definition{
			Name: "helpers_remove", Summary: "take the helper apps off a phone", Role: Operator, NeedsLease: true, Idempotent: true, Timeout: appsTimeout,
		}, helpersRemove),
		define(Definition{Name: "hold", Summary: "keep a slot for yourself, or keep it longer", Role: Operator, Idempotent: true, Timeout: quick}, hold),
		define(Definition{Name: "release", Summary: "give a held slot back", Role: Operator, Idempotent: true, Timeout: quick}, release),
	}
}

func listPhones(_ context.Context, c *call, _ *struct{}) (any, error) {
	return Phones{Phones: c.rack.Phones()}, nil
}

func observe(ctx context.Context, c *call, args *ObserveArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	return p.Observe(ctx, Want{Image: args.Image || args.Marks || args.Grid, Marks: args.Marks, Grid: args.Grid})
}

func ping(_ context.Context, c *call, _ *struct{}) (any, error) { return c.rack.Ping(), nil }

// Screenshot is the result of screenshot.
type Screenshot struct {
	Slot    int    `json:"slot"`
	Package string `json:"package"` // of the app in front
	Width   int    `json:"width"`   // pixels
	Height  int    `json:"height"`
	Image   []byte `json:"image,omitempty"` // JPEG
}

func screenshot(ctx context.Context, c *call, args *SlotArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	seen, err := p.Observe(ctx, Want{Image: true})
	if err != nil {
		return nil, err
	}
	if seen.Image == nil {
		return nil, wire.Refuse(wire.ObservationFailed, map[string]any{"slot": args.Slot, "serial": c.serial(), "detail": "the phone gave no picture"})
	}
	return Screenshot{Slot: args.Slot, Package: seen.Package, Width: seen.Width, Height: seen.Height, Image: seen.Image}, nil
}

func phoneInfo(ctx context.Context, c *call, args *SlotArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	return p.Info(ctx)
}

func helpersStatus(ctx context.Context, c *call, args *SlotArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	return p.HelperStatus(ctx)
}

func helpersInstall(ctx context.Context, c *call, args *SlotArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	if err := p.InstallHelpers(ctx, c.fence); err != nil {
		return nil, err
	}
	return p.HelperStatus(ctx)
}

func helpersRemove(ctx context.Context, c *call, args *SlotArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	if err := p.RemoveHelpers(ctx, c.fence); err != nil {
		return nil, err
	}
	return p.HelperStatus(ctx)
}

func tap(ctx context.Context, c *call, args *TapArgs) (any, error) {
	return touchAt(ctx, c, args, func(controls Controls, x, y int) error { return controls.Tap(ctx, x, y) })
}

func press(ctx context.Context, c *call, args *TapArgs) (any, error) {
	return touchAt(ctx, c, args, func(controls Controls, x, y int) error { return controls.LongPress(ctx, x, y, longPress) })
}

// Point is the result of tap and long_press: where the screen was touched.
type Point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func touchAt(ctx context.Context, c *call, args *TapArgs, touch func(controls Controls, x, y int) error) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	var at Point
	switch {
	case args.Element != nil:
		at.X, at.Y, err = p.Element(ctx, args.Generation, *args.Element)
	case args.Text != "":
		at.X, at.Y, err = p.Text(ctx, args.Text)
	default:
		at = Point{*args.X, *args.Y}
	}
	if err != nil {
		return nil, err
	}
	return at, touch(p.Under(c.fence), at.X, at.Y)
}

func swipe(ctx context.Context, c *call, args *SwipeArgs) (any, error) {
	d := time.Duration(args.MS) * time.Millisecond
	if d == 0 {
		d = defaultSwipe
	}
	return control(c, args.Slot, func(controls Controls) error { return controls.Swipe(ctx, args.X1, args.Y1, args.X2, args.Y2, d) })
}

func inputText(ctx context.Context, c *call, args *TextArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	verdict, err := p.Under(c.fence).Type(ctx, args.Text)
	return Typed{Text: verdict}, err
}

func pressKey(ctx context.Context, c *call, args *KeyArgs) (any, error) {
	return control(c, args.Slot, func(controls Controls) error { return controls.Key(ctx, args.Key) })
}

func launchApp(ctx context.Context, c *call, args *AppArgs) (any, error) {
	return control(c, args.Slot, func(controls Controls) error { return controls.Launch(ctx, args.App) })
}

func control(c *call, slot int, act func(Controls) error) (any, error) {
	p, err := c.rack.Phone(slot)
	if err != nil {
		return nil, err
	}
	return Done{}, act(p.Under(c.fence))
}

func hold(_ context.Context, c *call, args *HoldArgs) (any, error) {
	if err := slotExists(c.rack, args.Slot); err != nil {
		return nil, err
	}
	l, err := c.leases.Acquire(args.Slot, lease.Holder{Kind: lease.Hold, Who: c.actor.Name}, lasting(args.Seconds, c.leases.DefaultHold()))
	if err != nil {
		return nil, err
	}
	return l.State(), nil
}

func release(_ context.Context, c *call, args *SlotArgs) (any, error) {
	if err := slotExists(c.rack, args.Slot); err != nil {
		return nil, err
	}
	return Done{}, c.leases.Release(args.Slot, c.actor.Name)
}
