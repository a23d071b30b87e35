package phone_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/screen"
)

// size is the simulated displays': small, to be quick.
var size = image.Pt(360, 800)

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
		config := android.Config{Version: version, Serial: "SIM7", Clock: time.Now, Sleep: sleep}
		engine, err := screen.New(screen.Config{Width: size.X, Height: size.Y, Density: 140, Clock: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		config.Screen = engine
		if change != nil {
			change(&config)
		}
		device, err := android.New(config)
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
		defer func() {
			if conn != nil {
				conn.Close()
			}
			cancel()
			served.Wait()
			for _, v := range sim.Violations() {
				t.Errorf("violation: %v", v)
			}
		}()
		if err != nil {
			t.Fatal(err)
		}
		test(t, &stage{conn, engine, device, &counter{Conn: conn}})
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach attaches the phone and forgets what that took.
func (s *stage) attach(t *testing.T, o phone.Options) *phone.Phone {
	t.Helper()
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
				p := s.attach(t, phone.Options{})
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
	at := fieldOf(t, observe(t, perception.NewObserver(p, perception.Options{}), false)).Center()
	if err := p.Under(live{}).Tap(t.Context(), at.X, at.Y); err != nil {
		t.Fatal(err)
	}
}

// text reads the field back.
func (s *stage) text(t *testing.T, p *phone.Phone) string {
	t.Helper()
	return fieldOf(t, observe(t, perception.NewObserver(p, perception.Options{}), false)).Text
}

// TestStateOfEachVersion: one round trip tells all parts, as the simulator
// really has them.
func TestStateOfEachVersion(t *testing.T) {
	for version := range sdks {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				s.field(t, p)
				time.Sleep(time.Second)
				s.trips.take()
				got := p.State(t.Context())
				if n := s.trips.take(); n != 1 {
					t.Errorf("%d round trips", n)
				}
				for _, err := range []error{got.FocusErr, got.DisplayErr, got.KeyboardErr, got.WindowsErr, got.LockErr} {
					if err != nil {
						t.Error(err)
					}
				}
				if got.Focus.Package != shop || got.Display.Bounds().Size() != size || !got.Lock.Awake || got.Lock.Locked {
					t.Errorf("%+v", got)
				}
				var keyboard image.Rectangle
				for _, w := range s.engine.Windows() {
					if w.Kind == screen.KeyboardWindow {
						keyboard = w.Touchable
					}
				}
				if !got.Keyboard.Shown || got.Keyboard.Area != keyboard || keyboard.Empty() {
					t.Errorf("keyboard %+v, it is at %v", got.Keyboard, keyboard)
				}
				var kinds []phone.WindowKind
				focused := ""
				for _, w := range got.Windows {
					kinds = append(kinds, w.Kind)
					if w.Focused {
						focused = w.Package
					}
				}
				if len(kinds) < 3 || !slices.Contains(kinds, phone.AppWindow) || !slices.Contains(kinds, phone.KeyboardWindow) || focused != shop {
					t.Errorf("windows %+v", got.Windows)
				}

				s.engine.SetScreenOn(false)
				if l, err := p.Lock(t.Context()); err != nil || l.Awake {
					t.Errorf("asleep: %+v, %v", l, err)
				}
				if got, err := p.Power(t.Context()); err != nil || got.Screen || got.Wakefulness == "Awake" {
					t.Errorf("asleep: %+v, %v", got, err)
				}
			})
		})
	}
}

func TestReport14_SecondDisplayAndNoFocus(t *testing.T) {
	for _, version := range []int{9, 12, 15} {
		simulated(t, version, func(c *android.Config) { c.Faults.ExtraFocus = true }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			if err := p.Under(live{}).Launch(t.Context(), shop); err != nil {
				t.Fatal(err)
			}
			if f, err := p.Focus(t.Context()); err != nil || f.Package != shop {
				t.Errorf("%+v, %v", f, err)
			}
			s.device.ChangeFaults(func(f *android.Faults) { f.NullFocus = true })
			start := time.Now()
			if f, err := p.Focus(t.Context()); f.Package != shop && !errors.Is(err, phone.ErrInTransition) || time.Since(start) < 3*time.Second {
				t.Errorf("%+v, %v after %s", f, err, time.Since(start))
			}
		})
	}
}

