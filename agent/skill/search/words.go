package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is how many characters of a word count; what is longer is no word.
const maxWord = 64

// fold brings a text into the form in which it is compared.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		s = norm.NFKC.String(s)
	}
	return strings.ToLower(s)
}

// tables of scripts that are written without blanks between words. Korean has
// blanks, but endings stick to its words.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Yi,
}

// class is what a character does to a word.
type class int

const (
	gap     class = iota
	wordy         // letters, digits and marks of spaced scripts
	dense         // of an unspaced script
	nothing       // invisible: as if it were not there
)

func classOf(c rune) class {
	switch {
	case c < utf8.RuneSelf:
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' {
			return wordy
		}
		return gap
	case c == 'ー': // lengthens a Japanese vowel, and belongs to no script
		return dense
	case unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c):
		return nothing
	case !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c):
		return gap
	case unicode.In(c, unspaced...):
		return dense
	}
	return wordy
}

// split gives the terms of a text to yield, in order and with repetitions. For an
// index, a dense run is all its characters and all its pairs; for a query it is
// its pairs, or the character if it is the only one.
func split(text string, query bool, yield func(term string)) {
	text = fold(text)
	var run []rune // of one class
	now := gap
	flush := func() {
		switch {
		case now == wordy:
			yield(string(run[:min(len(run), maxWord)]))
		case now == dense:
			for i := range run {
				if !query || len(run) == 1 {
					yield(string(run[i : i+1]))
				}
				if i > 0 {
					yield(string(run[i-1 : i+1]))
				}
			}
		}
		run = run[:0]
	}
	for _, c := range text {
		k := classOf(c)
		if k == nothing {
			continue
		}
		if k != now {
			if now != gap {
				flush()
			}
			now = k
		}
		if k != gap {
			run = append(run, c)
		}
	}
	if now != gap {
		flush()
	}
}
