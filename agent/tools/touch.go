package tools

import (
	"context"
	"encoding/json"
	"image"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// How long fingers take.
const (
	pressTime = 800 * time.Millisecond
	swipeTime = 400 * time.Millisecond
)

const touchSchema = `{"type": "object", "properties": {` + spotSchema + `},
	"required": ["generation"], "additionalProperties": false}`

var tap = Tool{
	Name:        "tap",
	Description: "Touch an element briefly, as a person would to press a button, open an item or put the cursor into a field.",
	Schema:      json.RawMessage(touchSchema),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run:         touch("tap", Controls.Tap),
}

var doubleTap = Tool{
	Name:        "double_tap",
	Description: "Touch an element twice, quickly, which zooms a map or picture, or selects a word.",
	Schema:      json.RawMessage(touchSchema),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run:         touch("double tap", Controls.DoubleTap),
}

var longPress = Tool{
	Name:        "long_press",
	Description: "Touch an element for almost a second, which opens a menu or starts a selection in many apps.",
	Schema:      json.RawMessage(touchSchema),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: touch("long press", func(c Controls, ctx context.Context, x, y int) error {
		return c.LongPress(ctx, x, y, pressTime)
	}),
}

// touch is the execution of a tool that touches one point.
func touch(what string, do func(c Controls, ctx context.Context, x, y int) error) runs {
	return func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[spot](args)
		if err != nil {
			return err
		}
		p, err := out.aim(env, call)
		if err != nil {
			return err
		}
		return out.write(ctx, env, what, func() error { return do(env.Controls, ctx, p.X, p.Y) })
	}
}

var swipe = Tool{
	Name: "swipe",
	Description: "Move a finger across the screen, or across an element such as a slider. The direction is the finger's: " +
		"up shows what is further down, left what is further right. To look for something in a list use scroll_to.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"direction": {"type": "string", "enum": ["up", "down", "left", "right"]},` + spotSchema + `},
		"required": ["direction"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			spot
			Direction string `json:"direction"`
		}](args)
		if err != nil {
			return err
		}
		from, to, err := out.path(env, call.spot, call.Direction)
		if err != nil {
			return err
		}
		return out.swipe(ctx, env, from, to, swipeTime)
	},
}

// swipe moves a finger.
func (o *Outcome) swipe(ctx context.Context, env Env, from, to image.Point, d time.Duration) error {
	o.Points = []image.Point{from, to}
	return o.write(ctx, env, "swipe", func() error {
		return env.Controls.Swipe(ctx, from.X, from.Y, to.X, to.Y, d)
	})
}

// path returns where a swipe begins and ends: across an element, from a point
// on, or across the screen.
func (o *Outcome) path(env Env, t spot, direction string) (from, to image.Point, err error) {
	p, err := t.point(o.Tool, env.Scene)
	if err != nil {
		return from, to, err
	}
	if p != nil {
		to, ok := strokeFrom(*p, display(env.Scene), direction)
		if !ok {
			return from, to, wire.Refuse(wire.PointRefused, map[string]any{
				"x": *t.X, "y": *t.Y, "reason": "it lies at the edge that the finger should move to",
			})
		}
		return *p, to, nil
	}
	if o.Target, err = t.find(o.Tool, env.Scene); err != nil {
		return from, to, err
	}
	r := free(env.Scene, display(env.Scene))
	if o.Target != nil {
		if r, err = visible(env.Scene, o.Target); err != nil {
			return from, to, err
		}
	}
	if r.Empty() {
		return from, to, sizeUnknown(env)
	}
	from, to = stroke(r, direction)
	return from, to, nil
}

func display(s *perception.Scene) image.Rectangle { return image.Rect(0, 0, s.Width, s.Height) }

func sizeUnknown(env Env) error {
	return wire.Refuse(wire.ObservationFailed, map[string]any{"detail": "the size of the display is not known"}).With(env.place())
}

// stroke runs along six tenths of the middle of r. It keeps away from the edges,
// where systems have gestures of their own.
func stroke(r image.Rectangle, direction string) (from, to image.Point) {
	c := image.Pt((r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2)
	d := along(direction, r.Dx()*3/10, r.Dy()*3/10)
	return c.Sub(d), c.Add(d)
}

// along is a step of dx or dy in the direction.
func along(direction string, dx, dy int) image.Point {
	switch direction {
	case "up":
		return image.Pt(0, -dy)
	case "down":
		return image.Pt(0, dy)
	case "left":
		return image.Pt(-dx, 0)
	}
	return image.Pt(dx, 0)
}

// strokeFrom runs from p along three tenths of the screen and ends before its
// edge; false means that there is no room.
func strokeFrom(p image.Point, screen image.Rectangle, direction string) (to image.Point, ok bool) {
	d := along(direction, screen.Dx()*3/10, screen.Dy()*3/10)
	to = p.Add(d)
	if d.X != 0 {
		to.X = min(max(to.X, screen.Dx()/20), screen.Dx()*19/20)
	} else {
		to.Y = min(max(to.Y, screen.Dy()/20), screen.Dy()*19/20)
	}
	moved := to.Sub(p)
	return to, moved.X*d.X+moved.Y*d.Y > 0
}