// TestReport15_OverriddenAndTurned: what is touched is what is drawn, also where
// wm has changed the size.
func TestReport15_OverriddenAndTurned(t *testing.T) {
	for _, version := range []int{7, 11, 14} {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			if err := s.engine.SetSize(300, 700); err != nil {
				t.Fatal(err)
			}
			s.engine.SetRotation(3)
			p := s.attach(t, phone.Options{})
			if d := p.Info().Display; d.Width != 700 || d.Height != 300 || d.Rotation != 3 {
				t.Errorf("display %+v", d)
			}
			if err := p.Under(live{}).Tap(t.Context(), 699, 299); err != nil {
				t.Error(err)
			}
			if err := p.Under(live{}).Tap(t.Context(), 299, 699); !errors.Is(err, phone.ErrOffScreen) {
				t.Errorf("outside: %v", err)
			}
		})
	}
}

// TestReport01_AnOldDumpIsNeverATree: the dumper exits with 0 and leaves the file
// of another screen.
func TestReport01_AnOldDumpIsNeverATree(t *testing.T) {
	for _, version := range []int{7, 11, 15} {
		for name, c := range map[string]struct {
			failure android.DumpFailure
			err     error
		}{
			"null root": {android.DumpNullRoot, phone.ErrNoRoot},
			"no idle":   {android.DumpNoIdle, phone.ErrNotIdle},
			"silent":    {android.DumpSilent, phone.ErrNoDump},
			"cut off":   {android.DumpCutOff, phone.ErrTruncated},
		} {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				if _, err := s.conn.Shell(t.Context(), "uiautomator dump; uiautomator dump /data/local/tmp/window_dump.xml"); err != nil {
					t.Fatal(err)
				}
				if err := p.Under(live{}).Launch(t.Context(), shop); err != nil {
					t.Fatal(err)
				}
				if tree, err := p.Tree(t.Context()); err != nil || !bytes.Contains(tree, []byte(shop)) {
					t.Fatalf("%s: %.80q, %v", name, tree, err)
				}
				s.device.ChangeFaults(func(f *android.Faults) { f.Dump = c.failure })
				if tree, err := p.Tree(t.Context()); tree != nil || !errors.Is(err, c.err) {
					t.Errorf("%s: %.80q, %v", name, tree, err)
				}
				if files, err := s.conn.Shell(t.Context(), "ls /data/local/tmp"); err != nil || strings.Contains(string(files.Stdout), "phonerack") {
					t.Errorf("%s left %q, %v", name, files.Stdout, err)
				}
			})
		}
	}
}

// TestReport02_ADumperThatFailsNowAndThen: in one dump of five it dies without a
// word.
func TestReport02_ADumperThatFailsNowAndThen(t *testing.T) {
	simulated(t, 11, func(c *android.Config) { c.Faults.Dump, c.Faults.DumpRate = android.DumpSilent, 0.21 }, func(t *testing.T, s *stage) {
		p := s.attach(t, phone.Options{})
		for i := range 40 {
			if tree, err := p.Tree(t.Context()); err != nil || !bytes.HasSuffix(tree, []byte("</hierarchy>")) {
				t.Fatalf("tree %d: %v", i, err)
			}
		}
		if n := s.trips.take(); n <= 40 {
			t.Errorf("%d dumps: none failed", n)
		}
	})
}

