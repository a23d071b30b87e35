package runner

import (
	"strings"
	"testing"

	"phonerack/agent/perception"
)

// TestChangesTellNothingOfPasswords: not even how long they are.
func TestChangesTellNothingOfPasswords(t *testing.T) {
	field := func(text string) perception.Element {
		return perception.Element{Role: "edit", ID: "a:id/pin", Text: text, Password: true, Enabled: true}
	}
	scene := func(elements ...perception.Element) *perception.Scene { return &perception.Scene{Elements: elements} }
	for name, c := range map[string][2]*perception.Scene{
		"typed into": {scene(field("••")), scene(field("••••"))},
		"come":       {scene(), scene(field("••••"))},
		"gone":       {scene(field("••••")), scene()},
	} {
		var step Step
		if !effect(&step, c[0], c[1], false) || len(step.Changes) != 1 || strings.Contains(step.Changes[0], "•") {
			t.Errorf("%s: %q", name, step.Changes)
		}
		for _, s := range c {
			if len(s.Elements) > 0 && s.Elements[0].Text == "" {
				t.Errorf("%s: the scene has lost its text", name)
			}
		}
	}
}
