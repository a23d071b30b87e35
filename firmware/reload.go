package firmware

import (
	"log/slog"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/health"
	"phonerack/firmware/logbook"
	"phonerack/sync/wire"
)

// logLevel is the level of the log: the one of the rack's own file, unless the cloud names another.
type logLevel struct {
	is *slog.LevelVar // nil: it cannot be changed

	mu    sync.Mutex
	own   slog.Level  // guarded by mu, as is cloud
	cloud *slog.Level // nil if the cloud names none
}

func (l *logLevel) set(change func()) slog.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	level := l.own
	if l.cloud != nil {
		level = *l.cloud
	}
	if l.is != nil {
		l.is.Set(level)
	}
	return level
}

func (l *logLevel) setOwn(level slog.Level) { l.set(func() { l.own = level }) }

// setCloud returns the level in force.
func (l *logLevel) setCloud(level *slog.Level) slog.Level { return l.set(func() { l.cloud = level }) }

// reloads reads the configuration anew, one at a time, and remembers what that has changed.
type reloads struct {
	read func() (*config.Config, error) // nil: it cannot be read anew

	mu      sync.Mutex      // held while one goes on; guards what follows: the keys in force that a reload may change
	maxHold config.Duration // control.max_hold
	level   slog.Level      // log.level
	health  health.Config   // only what a reload applies differs from the configuration of the start
}

// over is the configuration of the start with the keys that are in force now; mu is held.
func (r *reloads) over(start *config.Config) *config.Config {
	c := *start
	c.Control.MaxHold, c.Log.Level, c.Health = r.maxHold, r.level, r.health
	return &c
}

// ReloadConfig implements action.Reloader: it reads the configuration anew and applies the keys that count at once. A file
// with a fault changes nothing.
func (r *Rack) ReloadConfig() (action.ConfigChanges, error) {
	live := &r.reloads
	if live.read == nil {
		return action.ConfigChanges{}, wire.Refuse(wire.Unsupported, map[string]any{"what": "reading this configuration anew"})
	}
	live.mu.Lock()
	defer live.mu.Unlock()
	next, err := live.read()
	if err != nil {
		reason := config.Sentence(err)
		r.log.Error("the configuration has a fault, the one in force stays", "reason", reason)
		return action.ConfigChanges{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the file has a fault, and nothing is changed: " + reason})
	}
	changes := config.Compare(live.over(r.config), next)
	live.maxHold, live.level = next.Control.MaxHold, next.Log.Level
	live.health.Rack, live.health.Phone = next.Health.Rack, next.Health.Phone
	r.leases.SetMaxHold(time.Duration(live.maxHold))
	r.levels.setOwn(live.level)
	r.care.setLimits(live.health.Rack, live.health.Phone)
	r.log.Info("the configuration was read anew", "applied", changes.Live, "after_a_restart", changes.Restart)
	return action.ConfigChanges(changes), nil
}

// Log implements action.Logs.
func (r *Rack) Log() *logbook.Book { return r.logBook }
