package runner

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// see notes what the step is decided on.
func see(s *Step, scene *perception.Scene) {
	s.Screen, s.Hash = scene.Generation, fmt.Sprintf("%016x", scene.Hash)
	s.App, s.Activity = scene.Package, scene.Activity
	s.Size = [2]int{scene.Width, scene.Height}
	s.Outcome, s.Effect = record.Done, notSeen
}

var (
	paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_:/.-]{1,128}$`)
)

// maxArguments bounds the arguments in a record and in the prompt, in bytes.
const maxArguments = 4 << 10

// decided notes the call as it came, which may be of any form.
func decided(s *Step, d planner.Decision) {
	s.Decision = d.StepIndex
	if !toolName.MatchString(d.Tool) {
		return
	}
	s.Tool = d.Tool
	s.Arguments = json.RawMessage(`{}`)
	var m map[string]any
	if len(d.Arguments) > maxArguments || json.Unmarshal(d.Arguments, &m) != nil {
		return
	}
	if b, err := compact(d.Arguments); err == nil {
		s.Arguments = b
	}
}

// acted notes what the tool did. What goes into a password field is not kept; note sees to what was to go into a field that
// was not found.
func acted(s *Step, out tools.Outcome) {
	for _, p := range out.Points {
		s.Points = append(s.Points, [2]int{p.X, p.Y})
	}
	if s.Tool == "input_text" && out.Target != nil && out.Target.Password {
		s.Arguments = withoutText(s.Arguments)
	}
	if out.Target != nil {
		s.Target = describe(*out.Target)
		r := out.Target.Bounds
		s.Bounds = []int{r.Min.X, r.Min.Y, r.Max.X, r.Max.Y}
	}
}

func went(s *Step, outcome string, refusal *wire.Refusal) { s.Outcome, s.Refusal = outcome, refusal }

// pastLine is the step as a past line of the prompt.
func pastLine(s *Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "past %d: ", s.N)
	if s.Tool == "" {
		b.WriteString("no decision")
	} else {
		fmt.Fprintf(&b, "%s %s", s.Tool, s.Arguments)
		if s.Target != "" {
			b.WriteString(" on " + s.Target)
		}
	}
	b.WriteString(" -> " + s.Outcome)
	if s.Refusal != nil {
		fmt.Fprintf(&b, " %s %s", s.Refusal.Code, quote(s.Refusal.Error()))
	}
	b.WriteString("; " + s.Effect)
	if s.Text != "" {
		b.WriteString("; text " + s.Text)
	}
	if s.Moving {
		b.WriteString("; still moving")
	}
	return b.String()
}

// maxLabel bounds each string of a description, in characters.
const maxLabel = 80

// describe is an element as in the scene's lines, without index and states.
func describe(e perception.Element) string {
	var b strings.Builder
	b.WriteString(e.Role)
	if e.Text != "" && !e.Password {
		b.WriteString(" " + quote(clip(e.Text, maxLabel)))
	}
	for _, part := range []struct{ name, value string }{{"desc", e.Description}, {"hint", e.Hint}, {"id", e.ID}} {
		if part.value != "" {
			b.WriteString(" " + part.name + "=" + quote(clip(part.value, maxLabel)))
		}
	}
	return b.String()
}

func clip(s string, runes int) string {
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

func withoutText(args json.RawMessage) json.RawMessage {
	var m map[string]any
	if json.Unmarshal(args, &m) != nil || m["text"] == nil {
		return args
	}
	m["text"] = NotKept
	b, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}
