package perception

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/phone"
)

var update = flag.Bool("update", false, "write the golden scenes")

// generated are fixtures too large to be files.
var generated = map[string]func() []byte{
	"generated_2000": func() []byte { return shopDump(777 << 10) },
	"generated_deep": func() []byte { return nested(15000) },
}

// surroundings are the states of the fixtures that need more than their size
// and the app in front.
var surroundings = map[string]func(*phone.State){
	"dialog":            func(s *phone.State) { s.Display.Width, s.Display.Height = 1080, 2400 },
	"anr_dialog":        func(s *phone.State) { s.Display.Width, s.Display.Height = 1080, 2400 },
	"permission_dialog": func(s *phone.State) { s.Display.Width, s.Display.Height = 1080, 2400 },
	"generated_2000":    func(s *phone.State) { s.Display.Width, s.Display.Height = 1080, 2400 },
	"tv_home":           func(s *phone.State) { s.Display.Width, s.Display.Height = 1920, 1080 },
	"keyboard_shown": func(s *phone.State) {
		s.Keyboard.Shown, s.Focus.Package = true, "com.phonerack.mail"
	},
	"keyboard_area": func(s *phone.State) {
		s.Keyboard = phone.Keyboard{Shown: true, Area: image.Rect(0, 1500, 1080, 2400)}
	},
	"two_windows": func(s *phone.State) {
		s.Windows = []phone.Window{
			{Package: systemUI, Title: "StatusBar", Kind: phone.SystemWindow},
			{Package: "com.phonerack.mail", Title: "Delete this conversation?", Kind: phone.DialogWindow, Focused: true},
			{Package: "com.phonerack.mail", Title: "com.phonerack.mail/.Inbox", Kind: phone.AppWindow},
		}
	},
}

// fixtures returns the dumps of testdata and the generated ones by name.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".xml")] = b
	}
	for name, make := range generated {
		all[name] = make()
	}
	return all
}

// fixture builds the scene of a fixture.
func fixture(t testing.TB, name string) *Scene {
	t.Helper()
	dump := fixtures(t)[name]
	if dump == nil {
		t.Fatalf("no fixture %s", name)
	}
	return sceneIn(t, dump, surroundings[name])
}

func sceneOf(t testing.TB, dump []byte) *Scene {
	t.Helper()
	return sceneIn(t, dump, nil)
}

// sceneIn builds the scene of a dump. What surrounds it is what the dump says,
// changed by around.
func sceneIn(t testing.TB, dump []byte, around func(*phone.State)) *Scene {
	t.Helper()
	tree, err := parseDump(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.release()
	size := tree.extent(nil)
	r := reading{tree: tree, state: phone.State{
		Focus:   phone.Focus{Package: tree.front(), Activity: ".MainActivity"},
		Display: phone.Display{Width: size.X, Height: size.Y, Rotation: tree.rotation},
	}}
	if around != nil {
		around(&r.state)
	}
	s := r.scene()
	s.Generation = 7
	return s
}

// TestGoldenScenes compares the fixtures' scenes with golden files: what they
// come to in figures, the prompt and, below it, class and bounds of each element.
func TestGoldenScenes(t *testing.T) {
	for name, dump := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			s := sceneIn(t, dump, surroundings[name])
			var b strings.Builder
			fmt.Fprintf(&b, "%d bytes, %d nodes: %d elements, about %d tokens\n\n", len(dump), nodesIn(dump), len(s.Elements), Tokens(s.Prompt()))
			b.WriteString(s.Prompt())
			b.WriteByte('\n')
			for _, e := range s.Elements {
				fmt.Fprintf(&b, "%d %s %s\n", e.Index, e.Bounds, e.Class)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
			}
		})
	}
}

func nodesIn(dump []byte) int {
	return bytes.Count(dump, []byte("bounds="))
}

// TestNothingThatAPersonNeedsIsLost reads the lists of what a person needs on
// each screen, written by hand, and finds all of it in the scene. A line is
//
//	ROLE "label" state...
//
// The label is the text, the description or the hint, whole; "" is an element
// without any. The states are those of the prompt; !state must not be there. A
// line "no ROLE "label"" names what must not be in the scene, and "screen word"
// a word of the screen's line.
func TestNothingThatAPersonNeedsIsLost(t *testing.T) {
	for name, dump := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			list, err := os.ReadFile(filepath.Join("testdata", name+".want"))
			if err != nil {
				t.Fatal(err)
			}
			s := sceneIn(t, dump, surroundings[name])
			taken := map[int]bool{}
			for line := range strings.Lines(string(list)) {
				if line = strings.TrimSpace(line); line != "" {
					wanted(t, s, line, taken)
				}
			}
			screen := image.Rect(0, 0, s.Width, s.Height)
			for _, e := range s.Elements {
				if !e.Bounds.In(screen) || e.Bounds.Dx() < minSide || e.Bounds.Dy() < minSide {
					t.Errorf("[%d] %s %q is off the screen or too small: %v", e.Index, e.Role, e.Text, e.Bounds)
				}
			}
		})
	}
}

// wanted checks one line of a list; an element serves one line only.
func wanted(t *testing.T, s *Scene, line string, taken map[int]bool) {
	t.Helper()
	if word, ok := strings.CutPrefix(line, "screen "); ok {
		if first, _, _ := strings.Cut(s.Prompt(), "\n"); !strings.Contains(first+" ", " "+word+" ") {
			t.Errorf("%s: the line is %q", line, first)
		}
		return
	}
	rest, no := strings.CutPrefix(line, "no ")
	role, rest, _ := strings.Cut(rest, " ")
	dec := json.NewDecoder(strings.NewReader(rest))
	var label string
	if err := dec.Decode(&label); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	states := strings.Fields(rest[dec.InputOffset():])
	for _, e := range s.Elements {
		if e.Role == role && !taken[e.Index] && labelled(e, label) && inStates(e, states) {
			if taken[e.Index] = true; no {
				t.Errorf("%s: it is [%d]", line, e.Index)
			}
			return
		}
	}
	if !no {
		t.Errorf("missing: %s", line)
	}
}

func labelled(e Element, label string) bool {
	if label == "" {
		return e.Text == "" && e.Description == "" && e.Hint == ""
	}
	return e.Text == label || e.Description == label || e.Hint == label
}

func inStates(e Element, states []string) bool {
	var has []string
	for _, state := range e.stateWords() {
		if state.on {
			has = append(has, state.word)
		}
	}
	for _, state := range states {
		word, not := strings.CutPrefix(state, "!")
		if slices.Contains(has, word) == not {
			return false
		}
	}
	return true
}
