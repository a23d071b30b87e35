package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ Phone    = (*phone.Phone)(nil)
	_ Controls = (*phone.Controls)(nil)
)

func words(acts []Act) string {
	var out []string
	for _, a := range acts {
		out = append(out, strings.TrimSpace(string(a.Kind)+" "+a.Package))
	}
	return strings.Join(out, ", ")
}

func TestPlan(t *testing.T) {
	const end = ", rotation, keyboard, animations"
	many := make([]string, maxUninstalled+1)
	for i := range many {
		many[i] = fmt.Sprintf("com.many.a%d", i)
	}
	for _, c := range []struct {
		name    string
		known   Known
		now     Now
		want    string
		surplus int
	}{
		{"nothing was done", Known{Used: []string{}}, Now{}, "home" + end, 0},
		{
			"apps of the task are stopped, home and system are not",
			Known{Used: []string{"com.home", "com.shop", "com.android.systemui", "android", "com.shop", "com.chat"}},
			Now{Home: "com.home", Front: "com.chat"},
			"home, stop com.shop, stop com.chat" + end, 0,
		},
		{"a home screen that the phone does not name", Known{Used: []string{"com.maker.launcher3", "a.b"}}, Now{}, "home, stop a.b" + end, 0},
		{"after a crash only the app in front is known", Known{}, Now{Front: "com.shop", Home: "com.home"}, "home, stop com.shop" + end, 0},
		{"after a crash at home", Known{}, Now{Front: "com.home", Home: "com.home"}, "home" + end, 0},
		{"no baseline: nothing is removed", Known{Used: []string{}}, Now{Packages: []string{"com.new"}}, "home" + end, 0},
		{
			"what was installed goes, what was there stays",
			Known{Baseline: []string{"com.shop", "com.android.settings"}, Used: []string{}},
			Now{Packages: []string{"com.shop", "com.new", "com.newer"}},
			"home, uninstall com.new, uninstall com.newer" + end, 0,
		},
		{
			"an empty baseline is one",
			Known{Baseline: []string{}, Used: []string{"com.new"}},
			Now{Packages: []string{"com.new"}},
			"home, stop com.new, uninstall com.new" + end, 0,
		},
		{
			"helpers of the rack stay",
			Known{Baseline: []string{}, Used: []string{"io.helper"}, Keep: []string{"io.helper"}},
			Now{Packages: []string{"io.helper"}},
			"home" + end, 0,
		},
		{"apps that could not be listed", Known{Baseline: []string{"a.b"}, Used: []string{}}, Now{}, "home" + end, 0},
		{
			"system parts that count as installed stay",
			Known{Baseline: []string{}, Used: []string{}},
			Now{Packages: []string{"com.google.android.gms"}},
			"home" + end, 0,
		},
		{
			"a home screen that is not named so",
			Known{Used: []string{"com.desk", "com.shop"}},
			Now{Home: "com.desk"},
			"home, stop com.shop" + end, 0,
		},
		{
			"as many as a task may install",
			Known{Baseline: []string{}, Used: []string{}},
			Now{Packages: many[1:]},
			"home, uninstall " + strings.Join(many[1:], ", uninstall ") + end, 0,
		},
		{"so many are no task's", Known{Baseline: []string{}, Used: []string{}}, Now{Packages: many}, "home" + end, len(many)},
	} {
		acts, surplus := Plan(c.known, c.now)
		if got := words(acts); got != c.want || len(surplus) != c.surplus {
			t.Errorf("%s:\n got %s, surplus %d\nwant %s, surplus %d", c.name, got, len(surplus), c.want, c.surplus)
		}
	}
}

// handset is a phone with apps; stubborn ones say that they are gone and stay.
type handset struct {
	apps     []string
	front    string
	stubborn string
	fail     map[string]error // by act, such as "stop a.b"
	listErr  error
	focusErr error
	did      []string

	home   string        // "com.home" if empty
	slow   time.Duration // until home is in front
	pushed time.Time     // the key home
}

func (h *handset) Installed(_ context.Context, thirdParty bool) ([]phone.Package, error) {
	if h.listErr != nil {
		return nil, h.listErr
	}
	var all []phone.Package
	for _, a := range h.apps {
		all = append(all, phone.Package{Name: a})
	}
	if !thirdParty {
		all = append(all, phone.Package{Name: "com.home", System: true})
	}
	return all, nil
}

func (h *handset) State(context.Context) phone.State {
	if !h.pushed.IsZero() && time.Since(h.pushed) >= h.slow {
		h.front = cmp.Or(h.home, "com.home")
	}
	return phone.State{Focus: phone.Focus{Package: h.front}, FocusErr: h.focusErr}
}

func (h *handset) do(format string, args ...any) error {
	act := fmt.Sprintf(format, args...)
	h.did = append(h.did, act)
	return h.fail[act]
}

func (h *handset) Key(_ context.Context, name string) error {
	err := h.do("%s", name)
	if err == nil {
		h.pushed = time.Now()
	}
	return err
}

func (h *handset) Stop(_ context.Context, pkg string) error { return h.do("stop %s", pkg) }

func (h *handset) Uninstall(_ context.Context, pkg string) error {
	if err := h.do("uninstall %s", pkg); err != nil {
		return err
	}
	if pkg != h.stubborn {
		h.apps = slices.DeleteFunc(h.apps, func(a string) bool { return a == pkg })
	}
	return nil
}

