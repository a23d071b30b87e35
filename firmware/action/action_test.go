package action_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	*action.Registry
	rack   *actiontest.Rack
	leases *lease.Table
	log    bytes.Buffer
}

func newBench() *bench {
	b := &bench{rack: actiontest.New()}
	start := time.Now()
	b.leases = lease.NewTable(lease.Options{Now: func() time.Duration { return time.Since(start) }})
	b.Registry = action.New(b.rack, b.leases, slog.New(slog.NewTextHandler(&b.log, nil)))
	return b
}

func (b *bench) call(who, name, args string) (string, error) {
	result, err := b.Call(context.Background(), action.Actor{Name: who, Role: action.Operator, Via: "test"}, name, json.RawMessage(args), action.Pipes{})
	encoded, _ := json.Marshal(result)
	return string(encoded), err
}

func TestActsReachThePhone(t *testing.T) {
	b := newBench()
	for _, c := range []struct{ name, args, want string }{
		{"tap", `{"slot":1,"x":5,"y":6}`, "tap 5 6"},
		{"tap", `{"slot":1,"element":3,"generation":7}`, "tap 103 200"},
		{"tap", `{"slot":1,"text":"Add"}`, "tap 3 300"},
		{"long_press", `{"slot":1,"x":5,"y":6}`, "long press 5 6 1s"},
		{"swipe", `{"slot":1,"x1":1,"y1":2,"x2":3,"y2":4}`, "swipe 1 2 3 4 300ms"},
		{"input_text", `{"slot":1,"text":"kettle"}`, "type kettle"},
		{"press_key", `{"slot":1,"key":"back"}`, "key back"},
		{"launch_app", `{"slot":1,"app":"com.example.shop"}`, "launch com.example.shop"},
	} {
		if _, err := b.call("lee", c.name, c.args); err != nil {
			t.Errorf("%s %s: %v", c.name, c.args, err)
		}
		if !strings.HasSuffix(b.rack.Log(), c.want) {
			t.Errorf("%s %s did %q, want %q", c.name, c.args, b.rack.Log(), c.want)
		}
	}
	if _, held := b.leases.Lookup(1); held {
		t.Error("an act kept its lease")
	}
	if strings.Contains(b.log.String(), "kettle") {
		t.Errorf("the audit log tells what was typed:\n%s", &b.log)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, args string
		code       wire.Code
		reason     string
	}{
		{"fly", `{}`, wire.UnknownAction, ""},
		{"tap", `{"slot":2,"x":1,"y":1}`, wire.SlotEmpty, ""},
		{"tap", `{"slot":9,"x":1,"y":1}`, wire.SlotUnknown, ""},
		{"hold", `{"slot":9}`, wire.SlotUnknown, ""},
		{"tap", `{"slot":1,"element":3,"generation":6}`, wire.StaleElement, ""},
		{"tap", `{"slot":1}`, wire.BadRequest, "exactly one of"},
		{"tap", `{"slot":1,"x":1}`, wire.BadRequest, "x and y"},
		{"tap", `{"slot":1,"x":1,"y":1,"text":"a"}`, wire.BadRequest, "exactly one of"},
		{"tap", `{"slot":1,"element":3}`, wire.BadRequest, "generation"},
		{"tap", `{"slot":"1","x":1,"y":1}`, wire.BadRequest, "slot"},
		{"tap", `{"slot":1,"x":1,"y":1,"z":1}`, wire.BadRequest, `unknown field "z"`},
		{"tap", `{"slot":1,"x":1,"y":1} {}`, wire.BadRequest, "after the arguments"},
		{"tap", `[]`, wire.BadRequest, ""},
		{"observe", `{"slot":1,"marks":true,"grid":true}`, wire.BadRequest, "marks and grid cannot be drawn on one picture: choose one"},
		{"push", `{"slot":1,"path":"sdcard/x"}`, wire.BadRequest, "begin with /"},
		{"shell", `{"slot":1}`, wire.BadRequest, "a command must be given"},
		{"task_run", `{"slot":1,"goal":" "}`, wire.BadRequest, "a goal must be given"},
		{"task_run", `{"slot":1,"goal":"x","steps":501}`, wire.BadRequest, "steps"},
		{"task_status", `{"id":"none"}`, wire.TaskUnknown, ""},
		{"hold", `{"slot":1,"seconds":3600}`, wire.BadRequest, "held for 15m0s at most"},
		// Numbers that, as nanoseconds, come round to about five minutes.
		{"hold", `{"slot":1,"seconds":18446744374}`, wire.BadRequest, "seconds must be"},
		{"task_run", `{"slot":1,"goal":"x","seconds":18446744374}`, wire.BadRequest, "seconds must be"},
		{"swipe", `{"slot":1,"x1":1,"y1":2,"x2":3,"y2":4,"ms":18446744073710}`, wire.BadRequest, "ms must be"},
		{"log", `{"level":"loud"}`, wire.BadRequest, "level must be"},
		{"log", `{"last":10001}`, wire.BadRequest, "last must be"},
	} {
		_, err := newBench().call("lee", c.name, c.args)
		if !wire.Is(err, c.code) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s %s: %v, want %s", c.name, c.args, err, c.code)
		}
		if c.code == wire.BadRequest && strings.Count(err.Error(), "was refused because") != 1 {
			t.Errorf("%s %s: a sentence within a sentence: %v", c.name, c.args, err)
		}
	}
}

