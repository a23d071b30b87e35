package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"slices"
	"strings"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// Bounds of scroll_to.
const (
	maxScrolls  = 20
	scrollLimit = 90 * time.Second       // no swipe begins later
	scrollTime  = 700 * time.Millisecond // of a swipe: slow, so that the list hardly runs on by itself
	scrollReact = 1200 * time.Millisecond
	scrollRest  = 2 * time.Second // until what was found stands still
	lookPause   = 250 * time.Millisecond
)

var scrollTo = Tool{
	Name: "scroll_to",
	Description: "Scroll until an element is on the screen, by its text, description or id. direction is where to look: down is " +
		"further down. element may name the list. Fails at the end of the list.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + wantedSchema + `,
		"direction": {"type": "string", "enum": ["down", "up", "right", "left"]},` + elementSchema + `},
		"required": ["direction"], "additionalProperties": false}`),
	Annotations: Annotations{Idempotent: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			target
			wanted
			Direction string `json:"direction"`
		}](args)
		if err != nil {
			return err
		}
		if call.wanted == (wanted{}) {
			return badArgument(out.Tool, "$", "must have text, description or id")
		}
		list, err := call.find(out.Tool, env.Scene)
		if err != nil {
			return err
		}
		if list != nil && !list.Scrollable {
			return badArgument(out.Tool, "$.element", "is no element that scrolls; leave it out or name one that says scrollable")
		}
		s := search{env: env, out: out, wanted: call.wanted, direction: call.Direction, list: list}
		return s.run(ctx)
	},
}

// wanted says which element is looked for; all that is set has to fit.
type wanted struct {
	Text        string `json:"text"`
	Description string `json:"description"`
	ID          string `json:"id"`
}

const wantedSchema = `
	"text": {"type": "string", "minLength": 1, "maxLength": 200, "description": "a part of it is enough"},
	"description": {"type": "string", "minLength": 1, "maxLength": 200},
	"id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "with or without its package"}`

func (w wanted) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"text", w.Text}, {"description", w.Description}, {"id", w.ID}} {
		if p.value != "" {
			parts = append(parts, fmt.Sprintf("%s %q", p.name, p.value))
		}
	}
	return strings.Join(parts, " and ")
}

// fits tells how well an element fits: 0 not at all, 1 in part, 2 in whole.
func (w wanted) fits(e *perception.Element) int {
	how := 2
	for _, p := range []struct{ want, have string }{{w.Text, e.Text}, {w.Description, e.Description}} {
		want, have := fold(p.want), fold(p.have)
		switch {
		case p.want == "" || want == have:
		case want == "" || !strings.Contains(have, want):
			return 0
		default:
			how = 1
		}
	}
	if w.ID != "" && e.ID != w.ID && !strings.HasSuffix(e.ID, ":id/"+w.ID) {
		return 0
	}
	return how
}

// in returns the visible element of the scene that fits best, the first of equals;
// nil if none does.
func (w wanted) in(s *perception.Scene) *perception.Element {
	best, how := -1, 0
	for i := range s.Elements {
		e := &s.Elements[i]
		if f := w.fits(e); f > how && reachable(s, e) {
			best, how = i, f
		}
	}
	if best < 0 {
		return nil
	}
	return new(s.Elements[best])
}

// fold makes texts comparable: letter case and runs of white space do not count.
func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// search is one execution of scroll_to.
type search struct {
	env       Env
	out       *Outcome
	wanted    wanted
	direction string
	list      *perception.Element // nil: what scrolls on the screen, or the screen
}

