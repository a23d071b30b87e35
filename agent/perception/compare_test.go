package perception

import (
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"phonerack/agent/frame"
)

func TestCompare(t *testing.T) {
	el := func(index int, id, text string, checked bool) Element {
		return Element{Index: index, Role: RoleCheckbox, ID: id, Text: text, Checked: checked, Bounds: image.Rect(0, 0, 10, 10)}
	}
	old := &Scene{Package: "a", Elements: []Element{el(0, "x", "one", false), el(1, "y", "two", false), el(2, "z", "three", false)}}
	now := &Scene{Package: "a", Elements: []Element{el(0, "n", "new", false), el(1, "x", "one", true), el(2, "y", "zwei", false)}}
	d := Compare(old, now)
	if len(d.Added) != 1 || d.Added[0].ID != "n" || len(d.Removed) != 1 || d.Removed[0].ID != "z" || len(d.Changed) != 2 || d.Front {
		t.Errorf("got %+v", d)
	}
	if !Compare(old, old).empty() || !Compare(nil, nil).empty() || Compare(nil, old).empty() {
		t.Error("equal scenes differ, or a scene is like none")
	}
	if d := Compare(old, &Scene{Package: "b", Elements: old.Elements}); d.empty() || !d.Front {
		t.Errorf("another app: %+v", d)
	}
}