func (h *handset) ResetRotation(context.Context) error     { return h.do("rotation") }
func (h *handset) ResetKeyboard(context.Context) error     { return h.do("keyboard") }
func (h *handset) RestoreAnimations(context.Context) error { return h.do("animations") }

func TestRun(t *testing.T) {
	known := Known{Baseline: []string{"com.shop"}, Used: []string{"com.shop", "com.home"}}
	rejected := errors.New("the phone rejected it")
	for _, c := range []struct {
		name  string
		phone handset
		did   string
		err   string
		left  []string
	}{
		{
			"all goes well",
			handset{apps: []string{"com.shop", "com.new"}},
			"home, stop com.shop, uninstall com.new, rotation, keyboard, animations", "", nil,
		},
		{
			"an act fails, the others are done",
			handset{apps: []string{"com.shop", "com.new"}, fail: map[string]error{"stop com.shop": rejected}},
			"home, stop com.shop, uninstall com.new, rotation, keyboard, animations", "stop com.shop: the phone rejected it", nil,
		},
		{
			"an app stays although the phone says otherwise",
			handset{apps: []string{"com.new"}, stubborn: "com.new"},
			"home, stop com.shop, uninstall com.new, rotation, keyboard, animations", "1 apps beyond the baseline are left, com.new first",
			[]string{"com.new"},
		},
		{
			"apps cannot be listed",
			handset{listErr: errors.New("no package")},
			"home, stop com.shop, rotation, keyboard, animations", "could not be listed", nil,
		},
		{
			"the home screen takes its time",
			handset{front: "com.shop", apps: []string{"com.shop"}, home: "com.shop", slow: homeTime},
			"home, rotation, keyboard, animations", "", nil,
		},
		{
			"what is in front is not known",
			handset{front: "com.shop", apps: []string{"com.shop"}, focusErr: errors.New("no focus"), slow: time.Hour},
			"home, stop com.shop, rotation, keyboard, animations", "", nil,
		},
		{
			"the lease goes in between",
			handset{apps: []string{"com.new"}, fail: map[string]error{"uninstall com.new": wire.Refuse(wire.NotLeased, nil)}},
			"home, stop com.shop, uninstall com.new", "clean up: uninstall com.new", nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report, err := Run(t.Context(), &c.phone, &c.phone, known)
				if got := strings.Join(c.phone.did, ", "); got != c.did {
					t.Errorf("did %s\nwant %s", got, c.did)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				if !slices.Equal(report.Left, c.left) {
					t.Errorf("left %q", report.Left)
				}
				if err == nil && words(report.Done) != c.did {
					t.Errorf("reports %s", words(report.Done))
				}
			})
		})
	}
}

// cancelling is a handset whose caller gives up during an act.
type cancelling struct {
	handset
	during string
	cancel context.CancelFunc
}

func (c *cancelling) Key(ctx context.Context, name string) error {
	if c.during == name {
		c.cancel()
	}
	return c.handset.Key(ctx, name)
}

func (c *cancelling) Stop(ctx context.Context, pkg string) error {
	if c.during == "stop "+pkg {
		c.cancel()
		return ctx.Err()
	}
	return c.handset.Stop(ctx, pkg)
}

func TestRunEndsWithItsContext(t *testing.T) {
	for during, did := range map[string]string{
		"home":       "home",
		"stop a.one": "home",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := &cancelling{during: during, cancel: cancel}
			_, err := Run(ctx, h, h, Known{Used: []string{"a.one", "a.two"}})
			if !errors.Is(err, context.Canceled) || strings.Join(h.did, ", ") != did {
				t.Errorf("ended during %s: did %s, %v", during, strings.Join(h.did, ", "), err)
			}
		})
	}
}

// fence is open or not.
type fence struct{ err error }

func (f *fence) Check() error { return f.err }

func TestGuardMarksBeforeTheFirstWrite(t *testing.T) {
	marks, markErr := 0, errors.New("no room")
	closed := &fence{err: wire.Refuse(wire.NotLeased, nil)}
	g := Guard(closed, func() error { marks++; return markErr })
	if err := g.Check(); !wire.Is(err, wire.NotLeased) || marks != 0 {
		t.Errorf("a refused write marked the phone: %v, %d", err, marks)
	}
	closed.err = nil
	if err := g.Check(); !errors.Is(err, markErr) || marks != 1 {
		t.Errorf("a write passed without its mark: %v, %d", err, marks)
	}
	markErr = nil
	for range 3 {
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
	if marks != 2 {
		t.Errorf("marked %d times", marks)
	}
	closed.err = wire.Refuse(wire.AttemptOver, nil)
	if err := g.Check(); !wire.Is(err, wire.AttemptOver) {
		t.Error(err)
	}
}

func TestGuardAsksTheFenceAgainAfterMarking(t *testing.T) {
	lease := &fence{}
	g := Guard(lease, func() error {
		lease.err = wire.Refuse(wire.NotLeased, nil) // it ends while the mark goes to disk
		return nil
	})
	if err := g.Check(); !wire.Is(err, wire.NotLeased) {
		t.Errorf("a write under a lease that has ended: %v", err)
	}
}
