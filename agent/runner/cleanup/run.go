package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// Phone is what is read; *phone.Phone implements it.
type Phone interface {
	Installed(ctx context.Context, thirdParty bool) ([]phone.Package, error)
	State(ctx context.Context) phone.State
}

// Controls are the writes; *phone.Controls implements it.
type Controls interface {
	Key(ctx context.Context, name string) error
	Stop(ctx context.Context, pkg string) error
	Uninstall(ctx context.Context, pkg string) error
	ResetRotation(ctx context.Context) error
	ResetKeyboard(ctx context.Context) error
	RestoreAnimations(ctx context.Context) error
}

// Report says what a clean-up has done.
type Report struct {
	Done   []Act     `json:"done"`
	Failed []Failure `json:"failed,omitempty"`
	Left   []string  `json:"left,omitempty"` // apps beyond the baseline that are still there
}

// Failure is an act that did not succeed.
type Failure struct {
	Act
	Reason string `json:"reason"`
}

// ErrNotClean is wrapped by errors about a phone that is not in order although
// all was tried.
var ErrNotClean = errors.New("clean up: the phone is not in order")

// homeTime is given to the home screen to come to the front.
const homeTime = 700 * time.Millisecond

// Run puts the phone in order. It goes on after an act that failed, unless the
// lease is gone or ctx ends. Its error says that the phone is not in order: it
// stays dirty, and Run may be called again.
func Run(ctx context.Context, p Phone, c Controls, known Known) (Report, error) {
	var r Report
	now := Now{Front: p.State(ctx).Focus.Package}
	if err := r.do(ctx, c, Act{Kind: Home}); err != nil {
		return r, err
	}
	if sleep(ctx, homeTime) != nil {
		return r, fmt.Errorf("clean up: %w", ctx.Err())
	}
	if state := p.State(ctx); state.FocusErr == nil {
		now.Home = state.Focus.Package
	}
	var listErr error
	if known.Baseline != nil {
		now.Packages, listErr = list(ctx, p)
	}
	acts, surplus := Plan(known, now)
	for _, a := range acts[1:] { // home is done
		if err := r.do(ctx, c, a); err != nil {
			return r, err
		}
	}
	r.Left = surplus
	if listErr == nil && surplus == nil && known.Baseline != nil {
		r.Left, listErr = left(ctx, p, known, now)
	}
	return r, r.verdict(listErr)
}

// do does one act and notes what came of it. Its error ends the clean-up.
func (r *Report) do(ctx context.Context, c Controls, a Act) error {
	err := act(ctx, c, a)
	if err == nil {
		r.Done = append(r.Done, a)
		return nil
	}
	r.Failed = append(r.Failed, Failure{a, err.Error()})
	if ctx.Err() != nil || over(err) {
		return fmt.Errorf("clean up: %s %s: %w", a.Kind, a.Package, err)
	}
	return nil
}

func act(ctx context.Context, c Controls, a Act) error {
	switch a.Kind {
	case Home:
		return c.Key(ctx, "home")
	case Stop:
		return c.Stop(ctx, a.Package)
	case Uninstall:
		return c.Uninstall(ctx, a.Package)
	case Rotation:
		return c.ResetRotation(ctx)
	case Keyboard:
		return c.ResetKeyboard(ctx)
	case Animations:
		return c.RestoreAnimations(ctx)
	}
	return fmt.Errorf("no act %q", a.Kind)
}

// over tells whether an error leaves nothing to try: the lease or the phone is
// gone.
func over(err error) bool {
	for _, code := range []wire.Code{
		wire.NotLeased, wire.AttemptOver, wire.SlotBusy, wire.ShuttingDown, wire.PhoneLost, wire.PhoneOffline, wire.SlotEmpty,
	} {
		if wire.Is(err, code) {
			return true
		}
	}
	return false
}

func list(ctx context.Context, p Phone) ([]string, error) {
	installed, err := p.Installed(ctx, true)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(installed))
	for i, pkg := range installed {
		names[i] = pkg.Name
	}
	return names, nil
}

// left asks the phone again what is there beyond the baseline: an uninstallation
// may say that it succeeded and leave the app.
func left(ctx context.Context, p Phone, known Known, now Now) ([]string, error) {
	var err error
	if now.Packages, err = list(ctx, p); err != nil {
		return nil, err
	}
	acts, surplus := Plan(known, now)
	for _, a := range acts {
		if a.Kind == Uninstall {
			surplus = append(surplus, a.Package)
		}
	}
	return surplus, nil
}

// verdict says why the phone is not in order.
func (r *Report) verdict(listErr error) error {
	var problems []string
	if listErr != nil {
		problems = append(problems, "its apps could not be listed: "+listErr.Error())
	}
	for _, f := range r.Failed {
		problems = append(problems, strings.TrimSpace(string(f.Kind)+" "+f.Package)+": "+f.Reason)
	}
	if len(r.Left) > 0 {
		problems = append(problems, fmt.Sprintf("%d apps beyond the baseline are left, %s first", len(r.Left), r.Left[0]))
	}
	if problems == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotClean, strings.Join(problems, "; "))
}

// Guard is a fence that marks the phone dirty: mark is called before the first
// write that the fence lets through, and that write is refused if mark fails.
// After it has succeeded it is not called again.
func Guard(fence phone.Fence, mark func() error) phone.Fence {
	return &guard{fence: fence, mark: mark}
}

type guard struct {
	fence phone.Fence

	mu   sync.Mutex   // guards mark
	mark func() error // nil once it has succeeded
}

// Check implements phone.Fence.
func (g *guard) Check() error {
	if err := g.fence.Check(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark == nil {
		return nil
	}
	if err := g.mark(); err != nil {
		return err
	}
	g.mark = nil
	return g.fence.Check() // marking has taken its time on a disk
}

// sleep blocks for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
