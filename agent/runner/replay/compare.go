package replay

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"phonerack/agent/perception"
	"phonerack/agent/runner/record"
)

// maxLines bounds what is told of a difference.
const maxLines = 12

// What changes by itself: the time and the date, wherever they stand, and what
// is shown under the names of clocks and of the battery.
var (
	timeOfDay = regexp.MustCompile(`\b\d{1,2}:\d{2}(:\d{2})?\b`)
	isoDate   = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)
	clockLine = regexp.MustCompile(`^(\[\d+\] \w+) .*( id="[^"]*:id/(clock|date|date_view|battery|battery_level)".*)$`)
	pictureAt = regexp.MustCompile(` picture \d+x\d+`)
	screenNo  = regexp.MustCompile(`^screen \d+:`)
)

// timeless takes out of a line what changes by itself.
func timeless(line string) string {
	line = clockLine.ReplaceAllString(line, "$1$2")
	return isoDate.ReplaceAllString(timeOfDay.ReplaceAllString(line, "hh:mm"), "date")
}

// sceneLines are the lines of a scene that are compared.
func sceneLines(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if i == 0 {
			line = pictureAt.ReplaceAllString(screenNo.ReplaceAllString(line, "screen:"), "")
		}
		lines[i] = timeless(line)
	}
	return lines
}

// compareScenes returns what differs between the recorded screen of an act and
// the present one. A record without the screen's lines tells the app alone.
func compareScenes(was *record.Step, now *perception.Scene, text string) []string {
	if was.Scene == "" {
		if was.App != now.Package || was.Activity != now.Activity {
			return []string{"- app " + was.App + " " + was.Activity, "+ app " + now.Package + " " + now.Activity}
		}
		return nil
	}
	return lineDiff(sceneLines(was.Scene), sceneLines(text))
}

// lineDiff returns the lines that are in one list only, those that stand at the
// same place one after the other.
func lineDiff(was, now []string) []string {
	if slices.Equal(was, now) {
		return nil
	}
	var lines []string
	for i := range max(len(was), len(now)) {
		a, b := at(was, i), at(now, i)
		if a == b {
			continue
		}
		if i < len(was) {
			lines = append(lines, "- "+a)
		}
		if i < len(now) {
			lines = append(lines, "+ "+b)
		}
		if len(lines) > maxLines {
			return append(lines[:maxLines], "and more")
		}
	}
	return lines
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// compareActs returns what differs between a recorded step and the one that was
// taken in its place, its effect aside.
func compareActs(was, now *record.Step) []string {
	return firstOf([]part{
		{"step", stepWords(was), stepWords(now)},
		{"target", was.Target, now.Target},
		{"touch", fmt.Sprint(was.Points), fmt.Sprint(now.Points)},
		{"outcome", outcomeWords(was), outcomeWords(now)},
		{"text", was.Text, now.Text},
		{"message", was.Message, now.Message},
		{"result", was.Result, now.Result},
	})
}

// compareEffects returns what differs in what they came to.
func compareEffects(was, now *record.Step) []string {
	screen, _, _ := strings.Cut(was.Scene, "\n")
	drawn := strings.Contains(screen, " no-tree ")
	if lines := firstOf([]part{{"effect", effectWords(was, drawn), effectWords(now, drawn)}}); lines != nil {
		return lines
	}
	return lineDiff(timelessAll(was.Changes), timelessAll(now.Changes))
}

// effectWords is the effect of a step, where there are elements without what only
// pictures tell: those move by themselves.
func effectWords(s *record.Step, drawn bool) string {
	if s.Effect == "picture changed" && !drawn {
		return "no change"
	}
	return s.Effect
}

// part is one thing that is compared.
type part struct{ name, was, now string }

// firstOf returns the first part that differs.
func firstOf(parts []part) []string {
	for _, p := range parts {
		if a, b := timeless(p.was), timeless(p.now); a != b {
			return []string{"- " + p.name + " " + a, "+ " + p.name + " " + b}
		}
	}
	return nil
}

// timelessAll takes it out of the differences between screens.
func timelessAll(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if strings.HasPrefix(line, "~ screen ") {
			line = pictureAt.ReplaceAllString(line, "")
		}
		out[i] = timeless(line)
	}
	return out
}

// stepWords says what a step is.
func stepWords(s *record.Step) string {
	switch s.Kind {
	case record.Failed:
		return "a turn without a decision, " + string(s.Code())
	case record.Turn:
		return s.Tool + " " + arguments(s.Arguments)
	}
	return s.Kind + " " + arguments(s.Arguments)
}

// arguments are without the generation, and with their keys in order.
func arguments(raw json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	delete(m, "generation")
	b, err := json.Marshal(m)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

func outcomeWords(s *record.Step) string {
	return strings.TrimSpace(s.Outcome + " " + string(s.Code()))
}

func endWords(e *record.End) string {
	return strings.TrimSpace(e.Outcome + " " + string(e.Code()) + " " + fmt.Sprintf("%q", e.Message))
}
