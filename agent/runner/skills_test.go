package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// elsewhere is a tool of a server that answers with what is given.
func elsewhere(name string, call tools.Call) tools.Tool {
	return tools.Elsewhere(name, "reads", json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`), call)
}

func TestAPlannerIsHeldToTheToolsOfItsTask(t *testing.T) {
	bubble(t, "a tool that is not offered", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, `press_key {"key":"home"}`, `mcp:files/read {"path":"a"}`, `mcp:files/read {"file":"a"}`, finishWell)
		called := 0
		r.Registry = tools.Default().Where(func(t tools.Tool) bool { return t.Name == "finish" || t.Name == "wait" }).With(
			elsewhere("mcp:files/read", func(_ context.Context, args json.RawMessage) (tools.Answer, error) {
				called++
				return tools.Answer{Text: "it says\nscreen 7: forged", Sent: true}, nil
			}))
		bounded := task
		bounded.Knowledge = "skill 1: \"catalog/tips\"\n"
		result := run(t, r, bounded)
		wantEnd(t, result, Succeeded, "")
		if len(s.did) > 0 || called != 1 || !result.Wrote {
			t.Errorf("the phone was told %q, the server %d times, wrote %v", s.did, called, result.Wrote)
		}
		for _, req := range p.requests {
			if len(req.Tools) != 3 || !strings.HasSuffix(req.SystemPrompt, "\nskill 1: \"catalog/tips\"\n") {
				t.Errorf("%d tools, and the system prompt ends with %q", len(req.Tools), req.SystemPrompt[len(req.SystemPrompt)-60:])
			}
		}
		last := p.requests[len(p.requests)-1].UserPrompt
		for _, want := range []string{
			"past 1: press_key {\"key\":\"home\"} -> failed unknown_tool ", "past 2: mcp:files/read {\"path\":\"a\"} -> done; no change\n", "past 3: mcp:files/read {\"file\":\"a\"} -> failed bad_arguments ",
			"\nresult 2: \"it says\\nscreen 7: forged\"\n",
		} {
			if !strings.Contains(last, want) {
				t.Errorf("%q is not in\n%s", want, last)
			}
		}
	})
}

func TestACallElsewhereIsNeverRepeatedAndSaysWhatIsKnown(t *testing.T) {
	bubble(t, "no answer", func(t *testing.T) {
		r, p := newRunner(&stage{app: "a.shop"}, `mcp:files/read {"path":"a"}`, finishWell)
		called := 0
		r.Registry = tools.Default().With(elsewhere("mcp:files/read", func(context.Context, json.RawMessage) (tools.Answer, error) {
			called++
			return tools.Answer{Sent: true, Unknown: true}, wire.Refuse(wire.ServerFailed, map[string]any{"server": "files", "tool": "read", "reason": "has ended"})
		}))
		result := run(t, r, task)
		wantEnd(t, result, Succeeded, "")
		if last := p.requests[1].UserPrompt; called != 1 || !result.Wrote || !strings.Contains(last, "-> unknown server_failed ") {
			t.Errorf("called %d times, wrote %v\n%s", called, result.Wrote, last)
		}
	})
}

// TestATaskWhoseSkillIsWithdrawnAsksNothingMore: it is looked at before each question, also while the planner is out of reach.
func TestATaskWhoseSkillIsWithdrawnAsksNothingMore(t *testing.T) {
	withdrawn := wire.Refuse(wire.SkillWithdrawn, map[string]any{"skill": "catalog/tips"})
	for name, answers := range map[string][]any{
		"between two turns": {`wait {"ms":100}`, finishWell},
		"during an outage":  {wire.Refuse(wire.PlannerUnreachable, nil), finishWell},
	} {
		bubble(t, name, func(t *testing.T) {
			r, p := newRunner(&stage{app: "a.shop"}, answers...)
			bounded := task
			bounded.Allowed = func() error {
				if len(p.requests) > 0 {
					return withdrawn
				}
				return nil
			}
			wantEnd(t, run(t, r, bounded), Failed, wire.SkillWithdrawn)
			if len(p.requests) != 1 {
				t.Errorf("%d questions", len(p.requests))
			}
		})
	}
}

func TestATaskThatEndsDuringACallElsewhereEndsAtOnce(t *testing.T) {
	bubble(t, "the deadline", func(t *testing.T) {
		r, _ := newRunner(&stage{app: "a.shop"}, `mcp:files/read {"path":"a"}`, finishWell)
		r.Registry = tools.Default().With(elsewhere("mcp:files/read", func(ctx context.Context, _ json.RawMessage) (tools.Answer, error) {
			<-ctx.Done()
			return tools.Answer{Sent: true, Unknown: true}, errors.New("cut")
		}))
		bounded := task
		bounded.Deadline = time.Now().Add(20 * time.Second)
		wantEnd(t, run(t, r, bounded), Failed, wire.DeadlinePassed)
	})
}
