package replay_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner"
	"phonerack/agent/runner/replay"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// calls are decisions in their order.
type calls struct {
	list []string // "tool arguments"
}

func (c *calls) Decide(context.Context, planner.Request) (planner.Decision, error) {
	tool, args, _ := strings.Cut(c.list[0], " ")
	c.list = c.list[1:]
	return planner.Decision{Tool: tool, Arguments: json.RawMessage(args)}, nil
}

// TestAReplayCallsNoServer: what a tool of elsewhere has brought, or failed with, is in the record.
func TestAReplayCallsNoServer(t *testing.T) {
	dir, called := t.TempDir(), 0
	registry := tools.Default().With(tools.Elsewhere("mcp:files/read", "reads", json.RawMessage(`{"type":"object"}`), func(_ context.Context, args json.RawMessage) (tools.Answer, error) {
		called++
		if string(args) == `{"path":"none"}` {
			return tools.Answer{Sent: true, Unknown: true}, wire.Refuse(wire.ServerFailed, map[string]any{"server": "files", "tool": "read", "reason": "has ended"})
		}
		return tools.Answer{Text: "a kettle", Sent: true}, nil
	}))
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil, nil)
		r := &runner.Runner{
			Observer: perception.NewObserver(p, perception.Options{}), Controls: p.Under(live{}), Registry: registry, Slot: 1, Phone: "SIM7", Trajectory: dir,
			Planner: &calls{[]string{`mcp:files/read {"path":"list"}`, `mcp:files/read {"path":"none"}`, `launch_app {"package":"com.phonerack.shop"}`, `finish {"message":"done"}`}},
		}
		if result, err := r.Run(t.Context(), runner.Task{Goal: goal, Skills: []string{"local/files"}}); err != nil || result.Outcome != runner.Succeeded {
			t.Fatalf("%+v, %v", result, err)
		}
	})
	report, err := again(t, dir, nil, replay.Options{Fast: true})
	if err != nil || report.Steps != 4 || report.Result.Outcome != runner.Succeeded {
		t.Errorf("%+v, %v", report, err)
	}
	rec, err := replay.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if called != 2 || len(rec.Task.Skills) != 1 || rec.Task.Skills[0] != "local/files" || rec.Steps[0].Result != "a kettle" {
		t.Errorf("the server was called %d times; %+v", called, rec.Task)
	}
}
