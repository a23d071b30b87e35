package perception

import (
	"strings"

	"phonerack/agent/frame"
)

// sight is what is compared of a picture: its thumb in 16 shades, so that a
// blinking caret hardly counts.
func (s *Scene) sight() frame.Thumb {
	var t frame.Thumb
	if s.NoTree != "" && s.Picture != nil {
		for i, v := range s.Picture.Thumb {
			t[i] = v >> 4
		}
	}
	return t
}

// hash returns the content hash: what is in front, the size, the keyboard and
// the elements with their places, without the status bar. It covers the image
// of a scene without a tree only.
func (s *Scene) hash() uint64 {
	h := hashText(hashText(0, s.Package), s.Activity)
	for _, v := range [...]int{s.Width, s.Height, s.Rotation, int(bit(s.Keyboard)), int(bit(s.Locked))} {
		h = mix(h, uint64(v))
	}
	if s.NoTree != "" && s.Picture != nil {
		t := s.sight()
		h = hashText(h, t[:])
	}
	for i := range s.Elements {
		e := &s.Elements[i]
		if s.ticks(e) {
			continue
		}
		for _, text := range [...]string{e.Role, e.Text, e.Description, e.Hint, e.ID, e.Class, e.Package} {
			h = hashText(h, text)
		}
		for _, v := range [...]int{e.Bounds.Min.X, e.Bounds.Min.Y, e.Bounds.Max.X, e.Bounds.Max.Y, int(e.states())} {
			h = mix(h, uint64(v))
		}
	}
	return h
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}

// states packs the states of an element.
func (e *Element) states() uint16 {
	var v uint16
	for _, on := range []bool{
		e.Clickable, e.LongClickable, e.Scrollable, e.Editable, e.Checkable,
		e.Checked, e.Focused, e.Selected, e.Enabled, e.Password,
	} {
		v = v<<1 | bit(on)
	}
	return v
}

// ticks reports whether e changes by itself and tells nothing of the app: a
// clock, wherever it is, and whatever the system shows within the upper twentieth
// of the screen, where the status bar is.
func (s *Scene) ticks(e *Element) bool {
	if classRole(e.Class) == roleClock {
		return true
	}
	return e.Package == systemUI && (strings.HasSuffix(e.ID, ":id/clock") || e.Bounds.Max.Y <= s.Height/20)
}
