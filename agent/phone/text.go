package phone

import (
	"context"
	"fmt"
	"strings"

	"phonerack/sync/wire"
)

// Bounds of InputText.
const (
	maxTyped = 2000 // characters of a text
	maxChunk = 32   // characters of one command; longer ones lose characters on slow phones
)

// InputText types text into the field that has the focus. The phone's own
// command takes printable ASCII only; other text is refused before anything is
// typed, with a *wire.Refusal of code wire.CannotType that wraps ErrCannotType.
// The text goes in chunks of about a word, each asks the fence. If one fails
// after others were typed, the error wraps ErrPartlyTyped.
//
// An input method may change or swallow what is typed: read the field back.
func (c *Controls) InputText(ctx context.Context, text string) error {
	if reason := untypable(text); reason != "" {
		return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).Because(ErrCannotType)
	}
	typed := 0
	for _, chunk := range chunks(text) {
		r, err := c.write(ctx, 0, "input text "+quote(strings.ReplaceAll(chunk, " ", "%s")))
		if err == nil {
			err = silent(r)
		}
		switch {
		case err != nil && typed > 0:
			return fmt.Errorf("type text, %d of %d characters done: %w: %w", typed, len(text), ErrPartlyTyped, err)
		case err != nil:
			return fmt.Errorf("type text: %w", err)
		}
		typed += len(chunk)
	}
	return nil
}

// untypable returns why text cannot be typed, or "".
func untypable(text string) string {
	switch {
	case text == "":
		return "it is empty"
	case len(text) > maxTyped:
		return fmt.Sprintf("it is longer than %d bytes", maxTyped)
	}
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r':
			return "it has a line break (the enter key is a key)"
		case r == '\t':
			return "it has a tab (the tab key is a key)"
		case r < ' ' || r > '~':
			return fmt.Sprintf("it has the character %q, and only plain ASCII goes through", r)
		}
	}
	return ""
}

// chunks cuts printable ASCII into pieces of at most maxChunk characters, after
// a space where there is one. "%s" never lies within a piece: the phone's
// command would type a space for it, and has no way to escape it.
func chunks(text string) []string {
	var pieces []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "%s", "%\x00s"), "\x00") {
		for len(part) > maxChunk {
			cut := strings.LastIndexByte(part[:maxChunk], ' ') + 1
			if cut == 0 {
				cut = maxChunk
			}
			pieces, part = append(pieces, part[:cut]), part[cut:]
		}
		if part != "" {
			pieces = append(pieces, part)
		}
	}
	return pieces
}
