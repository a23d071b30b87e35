package firmware_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/config"
	"phonerack/sync/wire"
)

// desire sends the rack a configuration.
func (c *scriptedCloud) desire(version uint64, config string) {
	c.Send(c.rack, wire.KindDesired, c.Message(c.rack.Rack, wire.TypeDesired, wire.Desired{Version: version, Config: []byte(config)}))
}

// applied waits until the rack's state names a version.
func (c *scriptedCloud) applied(t *testing.T, version uint64) wire.State {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := c.Heard(wire.TypeState)
		var last wire.State
		if len(all) > 0 && all[len(all)-1].Decode(&last) == nil && last.State != wire.Offline && last.Desired == version {
			return last
		}
		if time.Now().After(deadline) {
			t.Fatalf("version %d is not applied: the rack says %+v", version, last)
		}
	}
}

// event waits for the nth event of a kind.
func (c *scriptedCloud) event(t *testing.T, kind string, n int) wire.Event {
	t.Helper()
	ids := map[string]bool{} // an event is said until it is acknowledged
	for i := 0; ; i++ {
		e := await[wire.Event](t, c, wire.TypeEvent, i)
		id := c.Heard(wire.TypeEvent)[i].ID
		if e.Kind == kind && !ids[id] && n == 0 {
			return e
		}
		if e.Kind == kind && !ids[id] {
			n--
		}
		ids[id] = true
	}
}

func TestAConfigurationOfTheCloudIsAppliedAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	c := b.join(config.Script)
	b.level = new(slog.LevelVar)
	b.phones[1].plug(t)
	b.start()
	await[wire.Claim](t, c, wire.TypeClaim, 0)
	c.desire(4, `{"claims.paused":true,"log.level":"debug","planner.model":"m"}`)
	if s := c.applied(t, 4); s.State != wire.Draining {
		t.Errorf("a paused rack says %s", s.State)
	}
	if b.level.Level() != slog.LevelDebug {
		t.Errorf("the log's level is %s", b.level.Level())
	}
	// What this rack does not know is told, and hinders nothing.
	e := c.event(t, "config.unusable", 0)
	if !strings.Contains(string(e.Detail), `"version":4`) || !strings.Contains(string(e.Detail), `"planner.model"`) ||
		strings.Contains(string(e.Detail), `"log.level",`) {
		t.Errorf("it told %s %s", e.Kind, e.Detail)
	}
	// An older one, which the broker may have kept, changes nothing.
	c.desire(3, `{}`)

	b.stop()
	b.level.Set(slog.LevelInfo)
	claims := len(c.Heard(wire.TypeClaim))
	b.start() // the cloud says nothing of it this time
	if s := c.applied(t, 4); s.State != wire.Draining {
		t.Errorf("after a restart the rack says %s", s.State)
	}
	if b.level.Level() != slog.LevelDebug {
		t.Errorf("after a restart the log's level is %s", b.level.Level())
	}
	await[wire.Hello](t, c, wire.TypeHello, 1)
	time.Sleep(2500 * time.Millisecond) // a slot's first claim comes within two seconds
	if n := len(c.Heard(wire.TypeClaim)) - claims; n > 0 {
		t.Errorf("a paused rack claimed %d times", n)
	}
	c.desire(5, `{}`)
	if s := c.applied(t, 5); s.State != wire.Online {
		t.Errorf("the rack says %s", s.State)
	}
	if b.level.Level() != slog.LevelInfo {
		t.Errorf("the log's level is %s", b.level.Level())
	}
	await[wire.Claim](t, c, wire.TypeClaim, claims)
}
