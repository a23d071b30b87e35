package perception

import "unicode"

// What parts of a text cost, in tenths of a token. They were fitted to o200k_base
// and cl100k_base, which count the golden scenes within a sixth of the estimate;
// of single sentences the two count very different numbers.
const (
	tokenLetters  = 10 // for each 10 letters of a Latin word, begun ones counted
	tokenDigits   = 10 // for each 3 digits of a number
	tokenMarks    = 10 // for a run of punctuation
	tokenAccent   = 10 // besides, for each Latin letter that is not ASCII
	tokenHan      = 8  // for a character of Chinese or Japanese
	tokenHangul   = 7  // for a syllable of Korean
	tokenCyrillic = 3  // for a letter of Cyrillic
	tokenLetter   = 5  // for a letter of any other script
	tokenSign     = 20 // for anything else, such as an emoji
)

// Tokens estimates what a text costs a language model: of its Latin words one
// token for each 10 letters and one for each accent, of numbers one for each 3
// digits, one for each run of punctuation, 0.8 for a character of Chinese or
// Japanese, 0.7 for one of Korean, 0.3 for one of Cyrillic, 0.5 for a letter of
// any other script and 2 for an emoji.
func Tokens(text string) int {
	const (
		nothing = iota
		letters
		digits
		marks
	)
	tenths, kind, length := 0, nothing, 0
	for _, r := range text {
		was := kind
		switch {
		case r == ' ' || r == '\n':
			kind = nothing
		case r >= '0' && r <= '9':
			kind = digits
		case r < 0x80 && !(r|0x20 >= 'a' && r|0x20 <= 'z'):
			kind = marks
		case r < 0x250 && unicode.IsLetter(r):
			kind = letters
		default:
			kind = nothing
			tenths += foreignTenths(r)
		}
		if length++; kind != was {
			length = 0
		}
		switch {
		case kind == letters && length%10 == 0:
			tenths += tokenLetters
		case kind == digits && length%3 == 0:
			tenths += tokenDigits
		case kind == marks && length == 0:
			tenths += tokenMarks
		}
		if kind == letters && r >= 0x80 {
			tenths += tokenAccent
		}
	}
	return (tenths + 9) / 10
}

// foreignTenths is what a character costs that is not of a Latin word.
func foreignTenths(r rune) int {
	switch {
	case r >= 0x3000 && r < 0xA000, r >= 0xF900 && r < 0xFB00, r >= 0xFF00 && r < 0xFFF0, r >= 0x20000 && r < 0x32000:
		return tokenHan
	case r >= 0xAC00 && r < 0xD7B0:
		return tokenHangul
	case unicode.Is(unicode.Cyrillic, r):
		return tokenCyrillic
	case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
		return tokenLetter
	case r < 0x2E80 && unicode.IsPunct(r):
		return tokenLetters
	}
	return tokenSign
}
