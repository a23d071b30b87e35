package fleet_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

func TestAnOrderThatCannotBeIsNotQueued(t *testing.T) {
	b := newBench(t)
	b.rack("r1")
	for name, c := range map[string]struct {
		n    fleet.NewCommand
		code wire.Code
	}{
		"an unknown name":        {fleet.NewCommand{Rack: "r1", Name: "dance"}, wire.BadRequest},
		"no rack":                {fleet.NewCommand{Name: fleet.Ping}, wire.BadRequest},
		"a rack that is none":    {fleet.NewCommand{Rack: "r9", Name: fleet.Ping}, wire.NotFound},
		"no slot":                {fleet.NewCommand{Rack: "r1", Name: fleet.Screenshot}, wire.BadRequest},
		"no slot to restart":     {fleet.NewCommand{Rack: "r1", Name: fleet.Reboot}, wire.BadRequest},
		"a slot too high":        {fleet.NewCommand{Rack: "r1", Slot: 1000, Name: fleet.Ping}, wire.BadRequest},
		"a slot below zero":      {fleet.NewCommand{Rack: "r1", Slot: -1, Name: fleet.Ping}, wire.BadRequest},
		"arguments for none":     {fleet.NewCommand{Rack: "r1", Name: fleet.Ping, Args: json.RawMessage(`{"a":1}`)}, wire.BadRequest},
		"arguments of no kind":   {fleet.NewCommand{Rack: "r1", Name: fleet.Identify, Args: json.RawMessage(`[1]`)}, wire.BadRequest},
		"arguments of no use":    {fleet.NewCommand{Rack: "r1", Name: fleet.Identify, Args: json.RawMessage(`{"seconds":1,"more":"<<<"}`)}, wire.BadRequest},
		"expired before 1970":    {fleet.NewCommand{Rack: "r1", Name: fleet.Ping, Expires: -1}, wire.BadRequest},
		"a hub that is a word":   {fleet.NewCommand{Rack: "r1", Slot: 1, Name: fleet.PowerCycle, Args: json.RawMessage(`{"hub":"A"}`)}, wire.BadRequest},
		"power with more":        {fleet.NewCommand{Rack: "r1", Slot: 1, Name: fleet.PowerOff, Args: json.RawMessage(`{"hub":true,"now":1}`)}, wire.BadRequest},
		"power of no slot":       {fleet.NewCommand{Rack: "r1", Name: fleet.PowerOff}, wire.BadRequest},
		"too short a quarantine": {fleet.NewCommand{Rack: "r1", Slot: 1, Name: fleet.Quarantine, Args: json.RawMessage(`{"seconds":599}`)}, wire.BadRequest},
		"too long a reason":      {fleet.NewCommand{Rack: "r1", Slot: 1, Name: fleet.Quarantine, Args: json.RawMessage(`{"reason":"` + strings.Repeat("x", 201) + `"}`)}, wire.BadRequest},
		"too many seconds":       {fleet.NewCommand{Rack: "r1", Name: fleet.Identify, Args: json.RawMessage(`{"seconds":601}`)}, wire.BadRequest},
		"expired":                {fleet.NewCommand{Rack: "r1", Name: fleet.Ping, Expires: 1}, wire.BadRequest},
		"later than seven days":  {fleet.NewCommand{Rack: "r1", Name: fleet.Ping, Expires: b.clock().Add(8 * 24 * time.Hour).UnixMilli()}, wire.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Send(t.Context(), acme, c.n)
			b.wants(err, c.code)
		})
	}
	_, err := b.Send(t.Context(), other, fleet.NewCommand{Rack: "r1", Name: fleet.Ping})
	b.wants(err, wire.NotFound)
	if types, _ := b.heard(); types != "" {
		t.Errorf("pushed %s", types)
	}
}

