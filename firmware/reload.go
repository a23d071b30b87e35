package firmware

import (
	"log/slog"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/config"
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

// ReloadConfig implements action.Reloader: it reads the configuration anew and applies the keys that count at once. A file
// with a fault changes nothing.
func (r *Rack) ReloadConfig() (action.ConfigChanges, error) {
	if r.readConfig == nil {
		return action.ConfigChanges{}, wire.Refuse(wire.Unsupported, map[string]any{"what": "reading this configuration anew"})
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	next, err := r.readConfig()
	if err != nil {
		reason := config.Sentence(err)
		r.log.Error("the configuration has a fault, the one in force stays", "reason", reason)
		return action.ConfigChanges{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the configuration has a fault and the one in force stays: " + reason})
	}
	changes := config.Compare(r.inForce(), next)
	r.liveHold, r.liveLevel = next.Control.MaxHold, next.Log.Level
	r.liveHealth.Rack, r.liveHealth.Phone = next.Health.Rack, next.Health.Phone
	r.leases.SetMaxHold(time.Duration(r.liveHold))
	r.levels.setOwn(r.liveLevel)
	r.care.setLimits(r.liveHealth.Rack, r.liveHealth.Phone)
	r.log.Info("the configuration was read anew", "applied", changes.Live, "after_a_restart", changes.Restart)
	return action.ConfigChanges(changes), nil
}

// Log implements action.Logs.
func (r *Rack) Log() *logbook.Book { return r.logBook }

// inForce is the configuration as it counts now; reloading is held.
func (r *Rack) inForce() *config.Config {
	c := *r.config
	c.Control.MaxHold, c.Log.Level, c.Health = r.liveHold, r.liveLevel, r.liveHealth
	return &c
}
