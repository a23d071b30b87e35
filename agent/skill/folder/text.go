package folder

import (
	"strings"
	"unicode"
)

// Joiners belong to Persian, Indic scripts and emoji.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// visible takes out the characters that no reader sees but a model reads:
// zero-width spaces, direction overrides, tag characters, variation selectors of
// the supplement. It says how many there were.
func visible(s string) (string, int) {
	n := 0
	var last rune
	out := strings.Map(func(r rune) rune {
		if hidden(r) || r == last && (r == joiner || r == nonJoiner) {
			n++
			return -1
		}
		last = r
		return r
	}, s)
	return out, n
}

func hidden(r rune) bool {
	switch {
	case r == joiner, r == nonJoiner:
		return false
	case r >= 0xe0100 && r <= 0xe01ef:
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // of category Cf, but drawn
		return false
	}
	return unicode.Is(unicode.Cf, r)
}
