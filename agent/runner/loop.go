package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/planner"
)

// Bounds of what counts as going round in circles.
const (
	loopWindow = 24 // acts back; long enough for two or three that take turns
	maxCircle  = 3  // acts of a circle
)

// loopDetector finds acts that repeat on screens that repeat.
type loopDetector struct {
	acts []act
}

type act struct {
	tool, args string
	screen     uint64         // hash of the scene
	picture    *frame.Picture // in the place of the hash where there is no tree; without its JPEG
}

// same tells whether two acts are equal on equal screens.
func (a act) same(b act) bool {
	if a.tool != b.tool || a.args != b.args {
		return false
	}
	if a.picture != nil && b.picture != nil {
		return a.picture.Distance(b.picture) <= stillPicture
	}
	return a.screen == b.screen
}

// loop is what an act repeats.
type loop struct {
	tools  string // the tools of the circle, or the one tool
	times  int    // the act was taken on this screen, itself included
	rounds int    // the last acts went round the same circle, 0 or 1 if they did not
}

// note tells the planner.
func (l loop) note() string {
	if l.rounds > 1 {
		return fmt.Sprintf("the last steps went round in a circle %d times: %s; do something else", l.rounds, l.tools)
	}
	return fmt.Sprintf("%s was called %d times with these arguments on this same screen; do something else", l.tools, l.times)
}

// seen notes an act and tells what it repeats.
func (l *loopDetector) seen(d planner.Decision, s *perception.Scene) loop {
	now := act{tool: d.Tool, args: canonical(d.Arguments), screen: s.Hash}
	if s.NoTree != "" && s.Picture != nil {
		now.picture = &frame.Picture{Thumb: s.Picture.Thumb}
	}
	if len(l.acts) == loopWindow {
		l.acts = append(l.acts[:0], l.acts[1:]...)
	}
	l.acts = append(l.acts, now)
	found := loop{tools: d.Tool}
	for _, a := range l.acts {
		if a.same(now) {
			found.times++
		}
	}
	for size := 2; size <= maxCircle; size++ {
		if rounds := l.rounds(size); rounds > max(found.rounds, 1) {
			found.rounds, found.tools = rounds, l.names(size)
		}
	}
	return found
}

// rounds counts how often the last acts went round a circle of that size. One
// act again and again is no circle.
func (l *loopDetector) rounds(size int) int {
	n := len(l.acts)
	if n < 2*size || !slices.ContainsFunc(l.acts[n-size:], func(a act) bool { return !a.same(l.acts[n-1]) }) {
		return 0
	}
	equal := 0
	for i := n - 1; i >= size && l.acts[i].same(l.acts[i-size]); i-- {
		equal++
	}
	return 1 + equal/size
}

// names lists the tools of the newest round.
func (l *loopDetector) names(size int) string {
	var names []string
	for _, a := range l.acts[len(l.acts)-size:] {
		names = append(names, a.tool)
	}
	return strings.Join(names, ", ")
}

func noChangeNote(times int) string {
	return fmt.Sprintf("the last %d acts changed nothing on the screen; try another way", times)
}

// canonical returns arguments without the scene's generation and with their keys
// in order, so that equal acts on equal screens are equal.
func canonical(args json.RawMessage) string {
	var m map[string]any
	if err := json.Unmarshal(args, &m); err != nil {
		return string(args)
	}
	delete(m, "generation")
	b, err := json.Marshal(m)
	if err != nil {
		return string(args)
	}
	return string(b)
}
