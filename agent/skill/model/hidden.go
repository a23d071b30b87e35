package model

import (
	"fmt"
	"strings"
)

// Hidden is a character that a person does not see and a planner reads: the
// means of smuggling instructions in a text.
type Hidden struct {
	Offset int // in bytes
	Rune   rune
	Name   string // such as "zero width space" or "tag LATIN SMALL LETTER A"
}

// String names the character and its place: "U+200B zero width space at byte 12".
func (h Hidden) String() string { return fmt.Sprintf("%U %s at byte %d", h.Rune, h.Name, h.Offset) }

// hiddenNames are the zero-width, bidirectional and other invisible characters.
// Joiners and variation selectors are here too, see joins.
var hiddenNames = map[rune]string{
	0x00ad: "soft hyphen", 0x034f: "combining grapheme joiner", 0x061c: "Arabic letter mark",
	0x115f: "Hangul choseong filler", 0x1160: "Hangul jungseong filler", 0x17b4: "Khmer vowel inherent aq", 0x17b5: "Khmer vowel inherent aa",
	0x180e: "Mongolian vowel separator",
	0x200b: "zero width space", 0x200c: "zero width non-joiner", 0x200d: "zero width joiner",
	0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
	0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
	0x202d: "left-to-right override", 0x202e: "right-to-left override",
	0x2060: "word joiner", 0x2061: "function application", 0x2062: "invisible times", 0x2063: "invisible separator", 0x2064: "invisible plus",
	0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate", 0x2069: "pop directional isolate",
	0x206a: "inhibit symmetric swapping", 0x206b: "activate symmetric swapping", 0x206c: "inhibit Arabic form shaping",
	0x206d: "activate Arabic form shaping", 0x206e: "national digit shapes", 0x206f: "nominal digit shapes",
	0x2800: "Braille pattern blank", 0x3164: "Hangul filler", 0xfeff: "zero width no-break space", 0xffa0: "halfwidth Hangul filler",
	0xfff9: "interlinear annotation anchor", 0xfffa: "interlinear annotation separator", 0xfffb: "interlinear annotation terminator",
	0xe0001: "language tag", 0xe007f: "cancel tag",
}

// FindHidden names the invisible characters of a text. A zero width joiner
// between pictures and a variation selector after one are part of an emoji and
// not named; all else is, also where a script uses it honestly: a person decides.
func FindHidden(s string) []Hidden {
	var found []Hidden
	before := rune(0)
	for i, c := range s {
		switch name := hiddenName(c); {
		case name == "":
		case c == 0x200d && picture(before) && picture(next(s[i:])):
		case c == 0xfe0f && visible(before):
		default:
			found = append(found, Hidden{i, c, name})
		}
		before = c
	}
	return found
}

func hiddenName(c rune) string {
	switch {
	case c >= 0xfe00 && c <= 0xfe0f:
		return fmt.Sprintf("variation selector %d", c-0xfe00+1)
	case c >= 0xe0100 && c <= 0xe01ef:
		return fmt.Sprintf("variation selector %d", c-0xe0100+17)
	case c >= 0xe0020 && c <= 0xe007e:
		return fmt.Sprintf("tag %q", c-0xe0000)
	}
	return hiddenNames[c]
}

// next is the character after the one that s begins with.
func next(s string) rune {
	for i, c := range s {
		if i > 0 {
			return c
		}
	}
	return 0
}

// picture tells whether c stands beside a joiner in an emoji: a pictograph, a
// skin tone, a sign such as the heart, or the selector after one.
func picture(c rune) bool {
	return c >= 0x1f000 && c <= 0x1faff || c >= 0x2190 && c <= 0x2bff && c != 0x2800 || c == 0xfe0f
}

// visible tells whether a selector for colour may follow.
func visible(c rune) bool {
	return picture(c) && c != 0xfe0f || c >= '0' && c <= '9' || c == '#' || c == '*' || c == 0xa9 || c == 0xae || c == 0x203c || c == 0x2049 || c >= 0x2100 && c <= 0x218f || c >= 0x3030 && c <= 0x3299
}

// Smuggling is a field of a skill with invisible characters.
type Smuggling struct {
	Path  string
	Found []Hidden
}

// String says where and what, in one line: at most three characters are named.
func (s Smuggling) String() string {
	var names []string
	for _, h := range s.Found[:min(3, len(s.Found))] {
		names = append(names, h.String())
	}
	if more := len(s.Found) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return s.Path + ": " + strings.Join(names, ", ")
}

// Smuggled names every field of the skill with invisible characters in it.
func (s *Skill) Smuggled() []Smuggling { return smuggledIn(s) }

// Smuggled names every field of the skill with invisible characters in it.
func (s *RegistrySkill) Smuggled() []Smuggling { return smuggledIn(s) }

func smuggledIn(v any) []Smuggling {
	raw, err := compact(v)
	if err != nil {
		return nil
	}
	n, err := parseJSON(raw)
	if err != nil {
		return nil
	}
	return n.smuggled("")
}

func (n *node) smuggled(path string) []Smuggling {
	var all []Smuggling
	if n.shape == textShape {
		if found := FindHidden(n.text); found != nil {
			all = append(all, Smuggling{path, found})
		}
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if n.shape == objectShape {
			at = join(path, n.keys[i])
			if found := FindHidden(n.keys[i]); found != nil {
				all = append(all, Smuggling{at + " (the key)", found})
			}
		}
		all = append(all, item.smuggled(at)...)
	}
	return all
}

// Visible frees a text of what FindHidden finds, and of control characters other
// than those of lines.
func Visible(s string) string {
	drop := map[int]bool{}
	for _, h := range FindHidden(s) {
		drop[h.Offset] = true
	}
	var b strings.Builder
	for i, c := range s {
		if drop[i] || c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 {
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
