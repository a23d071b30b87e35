package perception

import (
	"errors"
	"image"
	"strconv"

	"phonerack/agent/frame"
)

// GridCells is how many columns, and how many rows, a grid has: a
// tenth of the screen is told at a glance.
const GridCells = 10

var errNoPicture = errors.New("the scene has no picture")

// Marked returns the picture as a JPEG of the same size with a box around each
// of the elements, and its index as the label; with a grid instead if NoTree is
// set. It fails without a picture.
func (s *Scene) Marked(elements []Element) ([]byte, error) {
	if s.Picture == nil {
		return nil, errNoPicture
	}
	if s.NoTree != "" {
		return s.Grid()
	}
	marks := make([]frame.Mark, len(elements))
	for i, e := range elements {
		marks[i] = frame.Mark{Label: strconv.Itoa(e.Index), Bounds: s.source(e.Bounds)}
	}
	return s.Picture.Marked(marks)
}

// Grid returns the picture as a JPEG of the same size with a grid over it. It
// fails without a picture.
func (s *Scene) Grid() ([]byte, error) {
	if s.Picture == nil {
		return nil, errNoPicture
	}
	return s.Picture.Grid(GridCells, GridCells)
}

// source maps a part of the display to pixels of the screenshot, which are
// others on a phone that shows a smaller or larger display than it has.
func (s *Scene) source(r image.Rectangle) image.Rectangle {
	if s.Width <= 0 || s.Height <= 0 {
		return r
	}
	w, h := s.Picture.Source.X, s.Picture.Source.Y
	return image.Rect(r.Min.X*w/s.Width, r.Min.Y*h/s.Height, (r.Max.X*w+s.Width-1)/s.Width, (r.Max.Y*h+s.Height-1)/s.Height)
}

// Touchable tells whether the element reacts to a finger.
func (e Element) Touchable() bool {
	return e.Enabled && (e.Clickable || e.LongClickable || e.Checkable || e.Editable)
}
