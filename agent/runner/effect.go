package runner

import (
	"fmt"

	"phonerack/agent/perception"
)

// Effects that are not counted in elements.
const (
	notSeen  = "not seen"
	noChange = "no change"
	pictures = "picture changed"
)

// effect notes what differs between the scenes before and after an act, and
// tells whether anything does.
func effect(step *Step, before, after *perception.Scene, moving bool) bool {
	step.Moving = moving
	d := perception.Compare(before, after)
	if d.Front || len(d.Added)+len(d.Removed)+len(d.Changed) > 0 {
		step.Effect = fmt.Sprintf("screen changed: +%d -%d ~%d", len(d.Added), len(d.Removed), len(d.Changed))
		step.Changes = changes(d, before, after)
		return true
	}
	drawn := before.NoTree != "" || after.NoTree != ""
	if before.Picture == nil || after.Picture == nil {
		step.Effect = noChange
		if drawn {
			step.Effect = notSeen
		}
		return drawn // nobody knows: it does not count as nothing
	}
	least := changedPicture
	if drawn {
		least = changedDrawing
	}
	if before.Picture.Distance(after.Picture) >= least {
		step.Effect = pictures
		return true
	}
	step.Effect = noChange
	return false
}

// maxChanges bounds Step.Changes.
const maxChanges = 8

// changes are the first few differences, in the order of what matters: the app,
// what is new, what is gone, what is otherwise.
func changes(d perception.Diff, before, after *perception.Scene) []string {
	var lines []string
	if before.Package != after.Package || before.Activity != after.Activity {
		lines = append(lines, clip("> "+after.Package+" "+after.Activity, maxLabel))
	}
	for _, e := range d.Added {
		lines = append(lines, "+ "+describe(e))
	}
	for _, e := range d.Removed {
		lines = append(lines, "- "+describe(e))
	}
	for _, c := range d.Changed {
		lines = append(lines, "~ "+describe(c.Before)+" -> "+describe(c.After))
	}
	if more := len(lines) - maxChanges; more > 0 {
		lines = append(lines[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return lines
}
