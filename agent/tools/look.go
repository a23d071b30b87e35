package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

var noArguments = json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`)

var observe = Tool{
	Name:        "observe",
	Description: "Look at the screen again.",
	Schema:      noArguments,
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(ctx context.Context, env Env, _ json.RawMessage, out *Outcome) error {
		_, err := out.look(ctx, env)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && env.Look != nil {
			return lookFailed(env, err)
		}
		return err
	},
}

var takeScreenshot = Tool{
	Name:        "take_screenshot",
	Description: "Show the picture of the screen in the next turn, for what the elements do not tell.",
	Schema:      noArguments,
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(_ context.Context, _ Env, _ json.RawMessage, out *Outcome) error {
		out.Screenshot = true
		return nil
	},
}

var wait = Tool{
	Name:        "wait",
	Description: "Do nothing for a while; then the screen is shown again. If you know what to wait for use wait_for.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"ms": {"type": "integer", "minimum": 100, "maximum": 10000, "description": "milliseconds"}},
		"required": ["ms"], "additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(ctx context.Context, _ Env, args json.RawMessage, _ *Outcome) error {
		call, err := decode[struct {
			MS int64 `json:"ms"`
		}](args)
		if err != nil {
			return err
		}
		return sleep(ctx, time.Duration(call.MS)*time.Millisecond)
	},
}

// Bounds of wait_for.
const (
	waitPause   = 500 * time.Millisecond
	waitDefault = 10 * time.Second
)

var waitFor = Tool{
	Name: "wait_for",
	Description: "Wait until an element appears, by its text, description or id; with gone, until it has disappeared; with package, until " +
		"that app is in front.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + wantedSchema + `,
		"gone": {"type": "boolean"},` + packageSchema + `,
		"timeout_ms": {"type": "integer", "minimum": 500, "maximum": 60000, "description": "10000 if left out"}},
		"additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[waitCall](args)
		if err != nil {
			return err
		}
		if (call.wanted == wanted{}) == (call.Package == "") || call.Gone && call.Package != "" {
			return badArgument(out.Tool, "$", "must have either text, description or id, perhaps with gone, or package")
		}
		limit := waitDefault
		if call.TimeoutMS > 0 {
			limit = time.Duration(call.TimeoutMS) * time.Millisecond
		}
		ok, err := out.insist(ctx, env, limit, waitPause, func(s *perception.Scene) bool { return call.met(s, out) })
		if err == nil && !ok {
			err = call.inVain(limit).With(env.place())
		}
		return err
	},
}

type waitCall struct {
	wanted
	Gone      bool   `json:"gone"`
	Package   string `json:"package"`
	TimeoutMS int64  `json:"timeout_ms"`
}

// met reports whether the scene shows what is waited for. A scene whose elements
// could not be read, or not all, does not show that something is gone.
func (c waitCall) met(s *perception.Scene, out *Outcome) bool {
	if c.Package != "" {
		return s.Package == c.Package
	}
	e := c.in(s)
	if c.Gone {
		return e == nil && s.NoTree != perception.NoTreeUnreadable && !slices.Contains(s.Missing, perception.PartMore)
	}
	out.Target = e
	return e != nil
}

func (c waitCall) inVain(limit time.Duration) *wire.Refusal {
	what := c.wanted.String() + " is still there"
	switch {
	case c.Package != "":
		what = c.Package + " is not in front"
	case !c.Gone:
		return wire.Refuse(wire.ElementMissing, map[string]any{"what": fmt.Sprintf("%s within %s", c.wanted, limit)})
	}
	return wire.Refuse(wire.PhoneTimeout, map[string]any{"what": what, "timeout_ms": limit.Milliseconds()})
}
