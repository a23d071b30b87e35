package perception

import (
	"errors"
	"fmt"
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

// Parts of an observation. Scene.Missing may name all but the last two, which
// only add to what a planner is told.
const (
	PartElements = "elements" // the tree could not be read: Elements is empty
	PartMore     = "more"     // the tree was too large: Elements is only its beginning
	PartFocus    = "focus"    // Package comes from the tree, Activity is empty
	PartDisplay  = "display"  // Width and Height come from the tree or the image
	PartKeyboard = "keyboard" // Keyboard is not known
	PartImage    = "image"    // an image was wanted and is not there, or is all black as of a window that forbids it
	PartWindows  = "windows"
	PartLock     = "lock"
)

// Part is one reading of an observation.
type Part struct {
	Name string    // one of the Part constants, never PartMore
	At   time.Time // when the phone had answered
	Err  error     // why it is missing; nil if it is there
}

// Why a scene has no tree to go by.
const (
	NoTreeUnreadable = "unreadable" // the tree could not be read, there is a picture only
	NoTreeDrawn      = "drawn"      // the app draws itself: the tree holds next to nothing of what it shows
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

	// Key is equal for what is taken for the same element in another scene: id,
	// class, words and the classes and ids of the ancestors, but not the place,
	// the states and what a field holds.
	Key uint64
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
	Asleep            bool            // the screen is off; false if that is not known
	Locked            bool            // the lock screen is in front; false if that is not known
	Hints             bool            // the tree tells hints from texts: what a field shows as its text is none
	NoTree            string          // why the elements say little: one of the NoTree constants, or ""
	Secure            bool            // the picture is black where the app is, which forbids pictures
	Hash              uint64          // equal for equal content; clocks and the status bar are left out, without a tree the picture counts
	Picture           *frame.Picture
	Missing           []string // Part constants, in the order given there
	Parts             []Part   // what was read, in the order of the Part constants
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

// ByKey returns the one element with that key; false if there is none, or more
// than one.
func (s *Scene) ByKey(key uint64) (Element, bool) {
	found := -1
	for i := range s.Elements {
		if s.Elements[i].Key != key {
			continue
		}
		if found >= 0 {
			return Element{}, false
		}
		found = i
	}
	if found < 0 || key == 0 {
		return Element{}, false
	}
	return s.Elements[found], true
}

// ScreenPoint maps a pixel of Picture to the point of the display in its middle.
// It refuses with wire.PointRefused unless NoTree is set, the picture shows
// something, the pixel lies in it, and no later observation has begun.
func (s *Scene) ScreenPoint(x, y int) (image.Point, error) {
	reason := ""
	switch {
	case s.latest != nil && s.latest.Load() != s.Generation:
		reason = "the screen was observed again since"
	case s.NoTree == "":
		reason = "the screen has elements to name"
	case s.Picture == nil || s.Picture.Size.X <= 0 || s.Picture.Size.Y <= 0 || s.Width <= 0 || s.Height <= 0:
		reason = "there is no picture of the screen"
	case s.Secure:
		reason = "the picture of the screen is black"
	case !image.Pt(x, y).In(image.Rectangle{Max: s.Picture.Size}):
		reason = fmt.Sprintf("it lies outside the picture of %dx%d", s.Picture.Size.X, s.Picture.Size.Y)
	}
	if reason != "" {
		return image.Point{}, wire.Refuse(wire.PointRefused, map[string]any{"x": x, "y": y, "reason": reason})
	}
	return image.Pt((2*x+1)*s.Width/(2*s.Picture.Size.X), (2*y+1)*s.Height/(2*s.Picture.Size.Y)), nil
}

// Dialog returns the title of the dialog that is above the app in front, as the
// window manager lists it; "" if there is none or the windows are not known.
func (s *Scene) Dialog() string {
	for _, w := range s.Windows {
		switch w.Kind {
		case phone.AppWindow:
			return ""
		case phone.DialogWindow:
			if w.Title == "" {
				return w.Package
			}
			return w.Title
		}
	}
	return ""
}