// TestReport03_AScreenThatNeverRests is dumped compressed, and at once so for a
// while; where that fails too, stopping the animations helps, and they come back.
func TestReport03_AScreenThatNeverRests(t *testing.T) {
	for _, version := range []int{7, 8, 14} {
		simulated(t, version, func(c *android.Config) { c.Faults.NeverIdle = true }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			for _, most := range []time.Duration{15 * time.Second, 3 * time.Second} {
				start := time.Now()
				if _, err := p.Tree(t.Context()); err != nil || time.Since(start) > most {
					t.Errorf("after %s: %v", time.Since(start), err)
				}
			}
			s.device.ChangeFaults(func(f *android.Faults) { f.NeverIdle, f.Dump = false, android.DumpNoIdle })
			if _, err := p.Tree(t.Context()); !errors.Is(err, phone.ErrNotIdle) {
				t.Errorf("compressed does not help: %v", err)
			}

			set(t, s, "transition_animation_scale", "0.5")
			unset(t, s, "animator_duration_scale")
			c := p.Under(live{})
			if err := c.RestoreAnimations(t.Context()); err != nil || p.AnimationsStopped() {
				t.Errorf("nothing to undo: %v", err)
			}
			for range 2 { // the second keeps what the first found
				if err := c.StopAnimations(t.Context()); err != nil || !p.AnimationsStopped() {
					t.Fatalf("stop: %v", err)
				}
			}
			if got := scales(t, s); got != "0 0 0" {
				t.Errorf("stopped: %s", got)
			}
			// The rack crashed; another attaches and cleans up.
			p = s.attach(t, phone.Options{})
			if !p.AnimationsStopped() {
				t.Error("the crash made them forgotten")
			}
			if err := p.Under(live{}).RestoreAnimations(t.Context()); err != nil || p.AnimationsStopped() {
				t.Errorf("restore: %v", err)
			}
			if got := scales(t, s); got != "1.0 0.5 null" {
				t.Errorf("restored: %s", got)
			}
			if p = s.attach(t, phone.Options{}); p.AnimationsStopped() {
				t.Error("they are to be restored again")
			}
		})
	}
}

func TestAnimationsOfAPhoneThatAllowsNoChange(t *testing.T) {
	for name, change := range map[string]func(*android.Faults){
		"settings denied": func(f *android.Faults) { f.SettingsDenied = true },
		"storage full":    func(f *android.Faults) { f.StorageFull = true },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, 11, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				s.device.ChangeFaults(change)
				if err := p.Under(live{}).StopAnimations(t.Context()); !errors.Is(err, phone.ErrRejected) {
					t.Errorf("got %v", err)
				}
				if got := scales(t, s); got != "1.0 1.0 null" {
					t.Errorf("scales %s", got)
				}
				if err := p.Under(live{}).RestoreAnimations(t.Context()); err != nil {
					t.Errorf("restore: %v", err)
				}
				if s.attach(t, phone.Options{}).AnimationsStopped() {
					t.Error("there is still something to restore")
				}
			})
		})
	}
}

func sh(t *testing.T, s *stage, cmd string) string {
	t.Helper()
	r, err := s.conn.Shell(t.Context(), cmd)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%s: %s%s%v", cmd, r.Stdout, r.Stderr, err)
	}
	return strings.TrimSpace(string(r.Stdout))
}

func set(t *testing.T, s *stage, name, value string) { sh(t, s, "settings put global "+name+" "+value) }

func unset(t *testing.T, s *stage, name string) { sh(t, s, "settings delete global "+name) }

func scales(t *testing.T, s *stage) string {
	return sh(t, s, "echo $(settings get global window_animation_scale) $(settings get global transition_animation_scale) $(settings get global animator_duration_scale)")
}

func TestTerminalIsRemembered(t *testing.T) {
	simulated(t, 9, func(c *android.Config) { c.Faults.StorageFull = true }, func(t *testing.T, s *stage) {
		p := s.attach(t, phone.Options{})
		for _, trips := range []int{2, 1} {
			if _, err := p.Tree(t.Context()); err != nil || s.trips.take() != trips {
				t.Errorf("%v, not %d round trips", err, trips)
			}
		}
		if got := p.Strategies().Tree; got != phone.TreeTerminal {
			t.Errorf("tree by %q", got)
		}
		s.device.ChangeFaults(func(f *android.Faults) { f.StorageFull, f.NoTTY = false, true })
		if _, err := p.Tree(t.Context()); err != nil || p.Strategies().Tree != phone.TreeFile {
			t.Errorf("%v, tree by %q", err, p.Strategies().Tree)
		}
	})
}

