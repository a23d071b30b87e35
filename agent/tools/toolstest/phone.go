package toolstest

import (
	"context"
	"fmt"
	"image"
	"io"
	"slices"
	"sync"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// Phone implements tools.Controls and tools.Reads. Its fields are set before it
// is used; they are called without its lock.
type Phone struct {
	Refuse func(act string) error           // fails an act before it is done; nil does all
	On     func(act string)                 // reacts to an act that is done
	Looks  func(n int) error                // fails the nth look, from 1
	Typing func(before, text string) string // what a field holds after typing; appends if nil
	Prove  func() bool                      // answers Doubt; false if nil

	Files     map[string]string // of the phone, by path
	Installed []phone.App

	mu         sync.Mutex // guards what follows
	scenes     []*perception.Scene
	at         int
	generation uint64
	looks      int
	acts       []string
	clipboard  string
	distrusted []phone.Act
}

var (
	_ tools.Controls = (*Phone)(nil)
	_ tools.Reads    = (*Phone)(nil)
)

// New returns a phone that shows the first of the scenes. It owns them. Indices
// are filled in, and the display is 1080x2400 where a scene does not tell.
func New(scenes ...*perception.Scene) *Phone {
	for _, s := range scenes {
		if s.Width == 0 {
			s.Width, s.Height = 1080, 2400
		}
		for i := range s.Elements {
			s.Elements[i].Index = i
		}
	}
	return &Phone{scenes: scenes}
}

// Env is an environment for tools with this phone, which has been looked at.
func (p *Phone) Env() tools.Env {
	scene, err := p.Look(context.Background())
	if err != nil {
		scene = nil
	}
	return tools.Env{Controls: p, Phone: p, Scene: scene, Look: p.Look, Slot: 3, Serial: "SIM3"}
}

// Look observes the screen: a copy of the scene under the next generation.
func (p *Phone) Look(ctx context.Context) (*perception.Scene, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.looks++
	n := p.looks
	p.mu.Unlock()
	if p.Looks != nil {
		if err := p.Looks(n); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
	s := *p.scenes[p.at]
	s.Elements = slices.Clone(s.Elements)
	s.Generation = p.generation
	s.Hash = hash(&s)
	return &s, nil
}

// Change alters what is shown.
func (p *Phone) Change(change func(*perception.Scene)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.scenes[p.at])
}

// Show shows scene i.
func (p *Phone) Show(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = i
}

// Showing tells which scene is shown.
func (p *Phone) Showing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Acts returns what was done to the phone, in order.
func (p *Phone) Acts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.acts)
}

// Looked returns how many looks there were.
func (p *Phone) Looked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
}

// Clipboard returns what was put there.
func (p *Phone) Clipboard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clipboard
}

// do does one act: it may be refused, then it happens, then On sees it.
func (p *Phone) do(ctx context.Context, effect func(*perception.Scene), format string, args ...any) error {
	act := fmt.Sprintf(format, args...)
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Refuse != nil {
		if err := p.Refuse(act); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.acts = append(p.acts, act)
	if effect != nil {
		effect(p.scenes[p.at])
	}
	p.mu.Unlock()
	if p.On != nil {
		p.On(act)
	}
	return nil
}

// Tap implements tools.Controls. It puts the cursor into a field.
func (p *Phone) Tap(ctx context.Context, x, y int) error {
	return p.do(ctx, func(s *perception.Scene) { touch(s, image.Pt(x, y)) }, "tap %d,%d", x, y)
}

func touch(s *perception.Scene, at image.Point) {
	hit := -1
	for i, e := range s.Elements {
		if at.In(e.Bounds) && (e.Clickable || e.Editable) {
			hit = i
		}
	}
	if hit < 0 || !s.Elements[hit].Editable {
		return
	}
	for i := range s.Elements {
		s.Elements[i].Focused = i == hit
	}
	s.Keyboard = true
}

// DoubleTap implements tools.Controls.
func (p *Phone) DoubleTap(ctx context.Context, x, y int) error {
	return p.do(ctx, nil, "double tap %d,%d", x, y)
}

// LongPress implements tools.Controls.
func (p *Phone) LongPress(ctx context.Context, x, y int, d time.Duration) error {
	return p.do(ctx, nil, "long press %d,%d %s", x, y, d)
}

// Swipe implements tools.Controls.
func (p *Phone) Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return p.do(ctx, nil, "swipe %d,%d %d,%d %s", x1, y1, x2, y2, d)
}

