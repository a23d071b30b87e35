package folder

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"phonerack/agent/skill/model"
)

// visible takes out the characters that no reader sees but a model reads, and
// says how many there were. Joiners between letters stay: Persian and Indic
// scripts are spelled with them.
func visible(s string) (string, int) {
	n := 0
	for { // taking one out may leave a selector or a joiner without its picture
		found := smuggled(s)
		if len(found) == 0 {
			return s, n
		}
		n += len(found)
		var b strings.Builder
		at := 0
		for _, h := range found {
			b.WriteString(s[at:h.Offset])
			at = h.Offset + utf8.RuneLen(h.Rune)
		}
		b.WriteString(s[at:])
		s = b.String()
	}
}

func smuggled(s string) []model.Hidden {
	var found []model.Hidden
	for _, h := range model.FindHidden(s) {
		before, _ := utf8.DecodeLastRuneInString(s[:h.Offset])
		joins := h.Rune == '\u200c' || h.Rune == '\u200d'
		if joins && before > '\u0590' && (unicode.IsLetter(before) || unicode.IsMark(before)) {
			continue
		}
		found = append(found, h)
	}
	return found
}