// TestFingerIsLifted: however a long touch ends, no finger stays on the display.
func TestFingerIsLifted(t *testing.T) {
	for name, c := range map[string]struct {
		end func(s *stage, lease *revocable, cancel context.CancelFunc)
		err error // nil: it goes through
	}{
		"by itself":      {func(*stage, *revocable, context.CancelFunc) {}, nil},
		"cancelled":      {func(_ *stage, _ *revocable, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"the lease ends": {func(_ *stage, l *revocable, _ context.CancelFunc) { l.revoke() }, errRevoked},
		"input is denied": {func(s *stage, _ *revocable, _ context.CancelFunc) {
			s.device.ChangeFaults(func(f *android.Faults) { f.InjectDenied = true })
		}, phone.ErrDeviceSetup},
	} {
		for _, rests := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, rests %t", name, rests), func(t *testing.T) {
				simulated(t, 11, nil, func(t *testing.T, s *stage) {
					p := s.attach(t, phone.Options{})
					lease := new(revocable)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					down := false
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						time.Sleep(1200 * time.Millisecond)
						down = s.engine.FingerDown()
						c.end(s, lease, cancel)
					}()
					to := image.Pt(180, 200)
					if rests {
						to = image.Pt(180, 600)
					}
					start := time.Now()
					err := p.Under(lease).Swipe(ctx, 180, 600, to.X, to.Y, 2500*time.Millisecond)
					took := time.Since(start)
					<-ended
					if !down {
						t.Error("the finger was not down in between")
					}
					switch {
					case c.err == nil:
						if err != nil || took < 2500*time.Millisecond {
							t.Errorf("%v after %s", err, took)
						}
					case errors.Is(c.err, phone.ErrDeviceSetup): // the finger cannot be lifted either, and that is said
						if !errors.Is(err, c.err) || !strings.Contains(err.Error(), "the finger may still be down") {
							t.Errorf("%v", err)
						}
						return
					case !errors.Is(err, c.err) || !errors.Is(err, phone.ErrUnknownOutcome) || took > 1500*time.Millisecond:
						t.Errorf("%v after %s", err, took)
					}
					if s.engine.FingerDown() {
						t.Error("the finger is still down")
					}
				})
			})
		}
	}
}

// TestOldPhonesFinishASwipe: before Android 11 a program moves the finger.
func TestOldPhonesFinishASwipe(t *testing.T) {
	for _, version := range []int{7, 10} {
		simulated(t, version, func(c *android.Config) { c.Latency = 1 }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			if err := p.Under(live{}).Swipe(ctx, 180, 600, 180, 200, 3*time.Second); err != nil || time.Since(start) < 3*time.Second {
				t.Errorf("%v after %s", err, time.Since(start))
			}
			if s.engine.FingerDown() {
				t.Error("the finger is still down")
			}
		})
	}
}

var errRevoked = errors.New("revoked")

// revocable is a Fence that can be closed.
type revocable struct {
	mu  sync.Mutex // guards off
	off bool
}

func (r *revocable) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return errRevoked
	}
	return nil
}

func (r *revocable) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = true
}

func TestWake(t *testing.T) {
	for _, version := range []int{7, 8, 10, 14} {
		for name, c := range map[string]struct {
			keyguard screen.Keyguard
			asleep   bool
			code     wire.Code // "" if the phone opens
			writes   int
		}{
			"awake and open":       {screen.Keyguard{}, false, "", 0},
			"asleep without lock":  {screen.Keyguard{}, true, "", 1},
			"asleep behind a lock": {screen.Keyguard{On: true}, true, "", 2},
			"locked":               {screen.Keyguard{On: true}, false, "", 1},
			"a PIN":                {screen.Keyguard{On: true, PIN: "1234"}, false, wire.PhoneLocked, 0},
			"asleep with a PIN":    {screen.Keyguard{On: true, PIN: "1234"}, true, wire.PhoneLocked, 1},
		} {
			t.Run(fmt.Sprintf("Android %d, %s", version, name), func(t *testing.T) {
				simulated(t, version, func(config *android.Config) {
					config.Locked, config.PIN = c.keyguard.On, c.keyguard.PIN
				}, func(t *testing.T, s *stage) {
					p := s.attach(t, phone.Options{})
					s.engine.SetScreenOn(!c.asleep)
					fence := new(asked)
					err := p.Under(fence).Wake(t.Context())
					if (err != nil) != (c.code != "") || err != nil && (!wire.Is(err, c.code) || !errors.Is(err, phone.ErrLocked)) {
						t.Errorf("got %v", err)
					}
					if !s.engine.ScreenOn() || s.engine.Locked() != (c.code != "") {
						t.Errorf("on %t, locked %t", s.engine.ScreenOn(), s.engine.Locked())
					}
					if fence.n != c.writes {
						t.Errorf("%d writes, not %d", fence.n, c.writes)
					}
				})
			})
		}
	}
}

// asked is a Fence that counts.
type asked struct{ n int }

func (a *asked) Check() error {
	a.n++
	return nil
}