// InputText implements tools.Controls. Without a cursor the text is lost, as on a
// phone.
func (p *Phone) InputText(ctx context.Context, text string) error {
	return p.do(ctx, func(s *perception.Scene) {
		e := cursor(s)
		switch {
		case e == nil:
		case p.Typing != nil:
			e.Text = p.Typing(e.Text, text)
		default:
			e.Text += text
		}
	}, "type %s", text)
}

// ClearText implements tools.Controls.
func (p *Phone) ClearText(ctx context.Context, length int) error {
	return p.do(ctx, func(s *perception.Scene) {
		if e := cursor(s); e != nil {
			e.Text = ""
		}
	}, "clear %d", length)
}

func cursor(s *perception.Scene) *perception.Element {
	for i := range s.Elements {
		if e := &s.Elements[i]; e.Editable && e.Focused {
			return e
		}
	}
	return nil
}

// Key implements tools.Controls. Back closes the keyboard.
func (p *Phone) Key(ctx context.Context, name string) error {
	return p.do(ctx, func(s *perception.Scene) {
		if name == "back" {
			s.Keyboard = false
		}
	}, "key %s", name)
}

// Launch implements tools.Controls.
func (p *Phone) Launch(ctx context.Context, pkg string) error {
	return p.do(ctx, nil, "launch %s", pkg)
}

// Stop implements tools.Controls.
func (p *Phone) Stop(ctx context.Context, pkg string) error { return p.do(ctx, nil, "stop %s", pkg) }

// OpenURL implements tools.Controls.
func (p *Phone) OpenURL(ctx context.Context, url, pkg string) error {
	if pkg != "" {
		return p.do(ctx, nil, "open %s in %s", url, pkg)
	}
	return p.do(ctx, nil, "open %s", url)
}

// Install implements tools.Controls. It reads the file to its end.
func (p *Phone) Install(ctx context.Context, apk io.Reader, size int64) error {
	return p.do(ctx, nil, "install %d bytes", func() int64 {
		n, err := io.Copy(io.Discard, io.LimitReader(apk, size+1))
		if err != nil {
			return -1
		}
		return n
	}())
}

// SetClipboard implements tools.Controls.
func (p *Phone) SetClipboard(ctx context.Context, text string) error {
	return p.do(ctx, func(*perception.Scene) { p.clipboard = text }, "clipboard %s", text)
}

// Distrust implements tools.Controls.
func (p *Phone) Distrust(act phone.Act) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.distrusted = append(p.distrusted, act)
	return true
}

// Doubt implements tools.Controls.
func (p *Phone) Doubt() bool { return p.Prove != nil && p.Prove() }

// Distrusted returns the acts that were not believed.
func (p *Phone) Distrusted() []phone.Act {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.distrusted)
}

// Apps implements tools.Reads.
func (p *Phone) Apps(ctx context.Context) ([]phone.App, error) { return p.Installed, ctx.Err() }

// Pull implements tools.Reads.
func (p *Phone) Pull(ctx context.Context, path string, w io.Writer, limit int64) error {
	content, ok := p.Files[path]
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok:
		return wire.Refuse(wire.FileMissing, map[string]any{"path": path})
	case int64(len(content)) > limit:
		return wire.Refuse(wire.FileTooLarge, map[string]any{"path": path, "limit": limit})
	}
	_, err := io.WriteString(w, content)
	return err
}
