package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(agentsVariable); spec != "" {
		os.Exit(agents(spec))
	}
	goleak.VerifyTestMain(m)
}

var (
	_ Observer          = (*perception.Observer)(nil)
	_ perception.Source = (*phone.Phone)(nil)
)

// stage is a phone with a field, a button that counts, and a page. Its fields
// may be set and its hooks may do anything.
type stage struct {
	tools.Unsupported
	generation uint64
	app        string
	field      string
	focused    bool // the field has the cursor
	count      int
	did        []string
	looks      int
	lookErr    func(look int) error // fails an observation
	write      func(act string) error
	lose       int  // letters that typing loses
	busy       int  // looks at which the page still changes
	pictures   bool // scenes come with an image
	noTree     string
	parts      []perception.Part
	paint      func(img *image.RGBA) // on an image that is grey
	more       []perception.Element  // below the others
	shift      int                   // pixels by which the elements lie lower
	dialog     []perception.Element  // in the place of all others
	onTap      func(y int)           // in the place of what a tap does
}

func (s *stage) Observe(_ context.Context, want perception.Want) (*perception.Scene, error) {
	s.looks++
	s.generation++
	if s.lookErr != nil {
		if err := s.lookErr(s.looks); err != nil {
			return nil, err
		}
	}
	scene := &perception.Scene{Generation: s.generation, Package: s.app, Activity: ".Main", Width: 1080, Height: 2400, Keyboard: s.focused}
	add := func(e perception.Element) {
		e.Index, e.Enabled = len(scene.Elements), true
		if e.Bounds.Empty() {
			e.Bounds = boundsOfRow(e.Index).Add(image.Pt(0, s.shift))
		}
		e.Key = keyOf(e)
		scene.Elements = append(scene.Elements, e)
	}
	scene.NoTree, scene.Parts = s.noTree, s.parts
	if s.noTree == "" {
		s.elements(add)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %q %d %d %d", s.app, s.field, s.count, s.busy, len(scene.Elements))
	for _, e := range slices.Concat(s.more, s.dialog) {
		fmt.Fprintf(h, " %s %q", e.Role, e.Text)
	}
	scene.Hash = h.Sum64()
	if s.pictures && (want.Image || want.ImageIfThin && s.noTree != "") {
		img := image.NewRGBA(image.Rect(0, 0, 135, 300)) // the display is scaled
		for i := range img.Pix {
			img.Pix[i] = 0x80
		}
		if s.paint != nil {
			s.paint(img)
		}
		var err error
		if scene.Picture, err = frame.Encode(img, frame.Options{}); err != nil {
			return nil, err
		}
	}
	return scene, nil
}

// boundsOfRow is where an element stands that says nothing else.
func boundsOfRow(row int) image.Rectangle { return image.Rect(0, 200*row, 1080, 200*row+180) }

// keyOf is a content key: a field keeps its own whatever it holds.
func keyOf(e perception.Element) uint64 {
	if e.Editable {
		e.Text = ""
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %s %s", e.Role, e.ID, e.Text, e.Hint)
	return h.Sum64()
}

// elements adds what the stage shows.
func (s *stage) elements(add func(perception.Element)) {
	for _, e := range s.dialog {
		add(e)
	}
	if s.dialog != nil {
		return
	}
	add(perception.Element{Role: "edit", Text: s.field, Hint: "Search", ID: "a.shop:id/q", Editable: true, Clickable: true, Focused: s.focused})
	add(perception.Element{Role: "button", Text: "Add", ID: "a.shop:id/add", Clickable: true})
	add(perception.Element{Role: "text", Text: fmt.Sprintf("Basket: %d", s.count)})
	if s.busy > 0 {
		s.busy--
		add(perception.Element{Role: "text", Text: fmt.Sprintf("Loading %d", s.busy)})
	}
	for _, e := range s.more {
		add(e)
	}
}

func (s *stage) do(format string, args ...any) error {
	act := fmt.Sprintf(format, args...)
	if s.write != nil {
		if err := s.write(act); err != nil {
			return err
		}
	}
	s.did = append(s.did, act)
	return nil
}

func (s *stage) Tap(_ context.Context, _, y int) error {
	if err := s.do("tap %d", y/200); err != nil {
		return err
	}
	switch {
	case s.onTap != nil:
		s.onTap(y)
	case y/200 == 0:
		s.focused = true
	case y/200 == 1:
		s.count++
	}
	return nil
}

func (s *stage) InputText(_ context.Context, text string) error {
	if err := s.do("type %s", text); err != nil {
		return err
	}
	s.field += text[s.lose:]
	return nil
}

func (s *stage) Launch(_ context.Context, pkg string) error {
	if err := s.do("launch %s", pkg); err != nil {
		return err
	}
	s.app = pkg
	return nil
}

func (s *stage) Key(_ context.Context, name string) error { return s.do("key %s", name) }

func (s *stage) LongPress(context.Context, int, int, time.Duration) error { return s.do("press") }

func (s *stage) Swipe(context.Context, int, int, int, int, time.Duration) error { return s.do("swipe") }

// talk is a planner whose answers are written down: each is a line "tool args",
// in which $gen stands for the screen's generation, or an error.
type talk struct {
	answers  []any
	requests []planner.Request
	tokens   int // that it counts for each decision
}

func (p *talk) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	p.requests = append(p.requests, req)
	n := min(len(p.requests), len(p.answers)) - 1
	switch a := p.answers[n].(type) {
	case error:
		return planner.Decision{}, a
	case func(context.Context) error:
		return planner.Decision{}, a(ctx)
	case func(context.Context) (string, error):
		answer, err := a(ctx)
		if err != nil {
			return planner.Decision{}, err
		}
		return p.decision(req, answer), nil
	case string:
		return p.decision(req, a), nil
	}
	return planner.Decision{}, errors.New("the test says nothing")
}

func (p *talk) decision(req planner.Request, answer string) planner.Decision {
	_, screen, _ := strings.Cut(req.UserPrompt, "\nscreen ")
	gen, _, _ := strings.Cut(screen, ":")
	tool, args, _ := strings.Cut(strings.ReplaceAll(answer, "$gen", gen), " ")
	return planner.Decision{Tool: tool, Arguments: json.RawMessage(args), Tokens: p.tokens}
}

const (
	finishWell = `finish {"success":true,"message":"done"}`
	tapAdd     = `tap {"element":1,"generation":$gen}`
	typeTea    = `input_text {"text":"tea","element":0,"generation":$gen}`
)

func newRunner(s *stage, answers ...any) (*Runner, *talk) {
	p := &talk{answers: answers}
	return &Runner{Observer: s, Controls: s, Planner: p, Slot: 3, Phone: "Pixel R58N"}, p
}

var task = Task{ID: "t-1", Attempt: 1, Goal: "put tea in the basket", Params: map[string]string{"colour": "green"}}

func run(t *testing.T, r *Runner, task Task) Result {
	t.Helper()
	result, err := r.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func wantEnd(t *testing.T, got Result, outcome Outcome, code wire.Code) {
	t.Helper()
	var is wire.Code
	if got.Refusal != nil {
		is = got.Refusal.Code
	}
	if got.Outcome != outcome || is != code {
		t.Errorf("ended %s %s (%s), want %s %s", got.Outcome, is, got.Message, outcome, code)
	}
}

// store is what tools read of a phone beyond its screen.
type store struct{}

func (store) Apps(context.Context) ([]phone.App, error) {
	return []phone.App{{Package: "a.shop", Label: "Shop"}, {Package: "a.home"}}, nil
}

func (store) Pull(context.Context, string, io.Writer, int64) error { return phone.ErrRejected }
