package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

func TestMaskPutsNamesInThePlaceOfValues(t *testing.T) {
	m := NewMask(map[string]string{
		"pin": "4711", "colour": "red", "city": "北京市", "n": "7", "note": `say "hi"`, "word": "param", "long": "secret-token", "empty": "",
		"drink": "red wine", "code": "zx81zx",
	}).Whole("answer 3", "yes")
	for text, want := range map[string]string{
		"4711":                   "(param pin)",
		"PIN: 4711!":             "PIN: (param pin)!",
		"order 14711":            "order 14711", // a part of another number
		"red":                    "(param colour)",
		"a credit":               "a credit",
		"the red one, the Red":   "the (param colour) one, the Red",
		"7":                      "(param n)",
		"7 items":                "7 items", // too short to be looked for
		"在北京市的天气":                "在(param city)的天气",
		"xsecret-tokenx":         "x(param long)x",
		"red 4711 param":         "(param colour) (param pin) (param word)",
		"a red wine":             "a (param drink)", // the longest value, not one that it begins with
		"Azx81zxB":               "A(param code)B",
		"yes":                    "(answer 3)",
		"yes, the red one":       "yes, the (param colour) one",
		"yes, yesterday":         "yes, yesterday",
		"":                       "",
		"\xff red \xff":          "\xff (param colour) \xff",
		`say "hi" to the others`: "(param note) to the others",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	args := json.RawMessage(`{"text":"red","n":7,"list":["4711",{"a":"x"}]}`)
	if got := string(m.JSON(args)); got != `{"list":["(param pin)",{"a":"x"}],"n":7,"text":"(param colour)"}` {
		t.Error(got)
	}
	if got := string(m.JSON(json.RawMessage(`{"b":1.0,"a":2}`))); got != `{"b":1.0,"a":2}` {
		t.Errorf("nothing to hide, but %s", got)
	}
	for line, want := range map[string]string{
		`edit "red" hint="a \"red\" one" id="a:id/red_x" -> edit "yes" "yes sir"`: `edit "(param colour)" hint="a \"(param colour)\" one" id="a:id/red_x" -> edit "(answer 3)" "yes sir"`,
		`edit "open 4711`: `edit "open (param pin)`,
		`plain`:           `plain`,
		`"<b>" "\u202e"`:  `"<b>" "\u202e"`, // what is not masked stays as it is written
	} {
		if got := m.Line(line); got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
	original := wire.Refuse(wire.CannotType, map[string]any{"reason": "cannot type 4711", "slot": 3})
	r := m.Refusal(original)
	if strings.Contains(r.Error(), "4711") || r.Args["slot"] != 3 {
		t.Error(r)
	}
	if original.Args["reason"] != "cannot type 4711" { // people see it with its values while the task runs
		t.Errorf("the refusal itself was changed: %v", original)
	}
}

func TestMaskedScene(t *testing.T) {
	s := &perception.Scene{Generation: 2, Package: "a.b", Width: 10, Height: 10, Elements: []perception.Element{
		{Role: "edit", Text: "hunter2", Password: true, Hint: "Password", Enabled: true},
		{Index: 1, Role: "text", Text: strings.Repeat("x", 190) + " 0123456789abcdef", Enabled: true}, // cut in the middle of the value
		{Index: 2, Role: "button", Description: "call 0123456789abcdef", Enabled: true},
	}}
	text := NewMask(map[string]string{"key": "0123456789abcdef"}).Scene(s)
	if strings.Contains(text, "hunter2") || strings.Contains(text, "0123") || !strings.Contains(text, `desc="call (param key)"`) || !strings.Contains(text, `hint="Password"`) {
		t.Error(text)
	}
	if s.Elements[0].Text != "hunter2" {
		t.Error("the scene itself was changed")
	}
	if got := (Mask{}).Scene(s); strings.Contains(got, "hunter2") {
		t.Errorf("without parameters: %s", got)
	}
	s.Windows = []phone.Window{{Kind: phone.DialogWindow, Title: "Call 0123456789abcdef?"}}
	text = NewMask(map[string]string{"key": "0123456789abcdef"}).Scene(s)
	if strings.Contains(text, "0123") || !strings.Contains(text, ` dialog "Call (param key)?"`) {
		t.Errorf("a dialog's title: %s", text)
	}
}

func TestReveal(t *testing.T) {
	args, err := Reveal(json.RawMessage(`{"text":"(param a) and (param b)"}`), map[string]string{"a": "1", "b": "2"})
	if err != nil || string(args) != `{"text":"1 and 2"}` {
		t.Errorf("%s, %v", args, err)
	}
	if _, err := Reveal(json.RawMessage(`{"text":"(param c)"}`), map[string]string{"a": "1"}); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Error(err)
	}
}

// written makes a trajectory of n steps, each with that picture and scene.
func written(t *testing.T, dir string, n int, picture []byte, scene string) []Step {
	t.Helper()
	w, err := Create(dir, Task{Goal: "x", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := &Step{N: i + 1, Tool: "wait", Arguments: json.RawMessage(`{}`), Outcome: Done, Effect: "no change", Scene: scene}
		w.Add(s, picture)
		if s.Scene != "" {
			t.Fatal("the scene stays in memory")
		}
	}
	if err := w.Close(End{Outcome: "succeeded"}); err != nil {
		t.Fatal(err)
	}
	var steps []Step
	for s, err := range Steps(dir, true) {
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	return steps
}

func TestDiskIsBoundedAndWhatIsLeftOutIsSaid(t *testing.T) {
	t.Run("pictures", func(t *testing.T) {
		dir := t.TempDir()
		steps := written(t, dir, 5, make([]byte, maxPictures/3), "screen 1:\n")
		for i, s := range steps {
			if (s.Image != "") != (i < 3) || (s.LeftOut == noPicture) != (i >= 3) {
				t.Errorf("step %d: image %q, left out %q", s.N, s.Image, s.LeftOut)
			}
		}
		pictures, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
		if err != nil || len(pictures) != 3 || filepath.Base(pictures[0]) != "001.jpg" { // the oldest stay
			t.Errorf("%q, %v", pictures, err)
		}
		page, err := os.ReadFile(filepath.Join(dir, pageFile))
		if err != nil || strings.Count(string(page), "the room for them is used up") != 2 {
			t.Errorf("the page does not say so: %v", err)
		}
	})
	t.Run("scenes", func(t *testing.T) {
		steps := written(t, t.TempDir(), maxScenes/maxScene+2, nil, strings.Repeat("x", maxScene))
		for i, s := range steps {
			if (s.Scene != "") != (i < maxScenes/maxScene) || (s.LeftOut == noScene) != (s.Scene == "") {
				t.Errorf("step %d: scene of %d bytes, left out %q", s.N, len(s.Scene), s.LeftOut)
			}
		}
		if steps = written(t, t.TempDir(), 1, nil, strings.Repeat("\"", maxScene)); steps[0].Scene == "" { // all of it has to be escaped: the line still fits
			t.Error("a scene within the bound was left out")
		}
		steps = written(t, t.TempDir(), 1, nil, strings.Repeat("x", maxScene+1))
		if steps[0].Scene != "" || steps[0].LeftOut != noScene {
			t.Errorf("a huge scene: %q", steps[0].LeftOut)
		}
	})
}

func TestANewAttemptBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 3, []byte("jpeg"), "")
	w, err := Create(dir, Task{Goal: "x"}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	if HasPage(dir) {
		t.Error("the page of the attempt before is still there while the next one runs")
	}
	if err := w.Close(End{Outcome: "failed"}); err != nil {
		t.Fatal(err)
	}
	if steps := written(t, dir, 1, []byte("jpeg"), ""); len(steps) != 1 {
		t.Errorf("%d steps", len(steps))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 4 { // 001.jpg, index.html, steps.jsonl, task.json
		t.Errorf("%q, %v", left, err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(hidden) > 0 {
		t.Errorf("left behind: %q, %v", hidden, err)
	}
}

func TestStepsOfARunningAttemptEndAtTheLastWholeLine(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 2, nil, "")
	f, err := os.OpenFile(filepath.Join(dir, stepsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"n":3,`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for whole, want := range map[bool]bool{true: true, false: false} {
		n, failed := 0, false
		for _, err := range Steps(dir, whole) {
			if err != nil {
				failed = errors.Is(err, ErrDamaged)
				continue
			}
			n++
		}
		if n != 2 || failed != want {
			t.Errorf("whole %t: %d steps, failed %t", whole, n, failed)
		}
	}
}

func TestAnAttemptThatWasCutOffGetsItsPage(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, Task{Goal: "a <b> goal", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(&Step{N: 1, Tool: "launch_app", Arguments: json.RawMessage(`{}`), Outcome: Done, Effect: "no change"}, nil)
	for name, text := range map[string]string{stepsFile: `{"n":2,`, partPrefix + "1": "<html>"} { // as a kill leaves them
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := Finish(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil || !strings.Contains(string(page), "cut off: a &lt;b&gt; goal") || strings.Count(string(page), `id="step-`) != 1 {
		t.Errorf("%s, %v", page, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if err := Finish(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestARecordIsReadFromPlainFilesAlone(t *testing.T) {
	for kind, put := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o750) },
		"device": func(path string) error { return os.Symlink(os.DevNull, path) }, // as well a pipe
	} {
		for _, name := range []string{taskFile, stepsFile} {
			dir := t.TempDir()
			written(t, dir, 1, nil, "")
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := put(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err := ReadTask(dir)
			for _, stepErr := range Steps(dir, true) {
				err = errors.Join(err, stepErr)
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name+" cannot be used because it is no plain file") {
				t.Errorf("%s, a %s: %v", name, kind, err)
			}
		}
	}
}

func TestTheNumberOfStepsIsBounded(t *testing.T) {
	line := func(n int) []byte {
		return fmt.Appendf(nil, `{"n":%d,"kind":"failed","outcome":"failed"}`, n)
	}
	if _, err := parseStep(line(maxSteps), maxSteps, nil); err != nil {
		t.Error(err)
	}
	if _, err := parseStep(line(maxSteps+1), maxSteps+1, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "more than 5000 steps") {
		t.Error(err)
	}
}

func TestTheEndIsMasked(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, Task{Goal: "x"}, NewMask(map[string]string{"pin": "4711"}))
	if err != nil {
		t.Fatal(err)
	}
	refusal := wire.Refuse(wire.CannotType, map[string]any{"reason": "cannot type 4711"})
	if err := w.Close(End{Outcome: "failed", Message: "it was 4711", Refusal: refusal}); err != nil {
		t.Fatal(err)
	}
	task, err := ReadTask(dir)
	if err != nil || task.End.Message != "it was (param pin)" || task.End.Refusal.Args["reason"] != "cannot type (param pin)" {
		t.Errorf("%+v, %v", task.End, err)
	}
}

func TestConcludeLeavesAWholeTrajectoryAsItIs(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 1, nil, "")
	page := filepath.Join(dir, pageFile)
	if err := os.WriteFile(page, []byte("as it was"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Conclude(dir, End{Outcome: "failed"}); err != nil {
		t.Fatal(err)
	}
	task, taskErr := ReadTask(dir)
	text, err := os.ReadFile(page)
	if err != nil || taskErr != nil || string(text) != "as it was" || task.End.Outcome != "succeeded" {
		t.Errorf("page %q, end %+v, %v, %v", text, task.End, err, taskErr)
	}
}

func TestBoxesOfThePageAreRectangles(t *testing.T) {
	for _, bounds := range [][]int{nil, {1, 2, 3}, {5, 2, 5, 9}, {5, 9, 7, 9}, {7, 2, 5, 9}} {
		if b := boxOf(bounds); b != nil {
			t.Errorf("%v: %+v", bounds, b)
		}
	}
	if b := boxOf([]int{5, 2, 6, 9}); b == nil || *b != (box{5, 2, 1, 7}) {
		t.Errorf("%+v", b)
	}
}

func TestTheSumTellsThePartsApart(t *testing.T) {
	a, b := Step{Kind: "a", Tool: "bc"}, Step{Kind: "ab", Tool: "c"}
	if a.SumOf() == b.SumOf() {
		t.Error("what stands in another part has the same sum")
	}
}

func FuzzMask(f *testing.F) {
	f.Add("the value is 4711 here", "4711")
	f.Add("\xff\x00", "\xff")
	f.Fuzz(func(t *testing.T, text, value string) {
		m := NewMask(map[string]string{"p": value})
		masked := m.Text(text)
		// A value that shares no character with what stands for it cannot come together around that.
		if len([]rune(value)) >= anywhereLength && !strings.ContainsAny(value, "(param p)") && strings.Contains(masked, value) {
			t.Errorf("%q of %q still holds %q", masked, text, value)
		}
		if value == "" && masked != text {
			t.Errorf("%q became %q", text, masked)
		}
	})
}
