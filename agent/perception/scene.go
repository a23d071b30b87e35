package perception

import (
	"errors"
	"image"
	"sync/atomic"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// Roles of an element.
const (
	RoleButton   = "button"
	RoleEdit     = "edit"
	RoleText     = "text"
	RoleImage    = "image"
	RoleCheckbox = "checkbox"
	RoleSwitch   = "switch"
	RoleList     = "list"
	RoleItem     = "item" // a touchable row of a list
	RoleTab      = "tab"
	RoleScroll   = "scroll"
	RoleWeb      = "web"
	RoleView     = "view" // anything else
)

// Parts of an observation that Scene.Missing may name.
const (
	PartElements = "elements" // the tree could not be read: Elements is empty
	PartMore     = "more"     // the tree was too large: Elements is only its beginning
	PartFocus    = "focus"    // Package comes from the tree, Activity is empty
	PartDisplay  = "display"  // Width and Height come from the tree or the image
	PartKeyboard = "keyboard" // Keyboard is not known
	PartImage    = "image"    // an image was wanted and is not there, or is all black as of a window that forbids it
)

// Element is one thing on the screen that can be seen or touched. Its strings
// come from the app in front and are untrusted.
type Element struct {
	Index       int    // within its scene, from 0
	Role        string // one of the Role constants
	Text        string // own text, or that of the children of a touchable row
	Description string // content description, for people who do not see
	Hint        string // what an empty field asks for
	ID          string // resource id, "package:id/name"
	Class       string // Android class name
	Package     string
	Bounds      image.Rectangle // in pixels of the display, clipped to it

	Clickable, LongClickable, Scrollable, Editable bool
	Checkable, Checked, Focused, Selected          bool
	Enabled, Password                              bool
}

// Center is where a touch of the element goes.
func (e Element) Center() image.Point {
	return image.Pt((e.Bounds.Min.X+e.Bounds.Max.X)/2, (e.Bounds.Min.Y+e.Bounds.Max.Y)/2)
}

// Scene is one observation of a screen.
type Scene struct {
	Generation        uint64 // rises with each observation of an Observer, from 1
	Elements          []Element
	Package, Activity string          // what is in front; Activity in its short form ".Main" where it has one
	Width, Height     int             // of the display as it is turned now, in pixels
	Rotation          int             // quarter turns anticlockwise from the natural position, 0 to 3
	Keyboard          bool            // the on-screen keyboard is shown
	KeyboardArea      image.Rectangle // in pixels of the display; empty if it is not known
	Windows           []phone.Window  // the topmost first; nil if they are not known
	Hash              uint64          // equal for equal content; the status bar is left out
	Picture           *frame.Picture
	Missing           []string // Part constants, in the order given there
	At                time.Time

	latest *atomic.Uint64 // the generation that its observer began last; nil in a scene of no observer
}

// Causes of the refusals of Find.
var (
	ErrStale          = errors.New("the screen was observed again since")
	ErrUnknownElement = errors.New("no such element")
)

// Find returns the element with that index if generation is this scene's and no
// later observation has begun. Otherwise it returns a *wire.Refusal,
// wire.StaleElement with cause ErrStale or wire.UnknownElement with cause
// ErrUnknownElement.
func (s *Scene) Find(generation uint64, index int) (Element, error) {
	current := s.Generation
	if s.latest != nil {
		current = s.latest.Load()
	}
	if generation != s.Generation || generation != current {
		return Element{}, wire.Refuse(wire.StaleElement, map[string]any{
			"element": index, "generation": generation, "current": current,
		}).Because(ErrStale)
	}
	if index < 0 || index >= len(s.Elements) {
		return Element{}, wire.Refuse(wire.UnknownElement, map[string]any{
			"element": index, "count": len(s.Elements),
		}).Because(ErrUnknownElement)
	}
	return s.Elements[index], nil
}

// PicturePoint maps a point of the display to a pixel of Picture.
func (s *Scene) PicturePoint(p image.Point) image.Point {
	if s.Picture == nil || s.Width <= 0 || s.Height <= 0 {
		return p
	}
	return image.Pt(p.X*s.Picture.Size.X/s.Width, p.Y*s.Picture.Size.Y/s.Height)
}