// journal is a display that notes when it is touched.
type journal struct {
	*screen.Engine
	mu   sync.Mutex // guards taps
	taps []time.Time
}

func (j *journal) Tap(x, y int) {
	j.mu.Lock()
	j.taps = append(j.taps, time.Now())
	j.mu.Unlock()
	j.Engine.Tap(x, y)
}

func TestDoubleTapIsQuick(t *testing.T) {
	for version := range sdks {
		for _, latency := range []float64{0, 1} {
			var j journal
			simulated(t, version, func(c *android.Config) {
				j.Engine = c.Screen.(*screen.Engine)
				c.Latency, c.Screen = latency, &j
			}, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				fence := new(asked)
				if err := p.Under(fence).DoubleTap(t.Context(), 180, 400); err != nil || fence.n != 1 {
					t.Errorf("%v, %d writes", err, fence.n)
				}
				if len(j.taps) != 2 {
					t.Fatalf("taps %v", j.taps)
				}
				if d := j.taps[1].Sub(j.taps[0]); d < 40*time.Millisecond || d > 300*time.Millisecond {
					t.Errorf("Android %d, latency %g: %s between the taps", version, latency, d)
				}
			})
		}
	}
}

// TestReadingsOfEachVersion compares what is read with what the simulator has.
func TestReadingsOfEachVersion(t *testing.T) {
	for version := range sdks {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				b, err := p.Battery(t.Context())
				real := s.device.Battery()
				if err != nil || b.Level != real.Level || b.Voltage != real.Voltage || b.Temperature != real.Temperature || b.Plugged != "usb" || b.Faked || b.Implausible != nil {
					t.Errorf("battery %+v, %v", b, err)
				}
				sh(t, s, "dumpsys battery set level 3")
				s.device.ChangeFaults(func(f *android.Faults) { f.Battery.Repeat = true })
				if b, err = p.Battery(t.Context()); err != nil || b.Level != 3 || !b.Faked {
					t.Errorf("made up: %+v, %v", b, err)
				}
				sh(t, s, "dumpsys battery reset")
				s.device.ChangeFaults(func(f *android.Faults) { f.Battery.OddUnits = true })
				if b, err = p.Battery(t.Context()); err != nil || b.Voltage != phone.Unknown || b.Temperature != phone.Unknown || len(b.Implausible) != 2 {
					t.Errorf("odd units: %+v, %v", b, err)
				}

				s.device.SetThermal(2)
				th, err := p.Thermal(t.Context())
				if version < 10 && !errors.Is(err, errors.ErrUnsupported) || version >= 10 && (err != nil || th.Status != 2 || len(th.Temperatures) != 4) {
					t.Errorf("thermal %+v, %v", th, err)
				}
				room, err := p.Storage(t.Context())
				if err != nil || room.Total <= 0 || room.Free <= 0 || room.Free > room.Total {
					t.Errorf("storage %+v, %v", room, err)
				}
				if pw, err := p.Power(t.Context()); err != nil || pw != (phone.Power{Wakefulness: "Awake", Screen: true}) {
					t.Errorf("power %+v, %v", pw, err)
				}
				sh(t, s, "svc power stayon true")
				if pw, err := p.Power(t.Context()); err != nil || !pw.StayAwake {
					t.Errorf("power %+v, %v", pw, err)
				}
				apps, err := p.Apps(t.Context())
				if i := slices.IndexFunc(apps, func(a phone.App) bool { return a.Package == shop }); err != nil || i < 0 || apps[i].System {
					t.Errorf("apps %+v, %v", apps, err)
				}
				if i := slices.IndexFunc(apps, func(a phone.App) bool { return a.Package == "com.android.settings" }); i < 0 || !apps[i].System {
					t.Errorf("apps %+v", apps)
				}
				own, err := p.Installed(t.Context(), true)
				if i := slices.IndexFunc(own, func(a phone.Package) bool { return a.Name == shop }); err != nil || i < 0 || own[i].Version == 0 && version >= 8 {
					t.Errorf("installed %+v, %v", own, err)
				}
			})
		})
	}
}

func testApp(permissions ...string) []byte {
	return apktest.Build(apk.Manifest{
		Package: "com.example.test", VersionCode: 7, VersionName: "1.7", MinSDK: 21, TargetSDK: 30, Label: "Test", Permissions: permissions,
		Activities: []apk.Component{{Name: "com.example.test.Main", Actions: []string{"android.intent.action.MAIN"}, Categories: []string{"android.intent.category.LAUNCHER"}}},
	})
}

