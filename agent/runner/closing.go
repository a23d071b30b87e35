package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"phonerack/agent/planner"
	"phonerack/agent/runner/popup"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
)

// closePopup lets the watchers close what is in the way of the scene. It counts
// as no turn of the planner, and it is bounded: a popup that does not go, or
// comes back, is the planner's.
func (a *attempt) closePopup(ctx context.Context) (closed bool, end *Result) {
	if a.task.KeepPopups || a.pressed >= a.limits.Popups || a.Controls == nil || !a.canTap() {
		return false, nil
	}
	before := a.scene
	watcher, button := popup.Find(before, slices.Contains(a.task.Permissions, tools.PermitConsent))
	if watcher == nil {
		return false, nil
	}
	name := fmt.Sprintf("%s %s %x", watcher.Name, before.Package, button.Key)
	if a.popups[name] >= a.limits.SamePopup {
		return false, nil
	}
	a.popups[name]++
	a.pressed++

	step := a.begin()
	step.Kind, step.Tool = record.Popup, "popup"
	step.Arguments = jsonOf(map[string]any{"watcher": watcher.Name})
	tap := planner.Decision{Tool: "tap", Arguments: jsonOf(map[string]any{"element": button.Index, "generation": before.Generation})}
	out, err := a.execute(ctx, step, tap)
	acted(step, out)
	if err != nil {
		end = a.refusedAct(ctx, step, out, err)
	}
	if end == nil {
		end = a.after(ctx, step, before, out)
	}
	a.note(step, before)
	return true, end
}

func (a *attempt) canTap() bool {
	return slices.ContainsFunc(a.offer, func(t planner.Tool) bool { return t.Name == "tap" })
}

// jsonOf encodes what is made here of plain values.
func jsonOf(m map[string]any) json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}
