package watchdog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/hal/watchdog"
	"phonerack/hal/watchdog/watchdogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench runs a feeder in a bubble.
type bench struct {
	*watchdog.Feeder
	device *watchdogtest.Device
	said   []string
	stop   func()
}

func start(t *testing.T, disarm bool, stays bool, parts func(*watchdog.Feeder)) *bench {
	t.Helper()
	b := &bench{device: watchdogtest.New(watchdog.DefaultTimeout)}
	b.device.Stays = stays
	b.Feeder = watchdog.NewFeeder(watchdog.Options{Device: b.device, Disarm: disarm, Late: func(late []watchdog.Lateness) {
		b.said = append(b.said, fmt.Sprintf("%v fed=%d", late, b.device.Feeds()))
	}})
	parts(b.Feeder)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return b
}

// works reports progress every so often, n times.
func works(p *watchdog.Part, every time.Duration, n int) {
	for range n {
		time.Sleep(every)
		p.Progress()
	}
}

func TestFedOnlyWhileEveryPartMakesProgress(t *testing.T) {
	for _, c := range []struct {
		name    string
		parts   func(*watchdog.Feeder)
		expired bool
		said    string
	}{
		{"all work", func(f *watchdog.Feeder) {
			go works(f.Part("bus", 30*time.Second), 10*time.Second, 30)
			go works(f.Part("store", time.Minute), 50*time.Second, 6)
		}, false, ""},
		{"one is blocked and the others work", func(f *watchdog.Feeder) {
			go works(f.Part("bus", 30*time.Second), 10*time.Second, 30)
			f.Part("slot 7", 40*time.Second)
		}, true, "[slot 7 silent for 41.25s, bound 40s] fed=11"},
		{"two are blocked: each is named", func(f *watchdog.Feeder) {
			f.Part("bus", 30*time.Second)
			f.Part("store", 31*time.Second)
		}, true, "[bus silent for 33.75s, bound 30s store silent for 33.75s, bound 31s] fed=9"},
		{"one that never reports", func(f *watchdog.Feeder) { f.Part("link", 10*time.Second) }, true, "[link silent for 11.25s, bound 10s] fed=3"},
		{"one that comes back in time", func(f *watchdog.Feeder) {
			p := f.Part("store", 20*time.Second)
			go func() { works(p, 29*time.Second, 1); works(p, 10*time.Second, 30) }()
		}, false, "[store silent for 22.5s, bound 20s] fed=6\n[] fed=6"},
		{"one that has ended", func(f *watchdog.Feeder) {
			f.Part("update", 20*time.Second).End()
			go works(f.Part("bus", 30*time.Second), 10*time.Second, 30)
		}, false, ""},
		{"one that was restarted", func(f *watchdog.Feeder) {
			old := f.Part("bus", 10*time.Second)
			go works(f.Part("bus", 30*time.Second), 10*time.Second, 30)
			old.End() // its deferred end must not take out the new one
		}, false, ""},
		{"no part at all", func(*watchdog.Feeder) {}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, true, false, c.parts)
				time.Sleep(295 * time.Second)
				synctest.Wait()
				if got := strings.Join(b.said, "\n"); b.device.Expired() != c.expired || got != c.said {
					t.Errorf("expired %v, said\n%s\nwant %v\n%s", b.device.Expired(), got, c.expired, c.said)
				}
				time.Sleep(time.Minute) // the parts end
				b.stop()
			})
		})
	}
}

func TestTheResetComesWithinTheBoundAndATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, true, false, func(f *watchdog.Feeder) { f.Part("bus", 20*time.Second) })
		time.Sleep(20*time.Second + watchdog.DefaultTimeout)
		synctest.Wait()
		if !b.device.Expired() {
			t.Error("a blocked part was fed for too long")
		}
		b.stop()
	})
}

func TestOrderlyEnd(t *testing.T) {
	for _, c := range []struct {
		name                   string
		disarm, stays, expired bool
	}{
		{"disarmed when that is wanted", true, false, false},
		{"a shutdown that hangs is reset", false, false, true},
		{"nowayout", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, c.disarm, c.stays, func(f *watchdog.Feeder) { f.Part("bus", time.Hour) })
				time.Sleep(time.Minute)
				b.stop()
				time.Sleep(watchdog.DefaultTimeout - 1)
				if b.device.Expired() {
					t.Error("the shutdown had less than a timeout")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if b.device.Expired() != c.expired {
					t.Errorf("expired %v", b.device.Expired())
				}
			})
		})
	}
}
