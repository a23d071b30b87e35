//go:build stall

package firmware

import (
	"os"
	"time"
)

// stall holds a critical loop up as long as a file of its name is there, such as "stall-owner of slot 3", for tests of the watchdog
// on the emulated board.
func stall(part string) {
	for {
		if _, err := os.Stat("/run/rackd/stall-" + part); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
