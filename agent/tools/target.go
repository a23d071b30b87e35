package tools

import (
	"fmt"
	"image"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// target names an element.
type target struct {
	Element    *int    `json:"element"`
	Generation *uint64 `json:"generation"`
}

// elementSchema are the properties of a target. The numbers are bounded by what
// fits into them.
const elementSchema = `
	"element": {"type": "integer", "minimum": 0, "maximum": 100000, "description": "the number in brackets before it"},
	"generation": {"type": "integer", "minimum": 1, "description": "number of the screen that lists it"}`

// find returns the element, or nil if the call names none.
func (t target) find(tool string, s *perception.Scene) (*perception.Element, error) {
	if t.Element == nil && t.Generation == nil {
		return nil, nil
	}
	if t.Element == nil || t.Generation == nil {
		return nil, badArgument(tool, "$", "must have element and generation together")
	}
	e, err := s.Find(*t.Generation, *t.Element)
	if err != nil {
		return nil, wire.From(err)
	}
	return &e, nil
}

func badArgument(tool, path, reason string) error {
	return wire.Refuse(wire.BadArguments, map[string]any{"tool": tool, "path": path, "reason": reason})
}

// spot names where to touch: an element or, on a screen without a tree, a pixel
// of the picture.
type spot struct {
	target
	X *int `json:"x"`
	Y *int `json:"y"`
}

// spotSchema are the properties of a spot.
const spotSchema = elementSchema + `,
	"x": {"type": "integer", "minimum": 0, "maximum": 100000, "description": "pixel of the picture; only on a screen that says no-tree, instead of element"},
	"y": {"type": "integer", "minimum": 0, "maximum": 100000}`

// point returns the point of the display that a spot without element names, or
// nil if it names none.
func (t spot) point(tool string, s *perception.Scene) (*image.Point, error) {
	switch {
	case t.X == nil && t.Y == nil:
		return nil, nil
	case t.X == nil || t.Y == nil:
		return nil, badArgument(tool, "$", "must have x and y together")
	case t.Element != nil:
		return nil, badArgument(tool, "$", "must have either element or x and y")
	case t.Generation == nil:
		return nil, badArgument(tool, "$.generation", "is missing")
	case *t.Generation != s.Generation:
		reason := fmt.Sprintf("it belongs to screen %d while screen %d is shown", *t.Generation, s.Generation)
		return nil, wire.Refuse(wire.PointRefused, map[string]any{"x": *t.X, "y": *t.Y, "reason": reason})
	}
	p, err := s.ScreenPoint(*t.X, *t.Y)
	if err != nil {
		return nil, wire.From(err)
	}
	return &p, nil
}

// aim finds what a call touches, and where.
func (o *Outcome) aim(env Env, t spot) (image.Point, error) {
	p, err := t.point(o.Tool, env.Scene)
	if err == nil && p == nil {
		if t.Element == nil {
			return image.Point{}, badArgument(o.Tool, "$.element", "is missing")
		}
		if o.Target, err = t.find(o.Tool, env.Scene); err == nil {
			p = new(image.Point)
			*p, err = touchPoint(env.Scene, o.Target)
		}
	}
	if err != nil {
		return image.Point{}, err
	}
	o.Points = []image.Point{*p}
	return *p, nil
}

// An app that makes room for the on-screen keyboard ends above it: nothing of it
// lies in the lowest quarter of the display. Under any other app a keyboard
// whose place is not known is taken to cover a share of the display's height, in
// percent.
const (
	roomMade      = 75
	keyboardShare = 40
)

// keyboardArea returns the part of the display that the keyboard covers; empty if
// it is hidden.
func keyboardArea(s *perception.Scene) image.Rectangle {
	screen := image.Rect(0, 0, s.Width, s.Height)
	switch {
	case !s.Keyboard:
		return image.Rectangle{}
	case !s.KeyboardArea.Empty():
		return s.KeyboardArea.Intersect(screen)
	}
	end := 0
	for _, e := range s.Elements {
		if e.Package != "com.android.systemui" {
			end = max(end, e.Bounds.Max.Y)
		}
	}
	if end > 0 && end <= s.Height*roomMade/100 {
		screen.Min.Y = end
	} else {
		screen.Min.Y = s.Height - s.Height*keyboardShare/100
	}
	return screen
}

// free returns the larger of the parts of r above and below the keyboard; all of
// r if the keyboard does not touch it.
func free(s *perception.Scene, r image.Rectangle) image.Rectangle {
	k := keyboardArea(s)
	if !k.Overlaps(r) {
		return r
	}
	above, below := r, r
	above.Max.Y, below.Min.Y = min(r.Max.Y, k.Min.Y), max(r.Min.Y, k.Max.Y)
	if above.Dy() >= below.Dy() {
		return above
	}
	return below
}

// visible returns the part of the element that can be touched, or refuses.
func visible(s *perception.Scene, e *perception.Element) (image.Rectangle, error) {
	hidden := func(reason string) (image.Rectangle, error) {
		return image.Rectangle{}, wire.Refuse(wire.ElementHidden, map[string]any{"element": e.Index, "reason": reason})
	}
	if !e.Enabled {
		return image.Rectangle{}, wire.Refuse(wire.ElementDisabled, map[string]any{"element": e.Index})
	}
	r := e.Bounds
	if s.Width > 0 && s.Height > 0 {
		r = r.Intersect(image.Rect(0, 0, s.Width, s.Height))
	}
	if r.Empty() {
		return hidden("it lies outside the screen")
	}
	if r = free(s, r); r.Empty() {
		return hidden("the keyboard covers it; press back to hide the keyboard")
	}
	return r, nil
}

// touchGrid is how many points across and down are tried for a touch.
const touchGrid = 5

// touchPoint returns the point of the element's visible part where a touch
// reaches it, the nearest to its centre. An element is covered where another
// touchable one is drawn over it; what lies wholly within it is usually its own
// part, such as the button in a touchable row, and is touched only if nothing
// else of the element is left.
func touchPoint(s *perception.Scene, e *perception.Element) (image.Point, error) {
	r, err := visible(s, e)
	if err != nil {
		return image.Point{}, err
	}
	centre := image.Pt((r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2)
	best, bestCover, bestDistance := centre, cover(s, e, centre), 0
	for i := range touchGrid {
		for j := range touchGrid {
			p := image.Pt(r.Min.X+r.Dx()*(2*i+1)/(2*touchGrid), r.Min.Y+r.Dy()*(2*j+1)/(2*touchGrid))
			d := p.Sub(centre)
			distance, c := d.X*d.X+d.Y*d.Y, cover(s, e, p)
			if c < bestCover || c == bestCover && distance < bestDistance {
				best, bestCover, bestDistance = p, c, distance
			}
		}
	}
	if bestCover == covered {
		return image.Point{}, wire.Refuse(wire.ElementHidden, map[string]any{"element": e.Index, "reason": "something else lies over it"})
	}
	return best, nil
}

// reachable reports whether a touch would reach the element if it were enabled.
func reachable(s *perception.Scene, e *perception.Element) bool {
	enabled := *e
	enabled.Enabled = true
	_, err := touchPoint(s, &enabled)
	return err == nil
}

// What a touch of an element meets.
const (
	bare    = iota // the element itself
	ownPart        // something within it
	covered        // something over it
)

// cover tells what a touch of e at p meets. Elements that come later are drawn
// over e. A touch of words that do not react themselves is meant for whatever
// takes it.
func cover(s *perception.Scene, e *perception.Element, p image.Point) int {
	meets := bare
	for i := range s.Elements {
		o := &s.Elements[i]
		if o.Index <= e.Index || !o.Clickable && !o.LongClickable || !p.In(o.Bounds) || o.Bounds == e.Bounds {
			continue
		}
		if reacts(e) && !o.Bounds.In(e.Bounds) {
			return covered
		}
		meets = ownPart
	}
	if underDialog(s, e, p) {
		return covered
	}
	return meets
}

func reacts(e *perception.Element) bool {
	return e.Clickable || e.LongClickable || e.Checkable || e.Editable
}

// underDialog reports whether another app's window lies over e at p. One that
// fills the display is left out: many only tint it and let touches through.
func underDialog(s *perception.Scene, e *perception.Element, p image.Point) bool {
	for _, w := range s.Windows {
		if w.Focused || w.Kind == phone.AppWindow {
			return false // the elements are this window's
		}
		if w.Kind == phone.DialogWindow && w.Package != e.Package && p.In(w.Bounds) && !display(s).In(w.Bounds) {
			return true
		}
	}
	return false
}
