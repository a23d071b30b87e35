package app

import (
	"errors"
	"fmt"
	"slices"
)

func (c *checker) picture(p *Picture) error {
	if p == nil || len(p.Shapes) == 0 {
		return errors.New("a picture has shapes")
	}
	if p.Size == 0 {
		p.Size = 24
	}
	if p.Size < 1 || p.Size > 1000 {
		return fmt.Errorf("size %v is not between 1 and 1000", p.Size)
	}
	for i, s := range p.Shapes {
		if s == nil {
			return fmt.Errorf("shape %d is empty", i)
		}
		if err := c.shape(s); err != nil {
			return fmt.Errorf("shape %d: %w", i, err)
		}
	}
	return nil
}

func (c *checker) shape(s *Shape) error {
	ink := s.Fill + s.Stroke
	if (s.Fill == "") == (s.Stroke == "") {
		return errors.New("give fill or stroke")
	}
	if s.Tinted = ink == "tint"; !s.Tinted {
		color, ok := c.app.FindColor(ink)
		if !ok {
			return fmt.Errorf("unknown colour %q", ink)
		}
		s.Ink = color.NRGBA
	}
	if s.Stroke != "" && s.Width == 0 {
		s.Width = 2
	}
	for _, f := range slices.Concat(s.Rect, s.Circle, s.Ellipse, []float64{s.Width, s.Radius}) {
		if !(f >= -maxLength && f <= maxLength) {
			return fmt.Errorf("%v is out of range", f)
		}
	}
	var err error
	switch {
	case len(s.Rect) == 4:
		s.Segments = RoundRect(s.Rect[0], s.Rect[1], s.Rect[2], s.Rect[3], s.Radius)
	case len(s.Circle) == 3:
		s.Segments = Ellipse(s.Circle[0], s.Circle[1], s.Circle[2], s.Circle[2])
	case len(s.Ellipse) == 4:
		s.Segments = Ellipse(s.Ellipse[0], s.Ellipse[1], s.Ellipse[2], s.Ellipse[3])
	case s.Path != "":
		s.Segments, err = ParsePath(s.Path)
	default:
		return errors.New("give rect [x, y, w, h], circle [x, y, r], ellipse [x, y, rx, ry] or path")
	}
	return err
}
