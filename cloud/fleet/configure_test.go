package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

func set(pairs string) fleet.NewSettings {
	var n fleet.NewSettings
	if err := json.Unmarshal([]byte(pairs), &n.Set); err != nil {
		panic(err)
	}
	return n
}

func TestAConfigurationIsPublishedAfterItsCommitAndWithEachHello(t *testing.T) {
	b := newBench(t)
	r1 := b.rack("r1")
	if types, _ := b.heard(); types != "" {
		t.Fatalf("without a configuration a hello brings %s", types)
	}
	v, err := b.Configure(t.Context(), acme, "r1", set(`{"claims.paused":true}`))
	b.ok(err)
	want := func(version int64, config string) {
		t.Helper()
		types, bodies := b.heard()
		if types != "desired r1" {
			t.Fatalf("the rack heard %q", types)
		}
		if d := bodies[0].(wire.Desired); int64(d.Version) != version || string(d.Config) != config {
			t.Errorf("it heard version %d: %s", d.Version, d.Config)
		}
	}
	want(v.Version, `{"claims.paused":true}`)
	if w := b.hello(r1, 1, 2); int64(w.DesiredVersion) != v.Version {
		t.Errorf("the welcome names version %d, not %d", w.DesiredVersion, v.Version)
	}
	want(v.Version, `{"claims.paused":true}`)

	n := set(`{"log.level":"debug"}`)
	n.Unset = []string{"claims.paused"}
	next, err := b.Configure(t.Context(), acme, "r1", n)
	b.ok(err)
	if next.Version <= v.Version || next.Applied != 0 {
		t.Errorf("after version %d comes %+v", v.Version, next)
	}
	want(next.Version, `{"log.level":"debug"}`)
	_, err = b.State(t.Context(), r1, wire.State{State: wire.Online, Generation: 1, Session: 2, Desired: uint64(next.Version)})
	b.ok(err)
	shown, err := b.Configuration(t.Context(), acme, "r1")
	b.ok(err)
	if shown.Applied != next.Version || shown.Version != next.Version {
		t.Errorf("shown is %+v", shown)
	}
}

func TestSettingsThatNoRackKnowsAreRefused(t *testing.T) {
	b := newBench(t)
	b.rack("r1")
	for name, n := range map[string]fleet.NewSettings{
		"nothing":         {},
		"an unknown key":  set(`{"planner.url":"http://evil.example"}`),
		"a wrong value":   set(`{"heartbeat.seconds":1}`),
		"set and unset":   {Set: set(`{"claims.paused":true}`).Set, Unset: []string{"claims.paused"}},
		"not even a word": set(`{"":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Configure(t.Context(), acme, "r1", n)
			b.wants(err, wire.BadRequest)
		})
	}
	v, err := b.Configuration(t.Context(), acme, "r1")
	b.ok(err)
	if types, _ := b.heard(); v.Version != 0 || types != "" {
		t.Errorf("it was taken: %+v, heard %s", v, types)
	}
	for _, op := range []fleet.Operator{acme, other} {
		rack := map[string]string{"acme": "r9", "other": "r1"}[op.Tenant]
		_, err := b.Configure(t.Context(), op, rack, set(`{"claims.paused":true}`))
		b.wants(err, wire.NotFound)
		_, err = b.Configuration(t.Context(), op, rack)
		b.wants(err, wire.NotFound)
	}
	_, err = b.State(t.Context(), enroll.Caller{Tenant: "acme", Rack: "r1"}, wire.State{State: wire.Online, Generation: 1, Session: 1, Desired: 1 << 63})
	b.wants(err, wire.BadRequest)
	if said := wire.From(err).Sentence("en"); !strings.Contains(said, "desired") {
		t.Errorf("said: %s", said)
	}
}