func TestInstallOnEachVersion(t *testing.T) {
	const camera = "android.permission.CAMERA"
	for version := range sdks {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				c := p.Under(live{})
				app := testApp(camera)
				for range 2 { // the second over the first
					if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); err != nil {
						t.Fatal(err)
					}
				}
				own, err := p.Installed(t.Context(), true)
				if !slices.ContainsFunc(own, func(a phone.Package) bool { return a.Name == "com.example.test" }) || err != nil {
					t.Errorf("installed %+v, %v", own, err)
				}
				for _, err := range []error{
					c.Grant(t.Context(), "com.example.test", camera), c.Revoke(t.Context(), "com.example.test", camera),
				} {
					if err != nil {
						t.Error(err)
					}
				}
				for err, want := range map[error]error{
					c.Grant(t.Context(), "com.example.test", "android.permission.READ_SMS"): phone.ErrRejected, // not asked for
					c.Grant(t.Context(), "com.example.none", camera):                        phone.ErrAppMissing,
				} {
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				s.device.ChangeFaults(func(f *android.Faults) { f.GrantDenied, f.InstallDenied = true, true })
				if err := c.Grant(t.Context(), "com.example.test", camera); !wire.Is(err, wire.PhoneSetup) {
					t.Errorf("grant: %v", err)
				}
				if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); !wire.Is(err, wire.PhoneSetup) {
					t.Errorf("install: %v", err)
				}
				s.device.ChangeFaults(func(f *android.Faults) { *f = android.Faults{StorageFull: true} })
				if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); !wire.Is(err, wire.InstallFailed) {
					t.Errorf("a full phone: %v", err)
				}
				s.device.ChangeFaults(func(f *android.Faults) { *f = android.Faults{} })
				text := "this is no app"
				if err := c.Install(t.Context(), strings.NewReader(text), int64(len(text))); !wire.Is(err, wire.InstallFailed) {
					t.Errorf("no app: %v", err)
				}
				if err := c.Uninstall(t.Context(), "com.example.test"); err != nil {
					t.Error(err)
				}
				if err := c.Uninstall(t.Context(), "com.example.test"); err == nil {
					t.Error("uninstalled twice")
				}
				// An APK that breaks off leaves nothing behind.
				if err := c.Install(t.Context(), bytes.NewReader(app[:len(app)/2]), int64(len(app))); !errors.Is(err, phone.ErrBadArgument) {
					t.Errorf("half an app: %v", err)
				}
				time.Sleep(time.Minute)
				if own, err := p.Packages(t.Context()); err != nil || slices.Contains(own, "com.example.test") {
					t.Errorf("half an app is installed, %v", err)
				}
			})
		})
	}
}

func TestResetsOnEachVersion(t *testing.T) {
	const pinyin = "com.google.android.inputmethod.pinyin/.PinyinIME"
	for version := range sdks {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			c := p.Under(live{})
			own := p.Strategies().Keyboard
			sh(t, s, "settings put system user_rotation 1; settings put system accelerometer_rotation 0; ime enable "+pinyin+"; ime set "+pinyin)
			if got := sh(t, s, "settings get secure default_input_method"); got != pinyin {
				t.Fatalf("input method %s", got)
			}
			if err := c.ResetRotation(t.Context()); err != nil || s.engine.Rotation() != 0 {
				t.Errorf("Android %d: rotation %d, %v", version, s.engine.Rotation(), err)
			}
			if err := c.ResetKeyboard(t.Context()); err != nil {
				t.Errorf("Android %d: %v", version, err)
			}
			if got := sh(t, s, "settings get secure default_input_method"); got != own || own == "" {
				t.Errorf("Android %d: input method %s, want %s", version, got, own)
			}
			s.device.ChangeFaults(func(f *android.Faults) { f.SettingsDenied = true })
			if err := c.ResetRotation(t.Context()); !errors.Is(err, phone.ErrRejected) && !errors.Is(err, phone.ErrDeviceSetup) {
				t.Errorf("Android %d, denied: %v", version, err)
			}
		})
	}
}

