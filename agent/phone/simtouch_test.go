package phone_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

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

// A finger whose way down was not answered may be down: it is taken back.
func TestAFingerThatMayBeDownIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		reply phonetest.Reply
		want  []string
		err   error
	}{
		"no answer": {phonetest.Reply{Hang: true}, []string{"DOWN", "CANCEL"}, phone.ErrUnknownOutcome},
		"lost":      {phonetest.Reply{Err: adb.ErrTimeout}, []string{"DOWN", "CANCEL"}, phone.ErrUnknownOutcome},
		"refused":   {phonetest.Reply{Err: adb.ErrRefused}, []string{"DOWN"}, phone.ErrRejected},
		"forbidden": {phonetest.Reply{Stderr: "java.lang.SecurityException: INJECT_EVENTS\n"}, []string{"DOWN"}, phone.ErrDeviceSetup},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
					if strings.HasPrefix(r.Command, "input motionevent DOWN") {
						return c.reply
					}
					return phonetest.Handset{}.Reply(r)
				})
				p, err := phone.Attach(t.Context(), a, phone.Options{Strategies: phone.Strategies{Screenshot: []string{"raw"}}})
				if err != nil {
					t.Fatal(err)
				}
				a.Forget()
				if err := p.Under(live{}).LongPress(t.Context(), 5, 6, 2*time.Second); !errors.Is(err, c.err) {
					t.Errorf("got %v", err)
				}
				var got []string
				for _, r := range a.Sent() {
					got = append(got, strings.Fields(r.Command)[2])
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("sent %q", got)
				}
			})
		})
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
	for _, version := range []int{7, 10, 14} {
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
	for _, version := range []int{7, 10, 11, 15} {
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
