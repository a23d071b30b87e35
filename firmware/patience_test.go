package firmware

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/hal/watchdog"
	"phonerack/hal/watchdog/watchdogtest"
)

// TestAPhoneThatTakesForEverResetsNothing: what is critical is the slot's owner, and not the phone that it waits for.
func TestAPhoneThatTakesForEverResetsNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		patient bool
		expired bool
	}{
		{"a person is asked for an hour", true, false},
		{"the owner itself is blocked", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device := watchdogtest.New(15 * time.Second)
				feeder := watchdog.NewFeeder(watchdog.Options{Device: device, Disarm: true, Logger: slog.New(slog.DiscardHandler)})
				beat := time.NewTicker(beatEvery)
				defer beat.Stop()
				manager := feeder.Parts // what a service manager's watchdog is fed by, without a device too
				s := &slot{progress: feeder.Part("slot 1", slotBound), beat: beat.C}
				ended := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { ended <- feeder.Run(ctx) }()
				defer func() {
					cancel()
					<-ended
				}()
				asked, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					if c.patient {
						s.patiently(func() { <-asked })
					} else {
						<-asked
					}
				}()
				time.Sleep(time.Hour)
				if got := device.Expired(); got != c.expired {
					t.Errorf("expired is %v", got)
				}
				if idle := manager.Idle(); (idle == "slot 1") != c.expired || !c.expired && idle != "" {
					t.Errorf("systemd hears %q", idle)
				}
				close(asked)
				<-done
			})
		})
	}
}

// TestAPanicOfWhatTakesLongIsTheOwners, whom its supervisor starts anew: on a goroutine of its own it would end rackd, and all slots
// with it.
func TestAPanicOfWhatTakesLongIsTheOwners(t *testing.T) {
	for _, part := range []*watchdog.Part{nil, watchdog.NewParts().Part("slot 1", slotBound)} {
		s := &slot{progress: part, log: slog.New(slog.DiscardHandler)}
		got := func() (p any) {
			defer func() { p = recover() }()
			s.patiently(func() { panic("a defect") })
			return nil
		}()
		if got != "a defect" {
			t.Errorf("the owner got %v", got)
		}
	}
}
