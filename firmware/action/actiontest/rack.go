// Package actiontest holds a rack without phones for tests of what stands on package action.
package actiontest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/firmware/action"
	"phonerack/firmware/remembered"
	"phonerack/sync/wire"
)

// Rack has one ready phone in slot 1 and an empty slot 2. It implements action.Rack and action.Phone. A test may set
// Block: acts then wait until it is closed or their context ends.
type Rack struct {
	Block chan struct{}
	Book  action.Skills // nil: the rack has no skills

	mu    sync.Mutex
	log   []string
	files map[string][]byte
	tasks []action.TaskStatus
}

// New returns a rack that remembers nothing yet.
func New() *Rack { return &Rack{files: map[string][]byte{}} }

// Log is what was done, one act a line.
func (r *Rack) Log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func (r *Rack) did(ctx context.Context, format string, args ...any) error {
	if r.Block != nil {
		select {
		case <-r.Block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
	return nil
}

// Phones implements action.Rack.
func (r *Rack) Phones() []action.PhoneState {
	return []action.PhoneState{
		{Slot: 1, Port: "1-1.1", State: action.Ready, Serial: "R5CT", Model: "Pixel 7", Android: "14"},
		{Slot: 2, Port: "1-1.2", State: action.Empty},
	}
}

// Ping implements action.Rack.
func (r *Rack) Ping() action.Pong { return action.Pong{Boot: "4-522d5a50", Slots: 2} }

// Skills implements action.Rack.
func (r *Rack) Skills() (action.Skills, error) {
	if r.Book == nil {
		return nil, wire.Refuse(wire.SkillsDisabled, nil)
	}
	return r.Book, nil
}

// Phone implements action.Rack.
func (r *Rack) Phone(slot int) (action.Phone, error) {
	switch slot {
	case 1:
		return r, nil
	case 2:
		return nil, wire.Refuse(wire.SlotEmpty, map[string]any{"slot": slot})
	}
	return nil, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": slot})
}

// Observe implements action.Phone.
func (r *Rack) Observe(_ context.Context, want action.Want) (action.Observation, error) {
	o := action.Observation{Generation: 7, Package: "com.example.shop", Width: 1080, Height: 2400, Screen: "[0] button \"Add\"\n"}
	if want.Image {
		o.Image = []byte("jpeg")
	}
	return o, nil
}

// Element implements action.Phone.
func (r *Rack) Element(_ context.Context, generation uint64, index int) (x, y int, err error) {
	if generation != 7 {
		return 0, 0, wire.Refuse(wire.StaleElement, map[string]any{"element": index, "generation": generation, "current": 7})
	}
	return 100 + index, 200, nil
}

// Text implements action.Phone.
func (r *Rack) Text(_ context.Context, text string) (x, y int, err error) {
	return len(text), 300, nil
}

// Under implements action.Phone.
func (r *Rack) Under(fence action.Fence) action.Controls { return controls{r, fence} }

// Tool implements action.Phone: what is called is in the log.
func (r *Rack) Tool(ctx context.Context, fence action.Fence, actor string, d planner.Decision) (action.ToolOutcome, error) {
	if fence == nil {
		return action.ToolOutcome{Result: actor + " looks"}, r.did(ctx, "%s %s", d.Tool, d.Arguments)
	}
	return action.ToolOutcome{Wrote: true}, controls{r, fence}.write(ctx, "%s %s", d.Tool, d.Arguments)
}

// SpeakMCP implements action.Rack: it says the actor's name, and then what it hears.
func (r *Rack) SpeakMCP(_ context.Context, actor action.Actor, in io.Reader, out io.Writer) error {
	if _, err := io.WriteString(out, actor.Name+"\n"); err != nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// Info implements action.Phone.
func (r *Rack) Info(context.Context) (action.PhoneInfo, error) {
	return action.PhoneInfo{
		Slot: 1, Serial: "R5CT", Model: "Pixel 7", Android: "14", Battery: &phone.Battery{Level: 80, Temperature: 301, Status: "charging"},
		Missing: map[string]string{"thermal": "not supported"}, Remembered: &remembered.Phone{Serial: "R5CT", Slot: 1},
	}, nil
}

// HelperStatus implements action.Phone.
func (r *Rack) HelperStatus(context.Context) (action.HelperStatus, error) {
	return action.HelperStatus{Supported: true, Apps: []action.HelperApp{{Package: "io.appium.settings"}}}, nil
}

// InstallHelpers implements action.Phone.
func (r *Rack) InstallHelpers(ctx context.Context, fence action.Fence) error {
	return controls{r, fence}.write(ctx, "install helpers")
}

// RemoveHelpers implements action.Phone.
func (r *Rack) RemoveHelpers(ctx context.Context, fence action.Fence) error {
	return controls{r, fence}.write(ctx, "remove helpers")
}

// Shell implements action.Phone with a few commands of its own: "cat" copies, "fail" exits with 3, "wait" ends with ctx.
func (r *Rack) Shell(ctx context.Context, cmd string, pipes action.Pipes) (int, error) {
	if err := r.did(ctx, "shell %s", cmd); err != nil {
		return 0, err
	}
	switch cmd {
	case "cat":
		_, err := io.Copy(pipes.Out, pipes.In)
		return 0, err
	case "fail":
		fmt.Fprintln(pipes.Out, "out")
		fmt.Fprintln(pipes.Err, "err")
		return 3, nil
	case "wait":
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return 127, nil
}

// Push implements action.Phone.
func (r *Rack) Push(ctx context.Context, in io.Reader, path string, mode fs.FileMode, _ time.Time) error {
	content, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if err := r.did(ctx, "push %s %o", path, mode); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path] = content
	return nil
}

// Pull implements action.Phone.
func (r *Rack) Pull(_ context.Context, path string, w io.Writer) error {
	r.mu.Lock()
	content, ok := r.files[path]
	r.mu.Unlock()
	if !ok {
		return wire.Refuse(wire.FileMissing, map[string]any{"path": path})
	}
	_, err := io.Copy(w, bytes.NewReader(content))
	return err
}

// Link implements action.Rack: a rack without a cloud.
func (r *Rack) Link() action.LinkStatus { return action.LinkStatus{} }

// RetryLink implements action.Rack.
func (r *Rack) RetryLink() {}

// StartTask implements action.Rack: the task succeeds at once.
func (r *Rack) StartTask(_ context.Context, spec action.TaskSpec, actor string) (action.TaskStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := action.TaskStatus{
		ID: fmt.Sprintf("t%d", len(r.tasks)+1), Attempt: 1, Slot: spec.Slot, Goal: spec.Goal, State: action.Succeeded,
		Message: "done", Steps: spec.Steps, StartedBy: actor,
	}
	r.tasks = append(r.tasks, status)
	return status, nil
}

// Tasks implements action.Rack.
func (r *Rack) Tasks(limit int) ([]action.TaskStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[:min(limit, len(r.tasks))], nil
}

// Task implements action.Rack.
func (r *Rack) Task(id string) (action.TaskStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return action.TaskStatus{}, wire.Refuse(wire.TaskUnknown, map[string]any{"task": id})
}

// CancelTask implements action.Rack.
func (r *Rack) CancelTask(id, _ string) (action.TaskStatus, error) { return r.Task(id) }

// AnswerTask implements action.Rack: no task waits.
func (r *Rack) AnswerTask(id, _, _ string) (action.TaskStatus, error) {
	if _, err := r.Task(id); err != nil {
		return action.TaskStatus{}, err
	}
	return action.TaskStatus{}, wire.Refuse(wire.TaskNotWaiting, map[string]any{"task": id})
}

// PutInput implements action.Rack; it keeps the file as "input".
func (r *Rack) PutInput(ctx context.Context, in io.Reader) (action.Input, error) {
	if err := r.Push(ctx, in, "input", 0o600, time.Time{}); err != nil {
		return action.Input{}, err
	}
	return action.Input{SHA256: strings.Repeat("0", 64), Bytes: int64(len(r.files["input"]))}, nil
}

// WatchTask implements action.Rack with two steps.
func (r *Rack) WatchTask(_ context.Context, id string, step func(action.TaskEvent) error) error {
	status, err := r.Task(id)
	if err != nil {
		return err
	}
	for _, s := range []string{`{"step":1}`, `{"step":2}`} {
		if err := step(action.TaskEvent{Step: []byte(s)}); err != nil {
			return err
		}
	}
	return step(action.TaskEvent{Status: &status})
}

// TaskFiles implements action.Rack.
func (r *Rack) TaskFiles(_ context.Context, id string, w io.Writer) error {
	if _, err := r.Task(id); err != nil {
		return err
	}
	_, err := io.WriteString(w, "tar")
	return err
}

type controls struct {
	rack  *Rack
	fence action.Fence
}

func (c controls) write(ctx context.Context, format string, args ...any) error {
	if err := c.fence.Check(); err != nil {
		return err
	}
	return c.rack.did(ctx, format, args...)
}

func (c controls) Tap(ctx context.Context, x, y int) error { return c.write(ctx, "tap %d %d", x, y) }

func (c controls) LongPress(ctx context.Context, x, y int, d time.Duration) error {
	return c.write(ctx, "long press %d %d %s", x, y, d)
}

func (c controls) Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return c.write(ctx, "swipe %d %d %d %d %s", x1, y1, x2, y2, d)
}

func (c controls) Type(ctx context.Context, text string) (string, error) {
	return "verified", c.write(ctx, "type %s", text)
}

func (c controls) Key(ctx context.Context, name string) error { return c.write(ctx, "key %s", name) }

func (c controls) Launch(ctx context.Context, pkg string) error {
	return c.write(ctx, "launch %s", pkg)
}
