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
		step.Changes = changes(d)
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

// changes are the first few differences of what is named. What password fields
// hold is not among them.
func changes(d perception.Diff) []string {
	d.Picture = false
	blank := func(list []perception.Element) {
		for i := range list {
			hidePassword(&list[i])
		}
	}
	blank(d.Added)
	blank(d.Removed)
	for i := range d.Changed {
		hidePassword(&d.Changed[i].Before)
		hidePassword(&d.Changed[i].After)
	}
	return d.Lines(maxChanges)
}

func hidePassword(e *perception.Element) {
	if e.Password {
		e.Text = ""
	}
}
