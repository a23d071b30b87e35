package watchdog

import (
	"log/slog"
	"sync"
	"time"
)

// StartLimit is how long a program may take to be put together: a database on a worn card is opened slowly. A start that
// hangs has the board reset one timeout later.
const StartLimit = 2 * time.Minute

// Start feeds an armed device while the program is put together, before there are parts whose progress could: until stop is
// called, or StartLimit is over. What stop returns from has fed for the last time.
func Start(d Device, log *slog.Logger) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(d.Timeout() / 4)
		defer tick.Stop()
		limit := time.NewTimer(StartLimit)
		defer limit.Stop()
		for {
			if err := d.Feed(); err != nil {
				log.Error("the watchdog cannot be fed", "err", err)
			}
			select {
			case <-tick.C:
			case <-limit.C:
				log.Error("the start does not come to its end; the watchdog is not fed any more, and resets the board", "after", StartLimit)
				return
			case <-end:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		<-ended
	})
}