// run swipes and looks in turns.
func (s *search) run(ctx context.Context) error {
	scene, begun := s.env.Scene, time.Now()
	if s.out.Target = s.wanted.in(scene); s.out.Target != nil {
		s.out.Scene = scene
		return nil
	}
	if s.env.Look == nil {
		return unsupported("scroll_to without looks of its own")
	}
	for n := 0; ; n++ {
		if n == maxScrolls || time.Since(begun) >= scrollLimit {
			s.out.Settle = false
			return s.missing(fmt.Sprintf(" within %d swipes, where the list goes on,", n))
		}
		r, err := s.region(scene)
		if err != nil {
			return err
		}
		before := content(scene, r)
		from, to := stroke(r, opposite(s.direction))
		if err := s.out.swipe(ctx, s.env, from, to, scrollTime); err != nil {
			return err
		}
		moved := func(now *perception.Scene) bool {
			return s.wanted.in(now) != nil || content(now, r) != before
		}
		changed, err := s.out.insist(ctx, s.env, scrollReact, lookPause, moved)
		if err != nil {
			return err
		}
		scene = s.out.Scene
		switch {
		case s.wanted.in(scene) != nil:
			return s.found(ctx)
		case !changed:
			s.out.Settle = false
			if n == 0 {
				return s.missing(", where nothing scrolls that way,")
			}
			return s.missing(" up to the end of the list")
		}
	}
}

// found waits until the element stands still.
func (s *search) found(ctx context.Context) error {
	last := s.out.Scene
	_, err := s.out.watch(ctx, s.env, scrollRest, lookPause, func(now *perception.Scene) bool {
		rests := now.Hash == last.Hash
		last = now
		return rests
	})
	if err != nil {
		return err
	}
	s.out.Settle = false
	if s.out.Target = s.wanted.in(last); s.out.Target == nil {
		return s.missing(", after it had come into sight,")
	}
	return nil
}

func (s *search) missing(how string) error {
	return wire.Refuse(wire.ElementMissing, map[string]any{"what": s.wanted.String() + how}).With(s.env.place())
}

// region returns where to swipe: in the list that was named, else in the largest
// that scrolls, else on the screen.
func (s *search) region(scene *perception.Scene) (image.Rectangle, error) {
	var list *perception.Element
	if s.list != nil {
		list = again(scene, s.list)
	} else {
		for i := range scene.Elements {
			e := &scene.Elements[i]
			if e.Scrollable && !e.Editable && (list == nil || area(e) > area(list)) {
				list = e
			}
		}
	}
	r := display(scene)
	switch {
	case list != nil:
		r = list.Bounds.Intersect(r)
	case s.list != nil:
		return r, wire.Refuse(wire.ElementMissing, map[string]any{"what": "the list that was to be scrolled"}).With(s.env.place())
	}
	if r = free(scene, r); r.Empty() {
		return r, sizeUnknown(s.env)
	}
	return r, nil
}

func area(e *perception.Element) int { return e.Bounds.Dx() * e.Bounds.Dy() }

// again finds an element of an older scene that has not moved, or has not
// changed; nil if there is none.
func again(scene *perception.Scene, was *perception.Element) *perception.Element {
	if e, ok := scene.ByKey(was.Key); ok {
		return &e
	}
	i := slices.IndexFunc(scene.Elements, func(e perception.Element) bool {
		return e.ID == was.ID && e.Class == was.Class && e.Bounds == was.Bounds
	})
	if i < 0 {
		return nil
	}
	return &scene.Elements[i]
}

// content is what a scene shows within r, as one string to compare.
func content(scene *perception.Scene, r image.Rectangle) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s %v\n", scene.Package, scene.Activity, scene.Keyboard)
	for i := range scene.Elements {
		e := &scene.Elements[i]
		if e.Bounds.Overlaps(r) {
			fmt.Fprintf(&b, "%q %q %q %v %v\n", e.Text, e.Description, e.ID, e.Bounds, e.Checked)
		}
	}
	if scene.NoTree != "" && scene.Picture != nil {
		b.Write(scene.Picture.Thumb[:])
	}
	return b.String()
}

func opposite(direction string) string {
	return map[string]string{"up": "down", "down": "up", "left": "right", "right": "left"}[direction]
}
