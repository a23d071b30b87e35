package tools

import (
	"context"
	"encoding/json"
	"image"
	"time"

	"phonerack/sync/wire"
)

// How long fingers take.
const (
	pressTime = 800 * time.Millisecond
	swipeTime = 400 * time.Millisecond
)

const elementSchema = `
	"element": {"type": "integer", "minimum": 0, "maximum": 100000, "description": "index of the element, the number in brackets before it"},
	"generation": {"type": "integer", "minimum": 1, "description": "number of the screen that lists the element"}`

var tap = Tool{
	Name:        "tap",
	Description: "Touch an element briefly, as a person would to press a button, open an item or put the cursor into a field.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + elementSchema + `},
		"required": ["element", "generation"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		p, err := aim(env, args, out)
		if err != nil {
			return err
		}
		return out.write(ctx, env, "tap", func() error { return env.Controls.Tap(ctx, p.X, p.Y) })
	},
}

var longPress = Tool{
	Name:        "long_press",
	Description: "Touch an element for almost a second, which opens a menu or starts a selection in many apps.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + elementSchema + `},
		"required": ["element", "generation"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		p, err := aim(env, args, out)
		if err != nil {
			return err
		}
		return out.write(ctx, env, "long press", func() error { return env.Controls.LongPress(ctx, p.X, p.Y, pressTime) })
	},
}

// aim finds the element of a call and the point to touch it at.
func aim(env Env, args json.RawMessage, out *Outcome) (image.Point, error) {
	t, err := decode[target](args)
	if err != nil {
		return image.Point{}, err
	}
	if out.Target, err = t.find(out.Tool, env.Scene); err != nil {
		return image.Point{}, err
	}
	p, err := touchPoint(env.Scene, out.Target)
	if err == nil {
		out.Points = []image.Point{p}
	}
	return p, err
}

var swipe = Tool{
	Name: "swipe",
	Description: "Move a finger across the screen, or across an element such as a list. The direction is the finger's: " +
		"up shows what is further down, left shows what is further right.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"direction": {"type": "string", "enum": ["up", "down", "left", "right"]},` + elementSchema + `},
		"required": ["direction"], "additionalProperties": false}`),
	Annotations: Annotations{Idempotent: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			target
			Direction string `json:"direction"`
		}](args)
		if err != nil {
			return err
		}
		if out.Target, err = call.find(out.Tool, env.Scene); err != nil {
			return err
		}
		r := area(env.Scene)
		if out.Target != nil {
			if r, err = visible(env.Scene, out.Target); err != nil {
				return err
			}
		}
		if r.Empty() {
			return wire.Refuse(wire.ObservationFailed, map[string]any{"detail": "the size of the display is not known"}).With(env.place())
		}
		from, to := stroke(r, call.Direction)
		out.Points = []image.Point{from, to}
		return out.write(ctx, env, "swipe", func() error {
			return env.Controls.Swipe(ctx, from.X, from.Y, to.X, to.Y, swipeTime)
		})
	},
}

// stroke runs through the middle of r and keeps away from its edges, where
// systems have gestures of their own.
func stroke(r image.Rectangle, direction string) (from, to image.Point) {
	c := image.Pt((r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2)
	dx, dy := r.Dx()*3/10, r.Dy()*3/10
	switch direction {
	case "up":
		return c.Add(image.Pt(0, dy)), c.Sub(image.Pt(0, dy))
	case "down":
		return c.Sub(image.Pt(0, dy)), c.Add(image.Pt(0, dy))
	case "left":
		return c.Add(image.Pt(dx, 0)), c.Sub(image.Pt(dx, 0))
	}
	return c.Sub(image.Pt(dx, 0)), c.Add(image.Pt(dx, 0))
}
