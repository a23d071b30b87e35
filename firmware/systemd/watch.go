package systemd

import (
	"context"
	"time"
)

// Watches tells whether the manager has a watchdog for this process.
func (m *Manager) Watches() bool { return m.socket != "" && m.period != 0 }

// Watch feeds the manager's watchdog, at a third of its period, as long as late returns "". late is asked each time and
// must not block: it says what makes no progress, and then the manager is not fed but told, once for each answer, and told
// when that is over. Watch returns when ctx ends, at once if the manager has no watchdog, and with an error when the manager
// cannot be told for a whole period.
func (m *Manager) Watch(ctx context.Context, late func() string) error {
	if !m.Watches() {
		return nil
	}
	tick := time.NewTicker(max(m.period/3, time.Millisecond))
	defer tick.Stop()
	said, heard := "", time.Now()
	for {
		var err error
		switch what := late(); {
		case what == "" && said != "":
			err = m.send("WATCHDOG=1"+statusLine("every part makes progress again"), nil)
			said = ""
		case what == "":
			err = m.send("WATCHDOG=1", nil)
		case what != said:
			err = m.Status("no progress: " + what)
			said = what
		}
		if err == nil {
			heard = time.Now()
		} else if time.Since(heard) > m.period {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
