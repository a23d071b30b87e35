package tools

import (
	"context"
	"image"
	"slices"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// What a field is given between the touch that puts the cursor into it and the
// first letter. An input method may show no keyboard, so that one is not waited
// for as long.
const (
	focusLimit   = 4 * time.Second
	keyboardWait = 1500 * time.Millisecond
)

func cannotType(env Env, reason string) error {
	return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).With(env.place())
}

// field finds the field that a call names, or else that has the cursor. It is nil
// without an error if the cursor is somewhere that the elements do not tell: the
// keyboard is shown.
func (o *Outcome) field(env Env, t target) (*perception.Element, error) {
	field, err := t.find(o.Tool, env.Scene)
	if err != nil {
		return nil, err
	}
	if field == nil {
		field = FocusedField(env.Scene)
	}
	o.Target = field
	switch {
	case field == nil && !env.Scene.Keyboard:
		return nil, cannotType(env, "no field has the cursor and the call names none")
	case field != nil && !field.Editable:
		return nil, cannotType(env, "the element is not a field that takes text")
	case field != nil && !field.Enabled:
		return nil, wire.Refuse(wire.ElementDisabled, map[string]any{"element": field.Index})
	}
	return field, nil
}

// putCursor touches the field unless it has the cursor already, waits until it
// has, and returns the field as it is then.
func (o *Outcome) putCursor(ctx context.Context, env Env, field *perception.Element) (*perception.Element, error) {
	if field.Focused {
		return field, nil
	}
	p, err := touchPoint(env.Scene, field)
	if err != nil {
		return nil, err
	}
	o.Points = []image.Point{p}
	if err := o.write(ctx, env, "tap", func() error { return env.Controls.Tap(ctx, p.X, p.Y) }); err != nil {
		return nil, err
	}
	var is *perception.Element
	begun := time.Now()
	_, err = o.insist(ctx, env, focusLimit, lookPause, func(s *perception.Scene) bool {
		is = sameField(s, *field)
		switch ready := s.Keyboard || time.Since(begun) >= keyboardWait; {
		case is == nil:
			return false
		case is.Focused:
			return ready
		}
		// Some pages do not tell which of their fields has the cursor.
		return s.Keyboard && time.Since(begun) >= keyboardWait && FocusedField(s) == nil
	})
	if err == nil && is != nil && !is.Focused && slices.Equal(o.Scene.Elements, env.Scene.Elements) {
		// That a touch changes nothing but the keyboard is odd: the cursor may be in another field.
		_, err = o.proved(ctx, env, func(s *perception.Scene) bool {
			is = sameField(s, *field)
			return is != nil && is.Focused
		})
	}
	if err != nil {
		return nil, err
	}
	if now := o.Scene; is == nil || !is.Focused && (!now.Keyboard || FocusedField(now) != nil) {
		return nil, cannotType(env, "the cursor did not go into the field when it was touched")
	}
	o.Target = is
	return is, nil
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

// sameField finds a field again, nil if it cannot be told which it is. Rows of
// a form often hold fields that differ in nothing but their place and the
// cursor, and the place changes when the keyboard opens.
func sameField(scene *perception.Scene, was perception.Element) *perception.Element {
	var like []*perception.Element
	keys := 0 // of like
	for i := range scene.Elements {
		e := &scene.Elements[i]
		if e.Editable && e.ID == was.ID && e.Class == was.Class && e.Password == was.Password {
			like = append(like, e)
			if sameKey(e, was) {
				keys++
			}
		}
	}
	for _, same := range []func(*perception.Element) bool{
		func(*perception.Element) bool { return len(like) == 1 && was.ID != "" },
		func(e *perception.Element) bool { return keys == 1 && sameKey(e, was) },
		func(e *perception.Element) bool { return e.Focused && (was.ID != "" || sameKey(e, was)) },
		func(e *perception.Element) bool { return e.Bounds == was.Bounds },
	} {
		for _, e := range like {
			if same(e) {
				return new(*e)
			}
		}
	}
	return nil
}

func sameKey(e *perception.Element, was perception.Element) bool {
	return was.Key != 0 && e.Key == was.Key
}
