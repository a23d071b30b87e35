package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// hand is what people see of a phone, and where they point. Tasks look for themselves, so that a person who looks does
// not take a task's elements away.
type hand struct {
	slot     int
	observer *perception.Observer

	mu    sync.Mutex
	scene *perception.Scene // guarded by mu; the newest one, without its picture; nil before the first
}

func (h *hand) observe(ctx context.Context, image bool) (*perception.Scene, error) {
	scene, err := h.observer.Observe(ctx, perception.Want{Image: image})
	if err != nil {
		return nil, err
	}
	kept := *scene
	kept.Picture = nil // much for each phone of the rack
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scene == nil || h.scene.Generation < kept.Generation {
		h.scene = &kept
	}
	return scene, nil
}

func (h *hand) last() *perception.Scene {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scene
}

// element finds where an element of the last observation is touched. It lets the tap tool do all its checks against
// controls that only note the point.
func (h *hand) element(ctx context.Context, generation uint64, index int) (x, y int, err error) {
	scene := h.last()
	if scene == nil {
		return 0, 0, wire.Refuse(wire.StaleElement, map[string]any{"element": index, "generation": generation, "current": h.observer.Generation()})
	}
	args, err := json.Marshal(map[string]any{"element": index, "generation": generation})
	if err != nil {
		return 0, 0, err
	}
	var at pointer
	_, err = tools.Default().Execute(ctx, tools.Env{Controls: &at, Scene: scene, Slot: h.slot}, planner.Decision{Tool: "tap", Arguments: args})
	return at.x, at.y, err
}

// text looks afresh and finds the one element that shows the text or is described by it.
func (h *hand) text(ctx context.Context, text string) (x, y int, err error) {
	scene, err := h.observe(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	var found []perception.Element
	for _, e := range scene.Elements {
		if strings.EqualFold(strings.TrimSpace(e.Text), text) || strings.EqualFold(strings.TrimSpace(e.Description), text) {
			found = append(found, e)
		}
	}
	if touchable := clickable(found); len(touchable) > 0 {
		found = touchable
	}
	if len(found) != 1 {
		reason := fmt.Sprintf("%d elements of the screen show the text %q; name one by element and generation", len(found), text)
		return 0, 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
	}
	return h.element(ctx, scene.Generation, found[0].Index)
}

func clickable(all []perception.Element) []perception.Element {
	var some []perception.Element
	for _, e := range all {
		if e.Clickable {
			some = append(some, e)
		}
	}
	return some
}

// observation is a scene as the control socket tells it.
func observation(scene *perception.Scene, want action.Want) (action.Observation, error) {
	o := action.Observation{
		Generation: scene.Generation, Package: scene.Package, Activity: scene.Activity,
		Width: scene.Width, Height: scene.Height, Screen: scene.Prompt(), Missing: scene.Missing,
	}
	if scene.Picture == nil {
		return o, nil
	}
	var err error
	switch {
	case want.Marks:
		o.Image, err = scene.Marked(scene.Elements)
	case want.Grid:
		o.Image, err = scene.Grid()
	default:
		o.Image = scene.Picture.JPEG
	}
	return o, err
}

// pointer notes where the tap tool would touch, and touches nothing.
type pointer struct {
	tools.Unsupported
	x, y int
}

func (p *pointer) Tap(_ context.Context, x, y int) error {
	p.x, p.y = x, y
	return nil
}
