package glyph

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-text/typesetting/font"
)

// order returns the fonts of a line's glyphs from left to right: L for Latin, A for Arabic.
func order(ts *Typesetter, p *Paragraph) string {
	glyphs := slices.Clone(p.Lines[0].Glyphs)
	slices.SortStableFunc(glyphs, func(a, b Placed) int { return int(a.X) - int(b.X) })
	var out []byte
	space, _ := ts.faces[0][latin].NominalGlyph(' ')
	for _, g := range glyphs {
		c := byte('A')
		if g.face == ts.faces[0][latin] {
			if c = 'L'; g.gid == space {
				continue
			}
		}
		if len(out) == 0 || out[len(out)-1] != c {
			out = append(out, c)
		}
	}
	return string(out)
}

func TestBothDirectionsInOneLine(t *testing.T) {
	ts := New()
	if p := ts.Layout("ok غلاية 12", Style{Size: 40}, 1000); p.RTL || order(ts, p) != "LA" {
		t.Errorf("number after Arabic in an English line: %s, rtl %v", order(ts, p), p.RTL)
	}
	if p := ts.Layout("غلاية ok 12", Style{Size: 40}, 1000); !p.RTL || order(ts, p) != "LA" {
		t.Errorf("English in an Arabic line: %s, rtl %v", order(ts, p), p.RTL)
	}
	if p := ts.Layout("a غلاية b", Style{Size: 40}, 1000); order(ts, p) != "LAL" {
		t.Errorf("Arabic within English: %s", order(ts, p))
	}
}

func TestArabicLettersJoin(t *testing.T) {
	ts := New()
	gids := func(s string) (out []font.GID) {
		for _, g := range ts.Layout(s, Style{Size: 40}, 1000).Lines[0].Glyphs {
			out = append(out, g.gid)
		}
		return out
	}
	alone, joined := gids("ع"), gids("ععع")
	if len(joined) != 3 || slices.Contains(joined, alone[0]) || joined[0] == joined[1] {
		t.Errorf("three letters give the glyphs %v, one gives %v", joined, alone)
	}
}

func TestLinesBreakAndEndInDots(t *testing.T) {
	ts := New()
	const text = "some words that do not fit into one line of this width"
	free := ts.Layout(text, Style{Size: 20}, 120)
	if len(free.Lines) < 4 || free.Width > 120 {
		t.Errorf("%d lines, %d wide", len(free.Lines), free.Width)
	}
	cut := ts.Layout(text, Style{Size: 20, Lines: 2}, 120)
	if len(cut.Lines) != 2 || cut.Height != free.Height*2/len(free.Lines) {
		t.Errorf("%d lines, %d high", len(cut.Lines), cut.Height)
	}
	if empty := ts.Layout("", Style{Size: 20}, 120); len(empty.Lines) != 1 || empty.Height != cut.Height/2 {
		t.Errorf("an empty text has %d lines, %d high", len(empty.Lines), empty.Height)
	}
}

func TestTextsBreakWhereTheySaySo(t *testing.T) {
	ts := New()
	wide := func(text string) int { return ts.Layout(text, Style{Size: 16}, 1000).Width }
	for text, want := range map[string][]string{
		"a\nb": {"a", "b"}, "ab\n": {"ab", ""}, "\n": {"", ""}, "a\n\nb c": {"a", "", "b c"}, "a\r\nb\rc": {"a", "b", "c"},
		"a\u2029b\u0085c\x1ed": {"a", "b", "c", "d"}, "\nغلاية\n24": {"", "غلاية", "24"},
	} {
		for lines := range len(want) + 1 {
			p := ts.Layout(text, Style{Size: 16, Lines: lines}, 1000)
			n := len(want)
			if lines > 0 {
				n = lines
			}
			if len(p.Lines) != n || p.Height != n*ts.Layout(text, Style{Size: 16}, 1000).Height/len(want) {
				t.Errorf("%q in %d lines: %d lines, %d high", text, lines, len(p.Lines), p.Height)
				continue
			}
			for i, l := range p.Lines {
				cut := i == n-1 && n < len(want) // with an ellipsis
				if w := wide(want[i]); (l.Width > w) != cut || l.Width < w {
					t.Errorf("%q in %d lines: line %d is %d wide, %q is %d", text, lines, i, l.Width, want[i], w)
				}
			}
		}
	}
}

func TestCheck(t *testing.T) {
	if err := New().Check("Kettle – غلاية, 24 €\n"); err != nil {
		t.Error(err)
	}
	if err := New().Check("\U0001F600"); !errors.Is(err, ErrNoGlyph) {
		t.Errorf("an emoji gives %v", err)
	}
	t.Setenv(CJKEnv, "/nonexistent")
	for _, s := range []string{"水壶", "，"} {
		if err := New().Check(s); !errors.Is(err, ErrNoCJKFont) {
			t.Errorf("%s without a font gives %v", s, err)
		}
	}
}
