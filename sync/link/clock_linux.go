package link

import (
	"time"

	"golang.org/x/sys/unix"
)

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Boot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}

var started = time.Now()
