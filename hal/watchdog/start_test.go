package watchdog_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/hal/watchdog"
	"phonerack/hal/watchdog/watchdogtest"
)

// TestASlowStartIsNoReasonForAReset, and one that hangs is one.
func TestASlowStartIsNoReasonForAReset(t *testing.T) {
	for _, c := range []struct {
		takes   time.Duration
		expired bool
	}{
		{watchdog.StartLimit, false},
		{watchdog.StartLimit + watchdog.DefaultTimeout + time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			device := watchdogtest.New(watchdog.DefaultTimeout)
			stop := watchdog.Start(device, slog.New(slog.DiscardHandler))
			time.Sleep(c.takes)
			stop()
			stop() // does nothing
			if got := device.Expired(); got != c.expired {
				t.Errorf("a start of %v: expired %v", c.takes, got)
			}
			feeds := device.Feeds()
			time.Sleep(time.Minute)
			if device.Feeds() != feeds {
				t.Error("fed after stop")
			}
		})
	}
}
