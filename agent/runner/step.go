package runner

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// Step outcomes, as in the prompt's past lines.
const (
	outcomeDone    = "done"
	outcomeRefused = "refused" // nothing was done
	outcomeFailed  = "failed"  // the turn came to nothing, or the act to a part
	outcomeUnknown = "unknown" // the act may have happened
)

// Step is one turn, as it stands in steps.jsonl.
type Step struct {
	N          int             `json:"n"`
	At         time.Time       `json:"at"`
	DurationMS int64           `json:"duration_ms"`
	Screen     uint64          `json:"screen"` // generation of the scene that was decided on
	Hash       string          `json:"hash"`   // of its content
	App        string          `json:"app,omitempty"`
	Activity   string          `json:"activity,omitempty"`
	Tool       string          `json:"tool,omitempty"` // "" if there was no decision
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Decision   int             `json:"decision"` // the planner's own count, 0 if it has none
	Target     string          `json:"target,omitempty"`
	Points     [][2]int        `json:"points,omitempty"` // touches, in pixels of the display
	Outcome    string          `json:"outcome"`
	Refusal    *wire.Refusal   `json:"refusal,omitempty"`
	Effect     string          `json:"effect"`
	Text       string          `json:"text,omitempty"`    // verified, unverified or failed
	Message    string          `json:"message,omitempty"` // of finish
	Image      string          `json:"image,omitempty"`   // file name

	pause time.Duration // before the next turn
}

func (s *Step) see(scene *perception.Scene) {
	s.Screen, s.Hash = scene.Generation, fmt.Sprintf("%016x", scene.Hash)
	s.App, s.Activity = scene.Package, scene.Activity
	s.Outcome, s.Effect = outcomeDone, "not seen"
}

var (
	paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_:/.-]{1,128}$`)
)

// maxArguments bounds the arguments in a record and in the prompt, in bytes.
const maxArguments = 4 << 10

// decided notes the call as it came, which may be of any form.
func (s *Step) decided(d planner.Decision) {
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

// NotKept stands in a step's arguments for text that went, or may have been meant to go, into a password field.
const NotKept = "(not kept)"

// acted notes what the tool did. What goes into a password field is not kept, nor what was to go into a field that was
// not found.
func (s *Step) acted(out tools.Outcome) {
	for _, p := range out.Points {
		s.Points = append(s.Points, [2]int{p.X, p.Y})
	}
	if out.Target == nil || out.Target.Password {
		s.Arguments = withoutText(s.Arguments)
	}
	if out.Target != nil {
		s.Target = describe(*out.Target)
	}
}

func (s *Step) went(outcome string, refusal *wire.Refusal) { s.Outcome, s.Refusal = outcome, refusal }

func (s *Step) code() wire.Code {
	if s.Refusal == nil {
		return ""
	}
	return s.Refusal.Code
}

// line is the step as a past line of the prompt.
func (s *Step) line() string {
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
