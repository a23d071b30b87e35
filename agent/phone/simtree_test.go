package phone_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/phonesim/android"
)

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
		simulated(t, version, func(c *android.Config) { c.Faults.NeverIdle, c.Latency = true, 1 }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			for _, most := range []time.Duration{15 * time.Second, 5 * time.Second} {
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

// TestReport13_ASlowTreeHasABound: a large tree takes long, and no longer than it
// may.
func TestReport13_ASlowTreeHasABound(t *testing.T) {
	simulated(t, 11, func(c *android.Config) { c.Faults.SlowTree = 14 * time.Second }, func(t *testing.T, s *stage) {
		p := s.attach(t, phone.Options{})
		if _, err := p.Tree(t.Context()); err != nil {
			t.Errorf("in time: %v", err)
		}
		s.device.ChangeFaults(func(f *android.Faults) { f.SlowTree = time.Hour })
		start := time.Now()
		if _, err := p.Tree(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 31*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
