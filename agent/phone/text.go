package phone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"phonerack/sync/wire"
)

// Bounds of InputText.
const (
	maxTyped = 2000 // characters of a text
	maxChunk = 32   // characters of one command; longer ones lose characters on slow phones
	maxSlow  = 8    // characters of one command that types them one after the other
)

// What typing lasts by itself.
const (
	slowPause  = 50 * time.Millisecond
	slowLetter = 1200 * time.Millisecond // with the start of a virtual machine, on an old phone
	helperLead = 5 * time.Second         // until the helper's input method is there
	helperChar = 100 * time.Millisecond
)

// InputText types text into the field that has the focus. Printable ASCII goes
// through the phone's own command in chunks of about a word, or at a slower pace
// once [Controls.Distrust] was called; any other text needs the helper. Text that
// has no way is refused before anything is typed, with a *wire.Refusal of code
// wire.CannotType that wraps ErrCannotType. Each chunk asks the fence. If one
// fails after others were typed, the error wraps ErrPartlyTyped.
//
// An input method may change or swallow what is typed: read the field back.
func (c *Controls) InputText(ctx context.Context, text string) error {
	if reason := untypable(text); reason != "" {
		return cannotType(reason)
	}
	pace := c.pace()
	reason := notPlain(text)
	helper := c.phone.options.Helpers
	running := helper != nil && helper.Running()
	switch {
	case running && (reason != "" || pace == TypeHelper):
		return c.typeByHelper(ctx, text)
	case reason != "":
		return cannotType(reason)
	}
	return c.typeChunks(ctx, text, pace)
}

func cannotType(reason string) error {
	return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).Because(ErrCannotType)
}

// pace returns the pace of typing.
func (c *Controls) pace() string {
	c.phone.mu.Lock()
	defer c.phone.mu.Unlock()
	if c.phone.ways.Typing == "" {
		return TypeWords
	}
	return c.phone.ways.Typing
}

// typeByHelper has the helper type, in one write.
func (c *Controls) typeByHelper(ctx context.Context, text string) error {
	lasts := helperLead + time.Duration(utf8.RuneCountInString(text))*helperChar
	err := c.byHelper(ctx, lasts, func(ctx context.Context, h Helpers) error { return h.Type(ctx, text) })
	if err != nil {
		return fmt.Errorf("type text: %w", err)
	}
	return nil
}

// typeChunks types plain text in pieces, each by one command.
func (c *Controls) typeChunks(ctx context.Context, text, pace string) error {
	size, command := maxChunk, typeWord
	if pace != TypeWords {
		size, command = maxSlow, typeLetters
	}
	typed := 0
	for _, chunk := range chunks(text, size) {
		cmd, lasts := command(chunk)
		r, err := c.write(ctx, lasts, cmd)
		if err == nil {
			err = silent(r)
		}
		if c, ok := errors.AsType[*rejection](err); ok {
			err = c.discreet()
		}
		// Of letters that were sent together, some may be typed though one was refused.
		some := typed > 0 || pace != TypeWords && len(chunk) > 1 && errors.Is(err, ErrRejected)
		switch {
		case err != nil && some:
			return fmt.Errorf("type text, %d of %d characters done: %w: %w", typed, len(text), ErrPartlyTyped, err)
		case err != nil:
			return fmt.Errorf("type text: %w", err)
		}
		typed += len(chunk)
	}
	return nil
}

// typeWord types a chunk at once.
func typeWord(chunk string) (cmd string, lasts time.Duration) {
	return "input text " + quote(strings.ReplaceAll(chunk, " ", "%s")), 0
}

// typeLetters types the characters of a chunk one after the other.
func typeLetters(chunk string) (cmd string, lasts time.Duration) {
	letters := make([]string, len(chunk))
	for i := range chunk {
		letters[i], _ = typeWord(chunk[i : i+1])
	}
	return strings.Join(letters, fmt.Sprintf("; sleep %.2f; ", slowPause.Seconds())), time.Duration(len(chunk)) * (slowLetter + slowPause)
}

// untypable returns why text cannot be typed in any way, or "".
func untypable(text string) string {
	switch {
	case text == "":
		return "it is empty"
	case !utf8.ValidString(text):
		return "it is not valid UTF-8"
	case utf8.RuneCountInString(text) > maxTyped:
		return fmt.Sprintf("it is longer than %d characters", maxTyped)
	}
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r':
			return "it has a line break (the enter key is a key)"
		case r == '\t':
			return "it has a tab (the tab key is a key)"
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return fmt.Sprintf("it has the control character %U", r)
		}
	}
	return ""
}

// notPlain returns why the phone's own command cannot type text, or "".
func notPlain(text string) string {
	for _, r := range text {
		if r > '~' { // which one is not told: it may be of a password
			return "it has a character beyond ASCII, and only plain ASCII goes through without the helper apps"
		}
	}
	return ""
}

// chunks cuts printable ASCII into pieces of at most size characters, after a
// space where there is one. "%s" never lies within a piece: the phone's command
// would type a space for it, and has no way to escape it.
func chunks(text string, size int) []string {
	var pieces []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "%s", "%\x00s"), "\x00") {
		for len(part) > size {
			cut := strings.LastIndexByte(part[:size], ' ') + 1
			if cut == 0 {
				cut = size
			}
			pieces, part = append(pieces, part[:cut]), part[cut:]
		}
		if part != "" {
			pieces = append(pieces, part)
		}
	}
	return pieces
}

// Act is an act whose effect is read back.
type Act string

// Acts.
const (
	Typing   Act = "typing"
	Clearing Act = "clearing"
)

// Distrust tells that what an act should have done was read back and is not
// there. The next one goes another, slower way, if the phone has one: it reports
// whether it has. Typing has words, single characters and the helper; emptying a
// field has selecting everything and deleting character by character.
func (c *Controls) Distrust(a Act) bool {
	h := c.phone.options.Helpers
	helper := h != nil && h.Running()
	changed := false
	c.phone.choose(func(s *Strategies) {
		switch {
		case a == Typing && (s.Typing == "" || s.Typing == TypeWords):
			s.Typing, changed = TypeCharacters, true
		case a == Typing && s.Typing == TypeCharacters && helper:
			s.Typing, changed = TypeHelper, true
		case a == Clearing && s.Clearing != ClearCharacters:
			s.Clearing, changed = ClearCharacters, true
		}
	})
	return changed
}