func TestOrdersArePushedFromTheOldestThatWasNotTaken(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	if _, err := b.State(ctx, c, wire.State{State: wire.Offline, Generation: 1, Session: 1}); err != nil {
		t.Fatal(err)
	}
	send := func(name string, slot int) fleet.Command {
		t.Helper()
		v, err := b.Send(ctx, acme, fleet.NewCommand{Rack: "r1", Slot: slot, Name: name})
		b.ok(err)
		return v
	}
	first := send(fleet.Ping, 0)
	if types, _ := b.heard(); types != "" || first.Sent != 0 || first.Seq != 1 {
		t.Errorf("pushed %q, %+v", types, first)
	}
	b.hello(c, 1, 2)
	list, err := b.Pending(ctx, c, wire.Pending{})
	b.ok(err)
	if len(list.Commands) != 1 || list.Commands[0].CommandID != first.CommandID || !list.Commands[0].Idempotent || list.More {
		t.Errorf("%+v", list)
	}
	second := send(fleet.Reboot, 2)
	types, bodies := b.heard()
	if types != "cmd.execute r1, cmd.execute r1" || bodies[0].(wire.Command).Seq != 1 || bodies[1].(wire.Command).Seq != 2 || bodies[1].(wire.Command).Idempotent {
		t.Errorf("%s: %+v", types, bodies)
	}
	say := func(id string, version int, s wire.CommandState) wire.Ack {
		t.Helper()
		ack, err := b.CommandStatus(ctx, c, wire.CommandStatus{CommandID: id, Version: version, Status: s, Progress: 10 * version}, nil)
		b.ok(err)
		return ack
	}
	say(first.CommandID, 1, wire.CommandAccepted)
	b.heard()
	_, err = b.Heartbeat(ctx, c, wire.Heartbeat{}) // reminds of what was not taken
	b.ok(err)
	if types, bodies = b.heard(); types != "cmd.execute r1" || bodies[0].(wire.Command).CommandID != second.CommandID {
		t.Errorf("%s: %+v", types, bodies)
	}
	say(second.CommandID, 3, wire.CommandRunning)
	if ack := say(second.CommandID, 2, wire.CommandAccepted); !ack.Ignored {
		t.Error("an older version was taken")
	}
	say(second.CommandID, 4, wire.CommandUnknown)
	v, err := b.Command(ctx, acme, second.CommandID)
	b.ok(err)
	if v.State != wire.CommandUnknown || v.Progress != 40 {
		t.Errorf("%+v", v)
	}
	for _, bad := range []wire.CommandStatus{{Version: 0}, {Version: 1, Progress: 101}, {Version: 1, Status: "splendid"}} {
		bad.CommandID = first.CommandID
		_, err := b.CommandStatus(ctx, c, bad, nil)
		b.wants(err, wire.BadRequest)
	}
	_, err = b.CommandStatus(ctx, b.rack("r2"), wire.CommandStatus{CommandID: first.CommandID, Version: 9, Status: wire.CommandFailed}, nil)
	b.wants(err, wire.NotFound)
}

func TestPicturesAreFewAndShortLived(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	order := func(name string) string {
		t.Helper()
		v, err := b.Send(ctx, acme, fleet.NewCommand{Rack: "r1", Slot: 1, Name: name})
		b.ok(err)
		return v.CommandID
	}
	bring := func(id string, picture []byte) {
		t.Helper()
		_, err := b.CommandStatus(ctx, c, wire.CommandStatus{CommandID: id, Version: 1, Status: wire.CommandSucceeded}, picture)
		b.ok(err)
	}
	gone := func(op fleet.Operator, id string, code wire.Code) {
		t.Helper()
		_, err := b.Picture(ctx, op, id)
		b.wants(err, code)
	}
	first := order(fleet.Screenshot)
	gone(acme, first, wire.PictureGone)
	bring(first, []byte("first"))
	if got, err := b.Picture(ctx, acme, first); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	gone(other, first, wire.NotFound)
	_, err := b.CommandStatus(ctx, c, wire.CommandStatus{CommandID: first, Version: 2, Status: wire.CommandSucceeded}, []byte("another"))
	b.ok(err)
	if got, _ := b.Picture(ctx, acme, first); string(got) != "first" {
		t.Errorf("a command that is over has brought %q", got)
	}
	ping := order(fleet.Ping)
	bring(ping, []byte("of a ping"))
	gone(acme, ping, wire.PictureGone)
	for range 64 {
		bring(order(fleet.Screenshot), []byte("x"))
	}
	gone(acme, first, wire.PictureGone) // it was the oldest of 65
	large := order(fleet.Screenshot)
	bring(large, bytes.Repeat([]byte("x"), 20<<20))
	next := order(fleet.Screenshot)
	bring(next, bytes.Repeat([]byte("x"), 20<<20))
	gone(acme, large, wire.PictureGone) // together they are above the bound
	if _, err := b.Picture(ctx, acme, next); err != nil {
		t.Error(err)
	}
	b.wait(10 * time.Minute)
	gone(acme, next, wire.PictureGone)
}
