package firmware

import (
	"context"
	"sync"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
)

// hands are the looks of those who call tools without a task, each actor's own: nobody takes another's elements away by
// looking. An actor is a person of this machine or the owner of a token, so that there are few.
type hands struct {
	mu      sync.Mutex
	byActor map[string]*hand // guarded by mu
}

func (l *live) handOf(slot int, actor string) *hand {
	l.hands.mu.Lock()
	defer l.hands.mu.Unlock()
	h := l.hands.byActor[actor]
	if h == nil {
		h = &hand{slot: slot, observer: l.eyes.View()}
		if l.hands.byActor == nil {
			l.hands.byActor = map[string]*hand{}
		}
		l.hands.byActor[actor] = h
	}
	return h
}

// Tool implements action.Phone. Who may call an action may do what a task needs a permission for.
func (p readyPhone) Tool(ctx context.Context, fence action.Fence, actor string, d planner.Decision) (action.ToolOutcome, error) {
	h := p.handOf(p.slot, actor)
	env := tools.Env{
		Phone: p.phone, Scene: h.last(), Slot: p.slot, Serial: p.serial, Permissions: tools.Permissions(),
		Look: func(ctx context.Context) (*perception.Scene, error) { return h.observe(ctx, false) },
	}
	if fence != nil {
		env.Controls = p.phone.Under(fence)
	}
	if p.documents != nil {
		env.Documents = p.documents
	}
	out, err := tools.WithoutTask().Execute(ctx, env, d)
	if err != nil {
		return action.ToolOutcome{}, p.explain(ctx, d.Tool, "", err)
	}
	if out.Screenshot {
		if out.Scene, err = h.observe(ctx, true); err != nil {
			return action.ToolOutcome{}, p.explain(ctx, "observe", "", err)
		}
	}
	outcome := action.ToolOutcome{Wrote: out.Wrote, Text: out.Text, Result: out.Result}
	if out.Scene != nil {
		seen, err := observation(out.Scene, action.Want{})
		if err != nil {
			return outcome, err
		}
		outcome.Observation = &seen
	}
	return outcome, nil
}
