package toybox

import (
	"regexp"
	"testing"
)

// TestWaysOfAPatternMatchWhatThePatternMatches: the quick way through a dump finds the lines that the expression finds.
func TestWaysOfAPatternMatchWhatThePatternMatches(t *testing.T) {
	lines := []string{
		"", "a", "b|c", "|", "]", "  mRotation=1", " x mRotation=1", "mAwake=true", "Frame=[0,0]", "frame=1", "rame=", "type=ime ", "type=(ime)",
		"InsetsSource {4} type=ime frame=[0,0][1,1]", "InsetsSource {4} type=ITYPE_IME frame=[0,0][1,1]", "foo", "foo bar", "a.b", "axb", `a\b`,
	}
	for _, expression := range []string{
		"", "a", "a|", "|", "foo$", "^foo$", "^foo|^a$", "a.b", `a\.b`, `a\|b`, "[|]", "[]|]", "[^]|a]", "[[:alpha:]|]", "[fF]rame=|mAwake=", "^ *mRotation=|none",
		"InsetsSource .*type=(ITYPE_IME|ime) |mAwake=", "(?i)FRAME=|a", `\b(?:foo|a)\b`, "^(?:a|b)$", "x*|y", "fo+|q",
	} {
		rx := regexp.MustCompile(expression)
		g := &matcher{ways: waysOf(expression, rx)}
		for _, line := range lines {
			if got, want := g.matches(line), rx.MatchString(line); got != want {
				t.Errorf("%q in %q: %t, want %t", expression, line, got, want)
			}
		}
	}
}
