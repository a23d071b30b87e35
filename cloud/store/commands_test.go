package store_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

func testCommands(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	var ids []string
	for i := range 3 {
		c := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Slot: i, Name: "ping", Args: json.RawMessage(`{"n":1}`), Idempotent: i == 0}))(t)
		equal(t, "sequence", c.Seq, int64(i+1))
		got, _ := json.Marshal(must(s.Command(ctx, acme, c.ID))(t))
		want, _ := json.Marshal(c)
		same(t, "command", got, want)
		equal(t, "expires", c.Expires, start.Add(store.MaxCommandLife))
		ids = append(ids, c.ID)
	}
	equal(t, "of another rack", must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r2", Name: "ping"}))(t).Seq, 1)
	equal(t, "counter", must(s.Host(ctx, acme, "r1"))(t).CommandSeq, 3)
	for _, bad := range []store.NewCommand{
		{Host: "r1"},
		{Host: "r1", Name: "x", Slot: -1},
		{Host: "r1", Name: "x", Expires: start.Add(store.MaxCommandLife + time.Second)},
		{Host: "r1", Name: "x", Expires: start.Add(-time.Second)},
		{Host: "r1", Name: "x", Args: json.RawMessage(`nope`)},
	} {
		wants(t, second(s.QueueCommand(ctx, acme, bad)), store.ErrInvalid)
	}
	equal(t, "a refused command takes no number", must(s.Host(ctx, acme, "r1"))(t).CommandSeq, 3)

	all := must(s.PendingCommands(ctx, acme, "r1", 1))(t)
	if len(all) != 2 || all[0].ID != ids[1] || all[1].ID != ids[2] || !all[0].Sent.Equal(start) {
		t.Errorf("pending are %+v", all)
	}
	status := func(id string, version int64, st wire.CommandState, want bool) {
		t.Helper()
		got, err := s.SetCommandStatus(ctx, acme, store.CommandStatus{Host: "r1", ID: id, Version: version, State: st, Detail: json.RawMessage(`{"v":1}`)})
		ok(t, err)
		equal(t, "applied", got, want)
	}
	status(ids[1], 1, store.CommandAccepted, true)
	status(ids[1], 3, store.CommandRunning, true)
	status(ids[1], 2, store.CommandAccepted, false) // overtaken
	status(ids[1], 3, store.CommandRunning, false)
	status(ids[1], 4, store.CommandFailed, true)
	status(ids[1], 5, store.CommandRunning, false)
	status(ids[1], 6, store.CommandSucceeded, false)
	c := must(s.Command(ctx, acme, ids[1]))(t)
	if c.State != store.CommandFailed || c.Version != 4 || string(c.Detail) != `{"v":1}` {
		t.Errorf("command is %+v", c)
	}
	for _, st := range []store.CommandStatus{{Host: "r2", ID: ids[0]}, {Host: "r1", ID: "nosuch"}} {
		st.State, st.Version = store.CommandRunning, 1
		wants(t, second(s.SetCommandStatus(ctx, acme, st)), store.ErrNotFound)
	}
	wants(t, second(s.SetCommandStatus(ctx, acme, store.CommandStatus{Host: "r1", ID: ids[0], Version: 1, State: "queued"})), store.ErrInvalid)
	equal(t, "pending", len(must(s.PendingCommands(ctx, acme, "r1", 0))(t)), 2)

	list, next, err := s.Commands(ctx, acme, store.CommandFilter{Host: "r1"}, store.Page{Limit: 2})
	ok(t, err)
	if len(list) != 2 || list[0].ID != ids[2] || next != ids[1] {
		t.Errorf("first page is %+v, %q", list, next)
	}
	list, next, err = s.Commands(ctx, acme, store.CommandFilter{Host: "r1", States: []wire.CommandState{store.CommandQueued}}, store.Page{After: next})
	ok(t, err)
	if len(list) != 1 || list[0].ID != ids[0] || next != "" {
		t.Errorf("second page is %+v, %q", list, next)
	}
}

func testCommandsExpire(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	queue := func(life time.Duration) string {
		return must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping", Expires: p.clock().Add(life)}))(t).ID
	}
	sent, running := queue(time.Minute), queue(time.Minute)
	equal(t, "pending", len(must(s.PendingCommands(ctx, acme, "r1", 0))(t)), 2)
	kept, longer := queue(time.Minute), queue(time.Hour)
	set := func(id string, version int64, st wire.CommandState) bool {
		t.Helper()
		return must(s.SetCommandStatus(ctx, acme, store.CommandStatus{Host: "r1", ID: id, Version: version, State: st}))(t)
	}
	set(running, 1, store.CommandRunning)
	p.wait(time.Minute)
	pending := must(s.PendingCommands(ctx, acme, "r1", 0))(t)
	if len(pending) != 1 || pending[0].ID != longer {
		t.Errorf("pending are %+v", pending)
	}
	equal(t, "too early", len(must(s.System().Expire(ctx))(t).Commands), 0)
	p.wait(store.Grace)
	e := must(s.System().Expire(ctx))(t)
	slices.Sort(e.Commands)
	if !slices.Equal(e.Commands, []string{sent, kept}) {
		t.Errorf("expired %v", e.Commands)
	}
	is := func(id string, want wire.CommandState) {
		t.Helper()
		equal(t, "state", must(s.Command(ctx, acme, id))(t).State, want)
	}
	is(kept, store.CommandTimedOut) // it never left
	is(sent, store.CommandUnknown)
	is(running, store.CommandRunning)
	// What the cloud assumed, the rack may correct; what is certain stays.
	equal(t, "not an end", set(sent, 1, store.CommandRunning), false)
	equal(t, "corrected", set(sent, 1, store.CommandSucceeded), true)
	equal(t, "corrected twice", set(sent, 2, store.CommandFailed), false)
	equal(t, "never ran", set(kept, 1, store.CommandSucceeded), false)
	p.wait(24 * time.Hour)
	ok(t, second(s.System().Expire(ctx)))
	is(running, store.CommandUnknown)
	is(longer, store.CommandUnknown)
}