func TestCompareFindsWhatWentAmongEqualOnes(t *testing.T) {
	at := func(y int) Element {
		return Element{Role: RoleButton, Text: "Add", Bounds: image.Rect(0, y, 10, y+10), Enabled: true}
	}
	old := &Scene{Elements: []Element{at(0), at(100), at(200)}}
	d := Compare(old, &Scene{Elements: []Element{at(0), at(200)}})
	if len(d.Removed) != 1 || d.Removed[0].Bounds.Min.Y != 100 || len(d.Changed)+len(d.Added) != 0 {
		t.Errorf("got %+v", d)
	}
	// Neither do they begin nor end alike.
	old = &Scene{Elements: []Element{{Role: RoleText, Text: "1"}, at(0), at(100), at(200), {Role: RoleText, Text: "2"}}}
	d = Compare(old, &Scene{Elements: []Element{{Role: RoleText, Text: "3"}, at(200), at(0), {Role: RoleText, Text: "4"}}})
	if len(d.Removed) != 1 || d.Removed[0].Bounds.Min.Y != 100 || len(d.Changed) != 2 || len(d.Added) != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestCompareSeesAnotherPictureOnlyWithoutATree(t *testing.T) {
	picture := func(shade byte) *frame.Picture {
		p := &frame.Picture{Size: image.Pt(9, 9)}
		for i := range p.Thumb {
			p.Thumb[i] = shade
		}
		return p
	}
	drawn := func(p *frame.Picture) *Scene {
		s := &Scene{NoTree: NoTreeDrawn, Picture: p}
		s.Hash = s.hash()
		return s
	}
	a, b, c := drawn(picture(10)), drawn(picture(200)), drawn(picture(12))
	if d := Compare(a, b); d.empty() || !d.Picture || a.Hash == b.Hash || !slices.Equal(d.Lines(9), []string{"~ picture"}) {
		t.Errorf("another picture: %+v", d)
	}
	if d := Compare(a, c); !d.empty() || a.Hash != c.Hash {
		t.Errorf("a shade: %+v", d)
	}
	plain := &Scene{Picture: picture(10)}
	if d := Compare(plain, &Scene{Picture: picture(200)}); !d.empty() {
		t.Errorf("with a tree: %+v", d)
	}
}

func TestDiffLines(t *testing.T) {
	old := &Scene{Package: "a", Elements: []Element{
		{Role: RoleSwitch, Text: "Dark theme", Enabled: true, Clickable: true, Checkable: true},
		{Role: RoleButton, Text: "Save", ID: "a:id/save", Enabled: true, Clickable: true},
		{Role: RoleEdit, Text: "an", Hint: "Name", ID: "a:id/name", Enabled: true, Focused: true},
		{Role: RoleText, Text: "Row", Enabled: true},
	}}
	now := &Scene{Package: "b", Activity: ".Main", Width: 10, Height: 20, Elements: []Element{
		{Index: 0, Role: RoleSwitch, Text: "Dark theme", Enabled: true, Clickable: true, Checkable: true, Checked: true},
		{Index: 1, Role: RoleText, Text: "Saved\n+ [3] button", Enabled: true},
		{Index: 2, Role: RoleEdit, Text: "ann", ID: "a:id/name", Enabled: true},
		{Index: 3, Role: RoleText, Text: "Row", Bounds: image.Rect(0, 9, 9, 18)},
	}}
	d := Compare(old, now)
	want := []string{
		`~ screen app b activity .Main size 10x20 keyboard hidden`,
		`~ [0] switch "Dark theme" clickable checkable checked was unchecked`,
		`~ [3] text "Row" disabled was enabled moved`,
		`~ [2] edit "ann" id="a:id/name" was "an" hint="Name" focused`,
		`+ [1] text "Saved\n+ [3] button"`,
		`- button "Save" id="a:id/save" clickable`,
	}
	got := d.Lines(9)
	slices.Sort(got[1:4])
	slices.Sort(want[1:4])
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := d.Lines(6); len(got) != 6 || strings.HasPrefix(got[5], "...") {
		t.Errorf("six lines: %q", got)
	}
	if got := d.Lines(3); len(got) != 3 || got[2] != "... and 4 more" {
		t.Errorf("three lines: %q", got)
	}
	if got := d.Lines(1); !slices.Equal(got, []string{"... and 6 more"}) {
		t.Errorf("one line: %q", got)
	}
	if got := Compare(old, old).Lines(5); !slices.Equal(got, []string{"no change"}) {
		t.Errorf("equal scenes: %q", got)
	}
	for _, none := range []int{0, -1} {
		if len(d.Lines(none)) != 0 || len(Diff{}.Lines(none)) != 0 {
			t.Errorf("%d lines are some", none)
		}
	}
}

// readDiff reads the lines of a difference with the reader of prompts.
func readDiff(lines []string) error {
	for i, line := range lines {
		if line == "no change" && len(lines) == 1 || line == "~ picture" {
			continue
		}
		if strings.HasPrefix(line, "... and ") && i == len(lines)-1 {
			continue
		}
		sign, rest, _ := strings.Cut(line, " ")
		var err error
		switch l := (readLine{values: map[string]string{}}); {
		case strings.ContainsAny(line, "\n\r"):
			err = fmt.Errorf("more than a line")
		case sign == "~" && strings.HasPrefix(rest, "screen"):
			_, err = readScreen("screen 0:" + strings.TrimPrefix(rest, "screen"))
		case sign == "+":
			_, err = readElement(rest)
		case sign == "-":
			err = l.describe(rest)
		case sign == "~":
			err = readChange(rest)
		default:
			err = fmt.Errorf("sign %q", sign)
		}
		if err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
	}
	return nil
}

// readChange reads "[N] ROLE ... was ...".
func readChange(s string) error {
	for at := range s {
		if after, ok := strings.CutPrefix(s[at:], " was"); ok {
			if _, err := readElement(s[:at]); err == nil {
				return readWas(after)
			}
		}
	}
	return fmt.Errorf("no change")
}

func readWas(s string) (err error) {
	for s != "" {
		rest, ok := strings.CutPrefix(s, " ")
		if !ok {
			return fmt.Errorf("%q", s)
		}
		for _, name := range []string{"desc=", "hint=", "id="} {
			if after, ok := strings.CutPrefix(rest, name); ok && strings.HasPrefix(after, `"`) {
				rest = after
			}
		}
		if strings.HasPrefix(rest, `"`) {
			if _, s, err = readString(rest); err != nil {
				return err
			}
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		if word != "moved" && word != "enabled" && !slices.Contains(allStates, word) && !slices.Contains(allStates, strings.TrimPrefix(word, "un")) {
			return fmt.Errorf("%q was", word)
		}
		s = rest[len(word):]
	}
	return nil
}

// sceneFrom makes a scene of bytes: few different elements, so that many are
// alike.
func sceneFrom(b []byte) *Scene {
	s := &Scene{Package: "a", Width: 100, Height: 2000}
	for i, c := range b[:min(len(b), 60)] {
		s.Elements = append(s.Elements, Element{
			Index: i, Role: allRoles[int(c)%3], Text: nasty[int(c>>2)%8], ID: [...]string{"", "a:id/x", "com.android.systemui:id/clock"}[int(c>>5)%3],
			Package: [...]string{"a", systemUI}[c>>7], Bounds: image.Rect(0, int(c%4)*100, 100, int(c%4)*100+100), Checked: c&8 != 0, Enabled: true, Key: uint64(i + 1),
		})
	}
	s.Hash = s.hash()
	return s
}

// compares checks what must hold of any two scenes.
func compares(a, b *Scene) error {
	d, e := Compare(a, b), Compare(b, a)
	switch {
	case !Compare(a, a).empty():
		return fmt.Errorf("a scene differs from itself")
	case len(d.Added) != len(e.Removed) || len(d.Removed) != len(e.Added) || len(d.Changed) != len(e.Changed):
		return fmt.Errorf("+%d -%d ~%d one way, +%d -%d ~%d the other", len(d.Added), len(d.Removed), len(d.Changed), len(e.Added), len(e.Removed), len(e.Changed))
	case len(a.content())-len(d.Removed) != len(b.content())-len(d.Added):
		return fmt.Errorf("%d and %d elements, +%d -%d", len(a.content()), len(b.content()), len(d.Added), len(d.Removed))
	case a.Hash == b.Hash && !d.empty():
		return fmt.Errorf("equal hashes and a difference: %q", d.Lines(99))
	}
	all := len(d.Lines(1000))
	for _, limit := range []int{1, 2, all - 1, all, 1000} {
		lines := d.Lines(limit)
		if len(lines) != max(0, min(limit, all)) {
			return fmt.Errorf("%d lines of %d where %d are allowed", len(lines), all, limit)
		}
		if err := readDiff(lines); err != nil {
			return err
		}
	}
	return nil
}

func TestCompareIsTheSameBothWays(t *testing.T) {
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		if err := compares(sceneFrom(bytes.Draw(t, "a")), sceneFrom(bytes.Draw(t, "b"))); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzCompare(f *testing.F) {
	f.Add([]byte("abcabc"), []byte("abcab"))
	f.Add([]byte{}, []byte{0, 255})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if err := compares(sceneFrom(a), sceneFrom(b)); err != nil {
			t.Fatal(err)
		}
	})
}
