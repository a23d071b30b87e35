package tools

import (
	"context"
	"encoding/json"
	"image"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// focusTime is given to a field between the touch that puts the cursor into it
// and the first letter.
const focusTime = 700 * time.Millisecond

var inputText = Tool{
	Name: "input_text",
	Description: "Type text into a field. Name the field, or leave it out to type where the cursor is. " +
		"The text is added to what the field holds. With submit, enter is pressed after it, which searches or sends in many apps.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"text": {"type": "string", "minLength": 1, "maxLength": 2000},
		"submit": {"type": "boolean"},` + elementSchema + `},
		"required": ["text"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			target
			Text   string `json:"text"`
			Submit bool   `json:"submit"`
		}](args)
		if err != nil {
			return err
		}
		if out.Target, err = call.find(out.Tool, env.Scene); err != nil {
			return err
		}
		if out.Target == nil {
			out.Target = FocusedField(env.Scene)
		}
		if out.Target == nil {
			return cannotType(env, "no field has the cursor and the call names none")
		}
		if err := putCursor(ctx, env, out); err != nil {
			return err
		}
		if err := out.write(ctx, env, "typing", func() error { return env.Controls.InputText(ctx, call.Text) }); err != nil {
			return err
		}
		out.Typed = &Typed{Field: *out.Target, Text: call.Text, Submit: call.Submit}
		if !call.Submit {
			return nil
		}
		return out.write(ctx, env, "enter", func() error { return env.Controls.Key(ctx, "enter") })
	},
}

func cannotType(env Env, reason string) error {
	return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).With(env.place())
}

// putCursor touches the field unless it has the cursor already.
func putCursor(ctx context.Context, env Env, out *Outcome) error {
	field := out.Target
	if !field.Editable {
		return cannotType(env, "the element is not a field that takes text")
	}
	if field.Focused {
		return nil
	}
	p, err := touchPoint(env.Scene, field)
	if err != nil {
		return err
	}
	out.Points = []image.Point{p}
	if err := out.write(ctx, env, "tap", func() error { return env.Controls.Tap(ctx, p.X, p.Y) }); err != nil {
		return err
	}
	return sleep(ctx, focusTime)
}

// FocusedField returns the field that has the cursor, nil if there is none.
func FocusedField(s *perception.Scene) *perception.Element {
	for i := range s.Elements {
		if e := s.Elements[i]; e.Editable && e.Focused {
			return &e
		}
	}
	return nil
}

// sleep blocks for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
