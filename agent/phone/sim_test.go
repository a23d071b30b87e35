package phone_test

import (
	"context"
	"fmt"
	"image"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// fastClock is a clock that jumps when somebody waits.
type fastClock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *fastClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fastClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

// size is the simulated displays': small, to be quick.
var size = image.Pt(360, 800)

// simulated connects to a simulated phone through the real host protocol.
func simulated(t *testing.T, version int) (*adb.Conn, *screen.Engine) {
	t.Helper()
	clock := &fastClock{now: time.Date(2026, 1, 2, 9, 41, 0, 0, time.UTC)}
	engine, err := screen.New(screen.Config{Width: size.X, Height: size.Y, Density: 140, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	device, err := android.New(android.Config{Version: version, Serial: "SIM7", Screen: engine, Clock: clock.Now, Sleep: clock.Sleep})
	if err != nil {
		t.Fatal(err)
	}
	sim, err := phonesim.New(phonesim.Config{Serial: "SIM7", Android: version, System: device})
	if err != nil {
		t.Fatal(err)
	}
	host, there := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = sim.ServeStream(ctx, there) })
	conn, err := adb.Connect(t.Context(), adb.NewStreamLink(host), adb.Options{})
	t.Cleanup(func() {
		if conn != nil {
			conn.Close()
		}
		cancel()
		served.Wait()
		for _, v := range sim.Violations() {
			t.Errorf("violation: %v", v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn, engine
}

type live struct{}

func (live) Check() error { return nil }

// TestSimulatedPhones attaches to a phone of each version, finds a field and
// types into it.
func TestSimulatedPhones(t *testing.T) {
	const shop = "com.phonerack.shop"
	for version, sdk := range map[int]int{7: 24, 9: 28, 11: 30, 14: 34, 15: 35} {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			conn, engine := simulated(t, version)
			p, err := phone.Attach(t.Context(), conn, phone.Options{})
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
			at := field.Center()
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
			if err := controls.Key(t.Context(), "back"); err != nil {
				t.Fatal(err)
			}
			if k, err := p.Keyboard(t.Context()); err != nil || k.Shown {
				t.Errorf("keyboard %+v, %v", k, err)
			}
			engine.SetRotation(1)
			if d, err := p.Display(t.Context()); err != nil || d.Rotation != 1 || d.Width != size.Y || d.Height != size.X {
				t.Errorf("turned: %+v, %v", d, err)
			}
			if err := controls.Stop(t.Context(), shop); err != nil {
				t.Fatal(err)
			}
			if pkg, _ := engine.Focus(); pkg == shop {
				t.Error("the app was not stopped")
			}
		})
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
