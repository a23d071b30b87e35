package action_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// TestThePageNamesEachAction: docs/rackd.md lists the actions, those with streams apart.
func TestThePageNamesEachAction(t *testing.T) {
	page, err := os.ReadFile("../../docs/rackd.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\nThe actions are ")
	list, _, found := strings.Cut(list, ". Besides, each of the [tools]")
	plain, streams, apart := strings.Cut(list, "and with streams ")
	if !found || !apart {
		t.Fatal("the page has no list of actions")
	}
	var named []string
	for _, part := range []struct{ text, mark string }{{plain, ""}, {streams, " streams"}} {
		for name := range strings.FieldsFuncSeq(part.text, func(r rune) bool { return strings.ContainsRune(" ,\n", r) }) {
			named = append(named, strings.Trim(name, "`")+part.mark)
		}
	}
	var there []string
	for _, d := range newBench().Definitions() {
		if strings.HasPrefix(d.Name, "tool_") {
			continue
		}
		if d.Streams != action.NoStream {
			d.Name += " streams"
		}
		there = append(there, d.Name)
	}
	slices.Sort(named)
	slices.Sort(there)
	if diff := cmp.Diff(there, named); diff != "" {
		t.Errorf("the actions (-) and the page (+): %s", diff)
	}
}

// TestEachToolIsAnAction holds the actions to what package tools says of its tools.
func TestEachToolIsAnAction(t *testing.T) {
	b := newBench()
	left := map[string]bool{"finish": true, "fail": true, "ask_human": true, "install_app": true, "pull_file": true}
	for _, tool := range tools.Default().Tools() {
		d, err := b.Definition(action.ToolAction(tool.Name))
		if left[tool.Name] {
			if !wire.Is(err, wire.UnknownAction) {
				t.Errorf("%s, which needs a task, is an action: %v", tool.Name, err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		operator := tool.Role == tools.Operator
		if (d.Role == action.Operator) != operator || d.NeedsLease != operator || d.Idempotent != tool.Annotations.Idempotent {
			t.Errorf("%+v", d)
		}
		if !tool.Annotations.ReadOnly && !d.NeedsLease {
			t.Errorf("%s writes without a lease", d.Name)
		}
		var schema struct {
			Properties struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal(schema.Properties.Arguments, &got) != nil || json.Unmarshal(tool.Schema, &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: schema %s", d.Name, schema.Properties.Arguments)
		}
		if _, err := planner.ParseSchema(d.Schema); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestToolsActUnderALease(t *testing.T) {
	b := newBench()
	if got, err := b.call("lee", "tool_tap", `{"slot":1,"arguments":{"element":3,"generation":7}}`); err != nil || !strings.Contains(got, `"wrote":true`) {
		t.Errorf("%s %v", got, err)
	}
	if got, err := b.call("lee", "tool_observe", `{"slot":1}`); err != nil || !strings.Contains(got, "lee looks") {
		t.Errorf("%s %v", got, err)
	}
	if want := "tap {\"element\":3,\"generation\":7}\nobserve {}"; b.rack.Log() != want {
		t.Errorf("done: %q", b.rack.Log())
	}
	held, err := b.leases.Acquire(1, lease.Holder{Kind: lease.Hold, Who: "kim"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if _, err := b.call("lee", "tool_tap", `{"slot":1,"arguments":{"element":3,"generation":7}}`); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("during another's hold: %v", err)
	}
	if _, err := b.call("lee", "tool_observe", `{"slot":1}`); err != nil {
		t.Errorf("looking: %v", err)
	}
	viewer := action.Actor{Name: "ida", Role: action.Viewer, Via: "test"}
	if _, err := b.Call(context.Background(), viewer, "tool_tap", json.RawMessage(`{"slot":1}`), action.Pipes{}); !wire.Is(err, wire.Forbidden) {
		t.Errorf("a viewer: %v", err)
	}
	if _, err := b.call("lee", "tool_tap", `{"slot":1,"element":3}`); !wire.Is(err, wire.BadRequest) {
		t.Errorf("arguments beside the slot: %v", err)
	}
}

func TestMCPIsAConversation(t *testing.T) {
	b := newBench()
	var out bytes.Buffer
	operator := action.Actor{Name: "lee", Role: action.Operator, Via: "test"}
	if _, err := b.Call(context.Background(), operator, "mcp", nil, action.Pipes{In: strings.NewReader("hello"), Out: &out}); err != nil || out.String() != "lee\nhello" {
		t.Errorf("%q %v", out.String(), err)
	}
}
