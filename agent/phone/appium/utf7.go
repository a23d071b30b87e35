package appium

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of typing.
const (
	maxTyped = 2000 // characters of a text
	maxChunk = 48   // characters of one command as it is encoded; slow phones lose some of longer ones
	maxShift = 16   // UTF-16 units of one shifted run: 2 + 43 characters
)

// imap is the alphabet of modified UTF-7 (RFC 3501, section 5.1.3).
var imap = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,").WithPadding(base64.NoPadding)

// printable reports whether modified UTF-7 writes r as itself; the ampersand,
// which shifts, is an exception.
func printable(r rune) bool { return r >= ' ' && r <= '~' }

// shifted returns how many bytes at the beginning of text go into one shifted
// run of at most limit UTF-16 units. A character is not divided.
func shifted(text string, limit int) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if printable(r) {
			break
		}
		if limit -= utf16.RuneLen(r); limit < 0 {
			break
		}
		n += size
	}
	return n
}

// shift encodes text as a shifted run.
func shift(text string) string {
	units := utf16.Encode([]rune(text))
	b := make([]byte, 0, 2*len(units))
	for _, u := range units {
		b = append(b, byte(u>>8), byte(u))
	}
	return "&" + imap.EncodeToString(b) + "-"
}

// typing encodes text, which has to be valid UTF-8, in modified UTF-7, cut into
// what one command types each; the Unicode input method makes the text of it
// again. The input method forgets where it is when a field is entered anew, so each command is
// whole: no shifted run goes over an end. "%s" never lies within a command: the
// phone's input command would type a space for it and has no way to escape it.
func typing(text string) []string {
	var commands []string
	var now strings.Builder
	put := func(piece string) {
		if now.Len()+len(piece) > maxChunk || piece == "s" && strings.HasSuffix(now.String(), "%") {
			commands = append(commands, now.String())
			now.Reset()
		}
		now.WriteString(piece)
	}
	for text != "" {
		n := 1
		switch c := text[0]; {
		case c == '&':
			put("&-")
		case printable(rune(c)):
			put(text[:1])
		default:
			n = shifted(text, maxShift)
			put(shift(text[:n]))
		}
		text = text[n:]
	}
	if now.Len() > 0 {
		commands = append(commands, now.String())
	}
	return commands
}
