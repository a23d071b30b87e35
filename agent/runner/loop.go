package runner

import (
	"fmt"

	"phonerack/agent/planner"
)

// loopWindow is how many acts back a repetition counts. It is long enough for
// two or three acts that take turns.
const loopWindow = 24

// loopDetector counts equal acts on equal screens.
type loopDetector struct {
	acts []act
}

type act struct {
	tool, args string
	screen     uint64 // hash of the scene
}

// seen notes an act and returns how often it was among the last ones, itself
// included.
func (l *loopDetector) seen(d planner.Decision, screen uint64) int {
	now := act{d.Tool, canonical(d.Arguments), screen}
	if len(l.acts) == loopWindow {
		l.acts = append(l.acts[:0], l.acts[1:]...)
	}
	l.acts = append(l.acts, now)
	n := 0
	for _, a := range l.acts {
		if a == now {
			n++
		}
	}
	return n
}

func repeatNote(tool string, times int) string {
	return fmt.Sprintf("%s was called %d times with these arguments on this same screen; do something else", tool, times)
}
