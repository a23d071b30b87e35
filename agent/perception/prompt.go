package perception

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxPromptText bounds each string in Prompt, in characters. A longer one ends
// in "…".
const maxPromptText = 200

// Prompt describes the scene to a planner: one line for the screen, then one
// line for each element, every line ended by "\n".
//
//	screen 7: app com.phonerack.shop activity .MainActivity size 1080x2400 keyboard hidden picture 720x1600
//	[0] edit "" hint="Search" id="com.phonerack.shop:id/search" clickable focused
//	[1] button "Add to basket" id="com.phonerack.shop:id/add" clickable
//
// Parts that are empty or not known are left out; a field's text is always
// there. Strings are JSON strings. The screen's line may go on with locked,
// picture WxH, no-tree and its reason, secure, and dialog "title". The states
// are clickable, long-clickable, scrollable, editable (on anything but a field),
// checkable, checked, focused, selected, disabled and password, in that order.
func (s *Scene) Prompt() string {
	var b strings.Builder
	b.Grow(80 * (len(s.Elements) + 1))
	fmt.Fprintf(&b, "screen %d:%s\n", s.Generation, s.screen())
	for i := range s.Elements {
		e := &s.Elements[i]
		b.WriteByte('[')
		b.WriteString(strconv.Itoa(e.Index))
		b.WriteString("] ")
		e.describe(&b)
		b.WriteByte('\n')
	}
	return b.String()
}

// screen describes what is known besides the elements, each part with a space
// before it.
func (s *Scene) screen() string {
	var b strings.Builder
	if s.Package != "" {
		b.WriteString(" app " + bare(s.Package))
	}
	if s.Activity != "" {
		b.WriteString(" activity " + bare(s.Activity))
	}
	if s.Width > 0 && s.Height > 0 {
		fmt.Fprintf(&b, " size %dx%d", s.Width, s.Height)
	}
	switch {
	case slices.Contains(s.Missing, PartKeyboard):
	case s.Keyboard:
		b.WriteString(" keyboard shown")
	default:
		b.WriteString(" keyboard hidden")
	}
	if s.Locked {
		b.WriteString(" locked")
	}
	if s.Picture != nil {
		fmt.Fprintf(&b, " picture %dx%d", s.Picture.Size.X, s.Picture.Size.Y)
	}
	if s.NoTree != "" {
		b.WriteString(" no-tree " + bare(s.NoTree))
	}
	if s.Secure {
		b.WriteString(" secure")
	}
	if title := s.Dialog(); title != "" {
		b.WriteString(" dialog ")
		quoteTo(&b, title)
	}
	return b.String()
}

// describe writes role, strings and states.
func (e *Element) describe(b *strings.Builder) {
	b.WriteString(e.Role)
	if e.Text != "" || e.Role == RoleEdit {
		b.WriteByte(' ')
		quoteTo(b, e.Text)
	}
	for _, part := range e.labels() {
		if part.value != "" {
			b.WriteString(part.name)
			quoteTo(b, part.value)
		}
	}
	for _, state := range e.stateWords() {
		if state.on {
			b.WriteByte(' ')
			b.WriteString(state.word)
		}
	}
}

// labels are the strings of an element besides its text.
func (e *Element) labels() [3]struct{ name, value string } {
	return [...]struct{ name, value string }{{" desc=", e.Description}, {" hint=", e.Hint}, {" id=", e.ID}}
}

// stateWords are the states as the prompt names them, in its order.
func (e *Element) stateWords() [10]struct {
	word string
	on   bool
} {
	return [...]struct {
		word string
		on   bool
	}{
		{"clickable", e.Clickable},
		{"long-clickable", e.LongClickable},
		{"scrollable", e.Scrollable},
		{"editable", e.Editable && e.Role != RoleEdit},
		{"checkable", e.Checkable},
		{"checked", e.Checked},
		{"focused", e.Focused},
		{"selected", e.Selected},
		{"disabled", !e.Enabled},
		{"password", e.Password},
	}
}

// bare returns a component name as it is, and anything that is none as a JSON
// string.
func bare(s string) string {
	plain := len(s) <= maxPromptText
	for i := 0; plain && i < len(s); i++ {
		c := s[i]
		plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '$'
	}
	if plain {
		return s
	}
	var b strings.Builder
	quoteTo(&b, s)
	return b.String()
}

// quoteTo writes s as a JSON string of at most maxPromptText characters. Unlike
// encoding/json it leaves <, > and & alone, and escapes every character that
// could break or reorder a line or that nobody sees.
func quoteTo(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	u16 := func(r rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[r>>shift&15])
		}
	}
	b.WriteByte('"')
	n := 0
	for _, r := range s {
		if n++; n > maxPromptText {
			b.WriteRune('…')
			break
		}
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r >= 0xE0000:
			r -= 0x10000
			u16(0xD800 + r>>10)
			u16(0xDC00 + r&0x3FF)
		case hidden(r):
			u16(r)
		default:
			b.WriteRune(r) // an invalid byte arrives here as U+FFFD
		}
	}
	b.WriteByte('"')
}

// hidden reports whether r must not appear as itself: control characters, line
// and paragraph separators, bidirectional controls, byte order marks, private
// use. Joiners stay, emoji and several scripts need them.
func hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0x9F:
		return true
	case r == 0x061C, r == 0x200B, r == 0x200E, r == 0x200F, r == 0xFEFF:
		return true
	case r >= 0x2028 && r <= 0x202E, r >= 0x2060 && r <= 0x206F, r >= 0xFFF9 && r <= 0xFFFB:
		return true
	}
	return r >= 0xE000 && r <= 0xF8FF
}
