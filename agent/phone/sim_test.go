package phone_test

import (
	"context"
	"fmt"
	"image"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/phonetest"
	"phonerack/usb/phonesim/screen"
)

// size is the simulated displays'.
var size = image.Pt(phonetest.Width, phonetest.Height)

const shop = "com.phonerack.shop"

// stage is a simulated phone, connected through the real host protocol.
type stage struct {
	conn   *adb.Conn
	engine *screen.Engine
	device *android.Device
	trips  *counter
}

// counter counts the services that the host opens.
type counter struct {
	*adb.Conn
	mu sync.Mutex // guards n
	n  int
}

func (c *counter) Shell(ctx context.Context, cmd string) (adb.Result, error) {
	c.add()
	return c.Conn.Shell(ctx, cmd)
}

func (c *counter) Exec(ctx context.Context, cmd string) (*adb.Stream, error) {
	c.add()
	return c.Conn.Exec(ctx, cmd)
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// take returns the count and begins anew.
func (c *counter) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}

// simulated runs test with a simulated phone, in a time of its own.
func simulated(t *testing.T, version int, change func(*android.Config), test func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := phonetest.Start(t, phonetest.Config{Android: version, Change: change})
		conn, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		test(t, &stage{conn, sim.Engine, sim.Device, &counter{Conn: conn}})
	})
}

// attach attaches the phone and forgets what that took. Unless o tells how to
// take a screenshot, the ways are not timed.
func (s *stage) attach(t *testing.T, o phone.Options) *phone.Phone {
	t.Helper()
	if o.Strategies.Screenshot == nil {
		o.Strategies.Screenshot = []string{"raw"}
	}
	p, err := phone.Attach(t.Context(), s.trips, o)
	if err != nil {
		t.Fatal(err)
	}
	s.trips.take()
	return p
}

type live struct{}

func (live) Check() error { return nil }

var sdks = map[int]int{7: 24, 8: 26, 9: 28, 10: 29, 11: 30, 12: 31, 14: 34, 15: 35}

// TestSimulatedPhones attaches to a phone of each version, finds a field and
// types into it.
func TestSimulatedPhones(t *testing.T) {
	for version, sdk := range sdks {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p, err := phone.Attach(t.Context(), s.trips, phone.Options{})
				if err != nil {
					t.Fatal(err)
				}
				info := p.Info()
				if release, _, _ := strings.Cut(info.Release, "."); release != strconv.Itoa(version) || info.SDK < sdk || info.SDK > sdk+1 ||
					info.Serial != "SIM7" || info.Display.Width != size.X || info.Display.Height != size.Y || info.Screenshot == "" {
					t.Errorf("info %+v", info)
				}
				if packages, err := p.Packages(t.Context()); err != nil || !slices.Contains(packages, shop) {
					t.Errorf("packages %q, %v", packages, err)
				}
				visit(t, s, p)
			})
		})
	}
}

func visit(t *testing.T, s *stage, p *phone.Phone) {
	controls := p.Under(live{})
	if err := controls.Launch(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	observer := perception.NewObserver(p, perception.Options{})
	scene := observe(t, observer, true)
	if scene.Package != shop || scene.Picture == nil || scene.Picture.Source != size || scene.Keyboard {
		t.Fatalf("scene %s", scene.Prompt())
	}
	field := fieldOf(t, scene)
	at := field.Bounds.Min.Add(field.Bounds.Max).Div(2)
	if err := controls.Tap(t.Context(), at.X, at.Y); err != nil {
		t.Fatal(err)
	}
	scene = observe(t, observer, false)
	if field = fieldOf(t, scene); !field.Focused || !scene.Keyboard {
		t.Fatalf("after the tap: %s", scene.Prompt())
	}
	const text = `it's 5 "%s" $HOME; \ and & more`
	if err := controls.InputText(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	scene = observe(t, observer, false)
	if field = fieldOf(t, scene); field.Text != text {
		t.Errorf("typed %q, want %q", field.Text, text)
	}
	if err := controls.ClearText(t.Context(), len(text)); err != nil {
		t.Fatal(err)
	}
	scene = observe(t, observer, false)
	if field = fieldOf(t, scene); field.Text != "" && field.Text == text {
		t.Errorf("cleared, but %q", field.Text)
	}
	if err := controls.Key(t.Context(), "back"); err != nil {
		t.Fatal(err)
	}
	if k, err := p.Keyboard(t.Context()); err != nil || k.Shown {
		t.Errorf("keyboard %+v, %v", k, err)
	}
	s.engine.SetRotation(1)
	if d, err := p.Display(t.Context()); err != nil || d.Rotation != 1 || d.Width != size.Y || d.Height != size.X {
		t.Errorf("turned: %+v, %v", d, err)
	}
	if err := controls.Stop(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	if pkg, _ := s.engine.Focus(); pkg == shop {
		t.Error("the app was not stopped")
	}
}

func observe(t *testing.T, o *perception.Observer, withImage bool) *perception.Scene {
	t.Helper()
	s, err := o.Observe(t.Context(), perception.Want{Image: withImage})
	if err != nil {
		t.Fatal(err)
	}
	if s.Missing != nil {
		t.Fatalf("missing %q in %s", s.Missing, s.Prompt())
	}
	return s
}

func fieldOf(t *testing.T, s *perception.Scene) perception.Element {
	t.Helper()
	i := slices.IndexFunc(s.Elements, func(e perception.Element) bool { return e.Role == perception.RoleEdit })
	if i < 0 {
		t.Fatalf("no field in %s", s.Prompt())
	}
	return s.Elements[i]
}

// field puts the cursor into the shop's field for words to search.
func (s *stage) field(t *testing.T, p *phone.Phone) {
	t.Helper()
	if err := p.Under(live{}).Launch(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	field := fieldOf(t, observe(t, perception.NewObserver(p, perception.Options{}), false))
	at := field.Bounds.Min.Add(field.Bounds.Max).Div(2)
	if err := p.Under(live{}).Tap(t.Context(), at.X, at.Y); err != nil {
		t.Fatal(err)
	}
}

// text reads the field back.
func (s *stage) text(t *testing.T, p *phone.Phone) string {
	t.Helper()
	return fieldOf(t, observe(t, perception.NewObserver(p, perception.Options{}), false)).Text
}

func sh(t *testing.T, s *stage, cmd string) string {
	t.Helper()
	r, err := s.conn.Shell(t.Context(), cmd)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%s: %s%s%v", cmd, r.Stdout, r.Stderr, err)
	}
	return strings.TrimSpace(string(r.Stdout))
}
