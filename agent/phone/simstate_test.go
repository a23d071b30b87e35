package phone_test

import (
	"errors"
	"fmt"
	"image"
	"slices"
	"testing"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

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
				if got.Focus.Package != shop || image.Pt(got.Display.Width, got.Display.Height) != size || !got.Lock.Awake || got.Lock.Locked {
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
				before, err := p.Gauge(t.Context())
				if err != nil || before.Stats == "" || before.Counter != real.Counter || before.Plugged != "usb" {
					t.Errorf("gauge %+v, %v", before, err)
				}
				unplugged := real
				unplugged.USB = false
				s.device.SetBattery(unplugged)
				time.Sleep(20 * time.Millisecond)
				s.device.SetBattery(real)
				if g, err := p.Gauge(t.Context()); err != nil || g.Stats != before.Stats || g.OnBattery-before.OnBattery < 20*time.Millisecond || g.OnBattery-before.OnBattery > time.Minute {
					t.Errorf("after 20 ms on battery: %+v, %v", g, err)
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
