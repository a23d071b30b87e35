package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/store"
	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

const (
	maxConfig     = 64 << 10 // bytes of a desired configuration
	maxUnusable   = 20       // settings that are told to the cloud
	maxToldReason = 200      // bytes
)

// unusableEvent is the kind of the event that tells which settings of the cloud this rack cannot apply.
const unusableEvent = "config.unusable"

// desired applies what the cloud wants the rack to be set to. It keeps what it has applied in a bucket of its own: the link counts
// a version before anybody has applied it. What a configuration does not name is as the rack's own file says.
type desired struct {
	bucket     *store.Bucket
	generation uint64
	fleet      *fleet.Fleet
	link       *link.Link
	levels     *logLevel
	log        *slog.Logger

	version uint64 // that is applied; 0 for none
}

// applied is a configuration on disk. It belongs to a generation, as the link's numbers do: another enrolment, which
// counts anew, is not held to it.
type applied struct {
	Generation uint64          `json:"generation"`
	Version    uint64          `json:"version"`
	Config     json.RawMessage `json:"config"`
}

var keyApplied = []byte("applied")

// takeUp applies what an earlier process has; before the link runs.
func (d *desired) takeUp() error {
	var a applied
	err := d.bucket.View(func(b *bolt.Bucket) error {
		raw := b.Get(keyApplied)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &a); err != nil { // the cloud brings it again
			d.log.Error("the applied configuration cannot be read", "err", err)
			a = applied{}
		}
		return nil
	})
	if err != nil || a.Version == 0 || a.Generation != d.generation {
		return err
	}
	s, _, err := wire.ReadSettings(a.Config)
	if err != nil {
		d.log.Error("the applied configuration cannot be read", "err", err)
		return nil
	}
	d.apply(a.Version, s)
	return nil
}

// take implements link.Handler. What fails here comes again with the link's next session.
func (d *desired) take(_ context.Context, m *wire.Message) {
	var w wire.Desired
	if err := m.Decode(&w); err != nil || w.Version <= d.version {
		return
	}
	s, unusable, err := read(w.Config)
	if err != nil {
		d.log.Error("a configuration of the cloud cannot be applied", "version", w.Version, "err", err)
		d.tell(w.Version, []wire.SettingError{{Reason: err.Error()}})
		return
	}
	err = d.bucket.Update(func(b *bolt.Bucket) error {
		raw, err := json.Marshal(applied{d.generation, w.Version, w.Config})
		if err != nil {
			return err
		}
		return b.Put(keyApplied, raw)
	})
	if err != nil {
		d.log.Error("a configuration of the cloud could not be stored", "version", w.Version, "err", err)
		return
	}
	d.apply(w.Version, s)
	if len(unusable) > 0 {
		d.tell(w.Version, unusable)
	}
}

func read(config json.RawMessage) (wire.Settings, []wire.SettingError, error) {
	if len(config) > maxConfig {
		return wire.Settings{}, nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(config), maxConfig)
	}
	return wire.ReadSettings(config)
}

// apply sets the rack to a stored configuration, and says so.
func (d *desired) apply(version uint64, s wire.Settings) {
	paused, every := false, wire.HeartbeatEvery
	if s.Paused != nil {
		paused = *s.Paused
	}
	if s.Heartbeat != nil {
		every = *s.Heartbeat
	}
	level := d.levels.setCloud(s.LogLevel)
	d.log.Info("the cloud's configuration is applied", "version", version, "paused", paused, "heartbeat", every, "level", level)
	d.fleet.Pause(paused)
	d.fleet.SetHeartbeat(every)
	d.version = version
	d.link.SetDesired(version)
}

// tell reports what could not be applied.
func (d *desired) tell(version uint64, unusable []wire.SettingError) {
	told := make([]wire.SettingError, 0, maxUnusable)
	for _, u := range unusable[:min(len(unusable), maxUnusable)] {
		d.log.Warn("a setting of the cloud is not applied", "version", version, "key", cut(u.Key, maxToldReason), "reason", cut(u.Reason, maxToldReason))
		told = append(told, wire.SettingError{Key: cut(u.Key, maxToldReason), Reason: cut(u.Reason, maxToldReason)})
	}
	err := d.fleet.Event(unusableEvent, 0, "", map[string]any{"version": version, "settings": told})
	if err != nil {
		d.log.Warn("it could not be reported", "err", err)
	}
}
