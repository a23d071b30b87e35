package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is the time since the board started, suspend included.
func BootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("lease: no CLOCK_BOOTTIME: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(now.Nano())
}