func TestReport19_ClipboardOfThePhone(t *testing.T) {
	for _, version := range []int{7, 11, 15} {
		for _, lies := range []bool{true, false} {
			simulated(t, version, func(c *android.Config) { c.Faults.ClipboardLie = lies }, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				if err := p.Under(live{}).SetClipboard(t.Context(), "secret"); !wire.Is(err, wire.ClipboardFailed) {
					t.Errorf("Android %d, lies %t: %v", version, lies, err)
				}
			})
		}
	}
}

// TestReport16_WhatArrivesIsReadBack: where characters are lost the field shows
// it, and the slower pace is not a cure by itself.
func TestReport16_WhatArrivesIsReadBack(t *testing.T) {
	for _, version := range []int{7, 11, 15} {
		simulated(t, version, func(c *android.Config) { c.Faults.SwapFirst = true }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			s.field(t, p)
			const text = "hello world"
			c := p.Under(live{})
			if err := c.InputText(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t, p); got == text {
				t.Errorf("nothing was lost: %q", got)
			}
			if err := c.ClearText(t.Context(), len(text)); err != nil {
				t.Fatal(err)
			}
			if !c.Distrust(phone.Typing) {
				t.Fatal("there is no slower pace")
			}
			if err := c.InputText(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t, p); got != text { // single characters have no neighbour to be swapped with
				t.Errorf("Android %d: slowly %q", version, got)
			}
		})
	}
}

func TestClearTextOnEachVersion(t *testing.T) {
	for version := range sdks {
		for _, distrusted := range []bool{false, true} {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				s.field(t, p)
				c := p.Under(live{})
				if err := c.InputText(t.Context(), "blue socks"); err != nil {
					t.Fatal(err)
				}
				for range 4 {
					if err := c.Key(t.Context(), "left"); err != nil {
						t.Fatal(err)
					}
				}
				if distrusted {
					c.Distrust(phone.Clearing)
				}
				if err := c.ClearText(t.Context(), len("blue socks")); err != nil {
					t.Fatal(err)
				}
				if got := s.text(t, p); strings.Contains(got, "bl") || strings.Contains(got, "sock") { // the hint may stand there
					t.Errorf("Android %d, distrusted %t: %q", version, distrusted, got)
				}
			})
		}
	}
}

func TestPullFromEachVersion(t *testing.T) {
	for version := range sdks {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			sh(t, s, "echo 0123456789 > '/sdcard/a file.txt'")
			var got bytes.Buffer
			if err := p.Pull(t.Context(), "/sdcard/a file.txt", &got, 11); err != nil || got.String() != "0123456789\n" {
				t.Errorf("%q, %v", got.String(), err)
			}
			if err := p.Pull(t.Context(), "/sdcard/a file.txt", &got, 10); !wire.Is(err, wire.FileTooLarge) {
				t.Errorf("too large: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := p.Pull(ctx, "/dev/zero", &got, 1<<20); !wire.Is(err, wire.FileTooLarge) {
				t.Errorf("without end: %v", err)
			}
			for _, path := range []string{"/sdcard/none", "/sdcard", "/data/data/com.phonerack.shop/x"} {
				err := p.Pull(t.Context(), path, &got, 100)
				if _, ok := errors.AsType[*adb.SyncError](err); !ok {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestOpenURLOnEachVersion(t *testing.T) {
	for version := range sdks {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			err := p.Under(live{}).OpenURL(t.Context(), `nobody-takes-this://x?a=1&b='$(reboot)'`, "")
			if !errors.Is(err, phone.ErrAppMissing) {
				t.Errorf("Android %d: %v", version, err)
			}
		})
	}
}

// TestAttachInFewRoundTrips: as little as the phone allows.
func TestAttachInFewRoundTrips(t *testing.T) {
	for version := range sdks {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p, err := phone.Attach(t.Context(), s.trips, phone.Options{})
			if err != nil {
				t.Fatal(err)
			}
			unknown := s.trips.take()
			if _, err := p.Screenshot(t.Context()); err != nil {
				t.Error(err)
			}
			s.trips.take()
			if _, err := phone.Attach(t.Context(), s.trips, phone.Options{Strategies: p.Strategies()}); err != nil {
				t.Fatal(err)
			}
			if known := s.trips.take(); known != 1 || unknown < 4 {
				t.Errorf("Android %d: %d round trips, %d once it is known", version, unknown, known)
			}
		})
	}
}
