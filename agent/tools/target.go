package tools

import (
	"image"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// target names an element.
type target struct {
	Element    *int    `json:"element"`
	Generation *uint64 `json:"generation"`
}

// find returns the element, or nil if the call names none.
func (t target) find(tool string, s *perception.Scene) (*perception.Element, error) {
	if t.Element == nil && t.Generation == nil {
		return nil, nil
	}
	if t.Element == nil || t.Generation == nil {
		return nil, wire.Refuse(wire.BadArguments, map[string]any{
			"tool": tool, "path": "$", "reason": "must have element and generation together",
		})
	}
	e, err := s.Find(*t.Generation, *t.Element)
	if err != nil {
		return nil, wire.From(err)
	}
	return &e, nil
}

// An on-screen keyboard is a window of its own, and the element tree does not
// tell where it begins. An app that makes room for it ends above it: nothing of
// it lies in the lowest quarter of the display. Under any other app the keyboard
// is taken to cover a share of the display's height, in percent.
const (
	roomMade      = 75
	keyboardShare = 40
)

// area returns the part of the display that the app in front can be touched in.
func area(s *perception.Scene) image.Rectangle {
	r := image.Rect(0, 0, s.Width, s.Height)
	if !s.Keyboard {
		return r
	}
	end := 0
	for _, e := range s.Elements {
		if e.Package != "com.android.systemui" {
			end = max(end, e.Bounds.Max.Y)
		}
	}
	if end > 0 && end <= s.Height*roomMade/100 {
		r.Max.Y = end
	} else {
		r.Max.Y -= s.Height * keyboardShare / 100
	}
	return r
}

// visible returns the part of the element that can be touched, or refuses.
func visible(s *perception.Scene, e *perception.Element) (image.Rectangle, error) {
	if !e.Enabled {
		return image.Rectangle{}, wire.Refuse(wire.ElementDisabled, map[string]any{"element": e.Index})
	}
	r := e.Bounds
	if s.Width > 0 && s.Height > 0 {
		r = r.Intersect(image.Rect(0, 0, s.Width, s.Height))
	}
	if r.Empty() {
		return r, wire.Refuse(wire.ElementHidden, map[string]any{"element": e.Index, "reason": "it lies outside the screen"})
	}
	if s.Keyboard && s.Height > 0 {
		if r = r.Intersect(area(s)); r.Empty() {
			return r, wire.Refuse(wire.ElementHidden, map[string]any{
				"element": e.Index, "reason": "the keyboard covers it; press back to hide the keyboard",
			})
		}
	}
	return r, nil
}

// touchGrid is how many points across and down are tried for a touch.
const touchGrid = 5

// touchPoint returns the point nearest to the centre of the element's visible
// part that does not hit another touchable element drawn over it, such as the
// button inside a touchable row. If there is no such point it is the centre.
func touchPoint(s *perception.Scene, e *perception.Element) (image.Point, error) {
	r, err := visible(s, e)
	if err != nil {
		return image.Point{}, err
	}
	centre := image.Pt((r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2)
	best, bestDistance := centre, -1
	for i := range touchGrid {
		for j := range touchGrid {
			p := image.Pt(r.Min.X+r.Dx()*(2*i+1)/(2*touchGrid), r.Min.Y+r.Dy()*(2*j+1)/(2*touchGrid))
			if d := p.Sub(centre); !taken(s, e, p) && (bestDistance < 0 || d.X*d.X+d.Y*d.Y < bestDistance) {
				best, bestDistance = p, d.X*d.X+d.Y*d.Y
			}
		}
	}
	if !taken(s, e, centre) {
		return centre, nil
	}
	return best, nil
}

// taken tells whether a touch at p goes to another touchable element, one that
// comes later and is therefore drawn over e.
func taken(s *perception.Scene, e *perception.Element, p image.Point) bool {
	for i := range s.Elements {
		o := &s.Elements[i]
		if o.Index > e.Index && o.Clickable && p.In(o.Bounds) && o.Bounds != e.Bounds {
			return true
		}
	}
	return false
}