func TestViewerMayLookButNotAct(t *testing.T) {
	b := newBench()
	viewer := action.Actor{Name: "ida", Role: action.Viewer}
	for _, d := range b.Definitions() {
		_, err := b.Call(t.Context(), viewer, d.Name, nil, action.Pipes{})
		if got := wire.Is(err, wire.Forbidden); got != (d.Role == action.Operator) {
			t.Errorf("%s needs %s: %v", d.Name, d.Role, err)
		}
	}
}

func TestHoldKeepsOthersOutAndItsHolderIn(t *testing.T) {
	b := newBench()
	if got, err := b.call("lee", "hold", `{"slot":1,"seconds":60}`); err != nil || !strings.Contains(got, `"who":"lee"`) {
		t.Fatal(got, err)
	}
	if _, err := b.call("kim", "tap", `{"slot":1,"x":1,"y":1}`); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("another's tap: %v", err)
	}
	if _, err := b.call("kim", "observe", `{"slot":1}`); err != nil {
		t.Errorf("another's look: %v", err)
	}
	if _, err := b.call("lee", "tap", `{"slot":1,"x":1,"y":1}`); err != nil {
		t.Errorf("the holder's tap: %v", err)
	}
	if _, err := b.call("kim", "release", `{"slot":1}`); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("another's release: %v", err)
	}
	if _, err := b.call("lee", "release", `{"slot":1}`); err != nil {
		t.Errorf("release: %v", err)
	}
	if _, err := b.call("kim", "tap", `{"slot":1,"x":1,"y":1}`); err != nil {
		t.Errorf("tap after release: %v", err)
	}
}

func TestActThatTakesTooLongNamesThePhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.rack.Block = make(chan struct{})
		_, err := b.call("lee", "tap", `{"slot":1,"x":1,"y":1}`)
		want := "The phone in slot 1 (R5CT) did not finish (tap) within 30000 ms; look at its screen and try again."
		if !wire.Is(err, wire.PhoneTimeout) || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})
}

func TestSchemasSayWhatIsNeeded(t *testing.T) {
	d, err := newBench().Definition("swipe")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal(d.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(schema.Required, " "); got != "slot x1 y1 x2 y2" {
		t.Errorf("required: %s", got)
	}
	if p := schema.Properties["ms"]; p.Type != "integer" || p.Description == "" {
		t.Errorf("ms: %+v", p)
	}
}

func FuzzArguments(f *testing.F) {
	b := newBench()
	b.Registry = action.New(b.rack, b.leases, slog.New(slog.DiscardHandler))
	var plain []action.Definition // a fuzzer has no streams to offer
	for _, d := range b.Definitions() {
		if d.Streams == action.NoStream {
			plain = append(plain, d)
		}
	}
	f.Add(0, `{"slot":1,"x":1,"y":1}`)
	f.Fuzz(func(t *testing.T, n int, args string) {
		d := plain[uint(n)%uint(len(plain))]
		_, err := b.Call(t.Context(), action.Actor{Name: "lee", Role: action.Operator}, d.Name, json.RawMessage(args), action.Pipes{})
		if wire.Is(err, wire.Internal) {
			t.Errorf("%s %s: %v", d.Name, args, err)
		}
	})
}
