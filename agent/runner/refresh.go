package runner

import (
	"context"
	"encoding/json"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// refresh looks again before something on the screen is touched if the planner
// has thought for long: a popup may have come, or a page have moved. The decision
// then names the element by its new number. If the element is no longer what and
// where it was, the act is refused and the planner is asked again. err ends the
// attempt.
func (a *attempt) refresh(ctx context.Context, step *Step, d planner.Decision) (_ planner.Decision, refusal *wire.Refusal, err error) {
	before := a.scene
	if time.Since(a.seen) <= a.limits.Fresh || a.readOnly(d.Tool) {
		return d, nil, nil
	}
	aim, ok := aimOf(d, before)
	if !ok {
		return d, nil, nil
	}
	scene, err := a.look(ctx, perception.Want{Image: true})
	if err != nil {
		a.scene = nil
		return d, nil, err
	}
	a.scene = scene
	if aim.element == nil { // a point
		if alike(before, scene) {
			return d, nil, nil // the tool holds the point to the scene that it was given
		}
	} else if e := stillThere(aim.element, scene); e != nil {
		return aim.renamed(d, e.Index, scene.Generation), nil, nil
	}
	effect(step, before, scene, false)
	return d, wire.Refuse(wire.StaleElement, map[string]any{
		"element": aim.index, "generation": before.Generation, "current": scene.Generation,
	}), nil
}

func (a *attempt) readOnly(tool string) bool {
	for _, t := range a.tools.Tools() {
		if t.Name == tool {
			return t.Annotations.ReadOnly
		}
	}
	return false
}

// aim is what a call touches.
type aim struct {
	element *perception.Element // nil: a point
	index   int
	named   bool // by its number in the arguments
}

// aimOf finds the element or the point that a call touches. A call that names an
// element that is not there is left to its tool to refuse.
func aimOf(d planner.Decision, s *perception.Scene) (aim, bool) {
	var args struct {
		Element    *int    `json:"element"`
		Generation *uint64 `json:"generation"`
		X          *int    `json:"x"`
	}
	if json.Unmarshal(d.Arguments, &args) != nil {
		return aim{}, false
	}
	switch {
	case args.Element != nil && args.Generation != nil:
		e, err := s.Find(*args.Generation, *args.Element)
		return aim{&e, e.Index, true}, err == nil
	case args.X != nil:
		return aim{}, true
	case d.Tool == "input_text" || d.Tool == "clear_text":
		if field := tools.FocusedField(s); field != nil {
			return aim{field, field.Index, false}, true
		}
	}
	return aim{}, false
}

// stillThere finds the element in a later scene: the same one at the same place,
// and as touchable as it was.
func stillThere(was *perception.Element, s *perception.Scene) *perception.Element {
	for i := range s.Elements {
		e := &s.Elements[i]
		if e.Key == was.Key && e.Bounds == was.Bounds && e.Role == was.Role && e.Enabled == was.Enabled && e.ID == was.ID {
			return e
		}
	}
	return nil
}

// renamed returns the decision with the element's new number.
func (m aim) renamed(d planner.Decision, index int, generation uint64) planner.Decision {
	var args map[string]any
	if !m.named || json.Unmarshal(d.Arguments, &args) != nil {
		return d
	}
	args["element"], args["generation"] = index, generation
	if b, err := json.Marshal(args); err == nil {
		d.Arguments = b
	}
	return d
}
