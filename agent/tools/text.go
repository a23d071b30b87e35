package tools

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// A field is read back until it shows what it should, for so long: letters may
// arrive late.
const (
	readBackLimit = 3 * time.Second
	readBackPause = 300 * time.Millisecond
)

var inputText = Tool{
	Name: "input_text",
	Description: "Type text into a field, to what it holds already; clear_text empties it first. Name the field, or leave it out to type " +
		"where the cursor is. With submit, enter is pressed once the field shows the text, which searches or sends in many apps.",
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
		if env.Look == nil {
			return unsupported("input_text without looks of its own")
		}
		field, err := out.field(env, call.target)
		if err == nil && field != nil {
			field, err = out.putCursor(ctx, env, field)
		}
		if err != nil {
			return err
		}
		if err := out.write(ctx, env, "typing", func() error { return env.Controls.InputText(ctx, call.Text) }); err != nil {
			return err
		}
		out.Text = TextUnverified
		if field != nil {
			if err := out.readBack(ctx, env, Typed{Field: *field, Text: call.Text}, call.Submit); err != nil {
				return err
			}
		}
		if !call.Submit {
			return nil
		}
		return out.write(ctx, env, "enter", func() error { return env.Controls.Key(ctx, "enter") })
	},
}

// readBack fills in out.Text. It refuses what the field contradicts, and if enter
// is to follow, also when the field is gone.
func (o *Outcome) readBack(ctx context.Context, env Env, typed Typed, submits bool) error {
	verdict, scene, err := ReadBack(ctx, env, typed)
	o.Text, o.Scene = verdict, scene
	switch {
	case err != nil:
		return err
	case verdict == TextFailed:
		if field := sameField(scene, typed.Field); env.Controls != nil && garbled(typed.Field.Text, typed.Text, field.Text) {
			env.Controls.Distrust(phone.Typing)
		}
		return wire.Refuse(wire.TextDiffers, nil).With(env.place())
	case submits && sameField(scene, typed.Field) == nil:
		return wire.Refuse(wire.ObservationFailed, map[string]any{
			"detail": "the field that was typed into is gone, and enter was not pressed",
		}).With(env.place())
	}
	return nil
}

// ReadBack looks until the field shows what was typed, or cannot get nearer to
// it, and returns the verdict with the newest scene. It looks for about three
// seconds, and again before it condemns what env.Controls says may be an old
// screen. It needs env.Look, and writes nothing. The verdict is TextUnverified if
// it has an error.
func ReadBack(ctx context.Context, env Env, typed Typed) (string, *perception.Scene, error) {
	out, verdict := Outcome{Tool: "reading back"}, TextUnverified
	_, err := out.watch(ctx, env, readBackLimit, readBackPause, func(s *perception.Scene) bool {
		v, better := typed.judge(s)
		verdict = v
		return !better
	})
	if err == nil && verdict == TextFailed {
		_, err = out.proved(ctx, env, func(s *perception.Scene) bool {
			verdict = typed.verdict(s)
			return verdict != TextFailed
		})
	}
	if err != nil {
		return TextUnverified, out.Scene, err
	}
	return verdict, out.Scene, nil
}

var clearText = Tool{
	Name:        "clear_text",
	Description: "Empty a field: the one that is named, or the one that has the cursor.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + elementSchema + `},
		"additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, Idempotent: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[target](args)
		if err != nil {
			return err
		}
		if env.Look == nil {
			return unsupported("clear_text without looks of its own")
		}
		field, err := out.field(env, call)
		switch {
		case err != nil:
			return err
		case field == nil:
			return cannotType(env, "the screen does not tell which field has the cursor")
		case field.Text == "":
			// Before it is left alone: an old screen may show it empty.
			if _, err := out.proved(ctx, env, func(s *perception.Scene) bool {
				now := sameField(s, *field)
				if now == nil || now.Text == "" {
					return false
				}
				env.Scene, field = s, now
				return true
			}); err != nil {
				return err
			}
		}
		if field.Text == "" {
			out.Text = TextVerified
			return nil
		}
		if field, err = out.putCursor(ctx, env, field); err != nil {
			return err
		}
		if field.Text == "" {
			out.Text = TextVerified
			return nil
		}
		length := utf8.RuneCountInString(field.Text)
		if err := out.write(ctx, env, "clearing the field", func() error { return env.Controls.ClearText(ctx, length) }); err != nil {
			return err
		}
		out.Text = TextFailed
		_, err = out.watch(ctx, env, readBackLimit, readBackPause, func(s *perception.Scene) bool {
			out.Text = cleared(s, *field)
			return out.Text == TextVerified
		})
		if err == nil && out.Text == TextFailed {
			_, err = out.proved(ctx, env, func(s *perception.Scene) bool {
				out.Text = cleared(s, *field)
				return out.Text != TextFailed
			})
		}
		if err == nil && out.Text == TextFailed {
			env.Controls.Distrust(phone.Clearing)
			err = wire.Refuse(wire.TextDiffers, nil).With(env.place())
		}
		return err
	},
}

// cleared is the verdict on a field that was emptied. What it shows then may be
// its hint, which trees before Android 14 do not mark as one: words that are no
// rest of the old ones, or the same as before, for then it may have been empty
// from the beginning.
func cleared(scene *perception.Scene, was perception.Element) string {
	field := sameField(scene, was)
	switch {
	case field == nil:
		return TextUnverified
	case field.Text == "":
		return TextVerified
	case field.Text == was.Text && !scene.Hints:
		return TextUnverified
	case rest(field.Text, was.Text):
		return TextFailed
	}
	return TextUnverified
}

// rest reports whether s is text with some of its characters deleted.
func rest(s, text string) bool {
	left := []rune(text)
	for _, r := range s {
		for len(left) > 0 && left[0] != r {
			left = left[1:]
		}
		if len(left) == 0 {
			return false
		}
		left = left[1:]
	}
	return true
}
