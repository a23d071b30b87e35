package tools

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"phonerack/sync/wire"
)

var pressKey = Tool{
	Name:        "press_key",
	Description: "Press a key of the phone. back closes the keyboard, a dialog or a page; home leaves the app.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"key": {"type": "string", "enum": ["back", "home", "enter", "delete", "tab", "search", "app_switch", "wakeup"]}},
		"required": ["key"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Key string `json:"key"`
		}](args)
		if err != nil {
			return err
		}
		return out.write(ctx, env, call.Key, func() error { return env.Controls.Key(ctx, call.Key) })
	},
}

// packageName is Android's form of an application id.
var packageName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)

var launchApp = Tool{
	Name:        "launch_app",
	Description: "Start an app, or bring it to the front, by its package name such as com.android.settings.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"package": {"type": "string", "minLength": 3, "maxLength": 255}},
		"required": ["package"], "additionalProperties": false}`),
	Annotations: Annotations{Idempotent: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Package string `json:"package"`
		}](args)
		if err != nil {
			return err
		}
		if !packageName.MatchString(call.Package) {
			return wire.Refuse(wire.BadArguments, map[string]any{"tool": out.Tool, "path": "$.package", "reason": "is not a package name"})
		}
		err = out.write(ctx, env, "start of "+call.Package, func() error { return env.Controls.Launch(ctx, call.Package) })
		if wire.Is(err, wire.AppMissing) {
			return wire.Refuse(wire.AppMissing, map[string]any{"app": call.Package}).With(env.place()).Because(err)
		}
		return err
	},
}

var wait = Tool{
	Name:        "wait",
	Description: "Do nothing for a while, for example while a page loads; then the screen is shown again.",
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

var finish = Tool{
	Name: "finish",
	Description: "End the task: with success only when the screen shows that the goal is reached, " +
		"without it when the goal cannot be reached. The message says what was done or what stands in the way.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"success": {"type": "boolean"},
		"message": {"type": "string", "maxLength": 2000}},
		"required": ["success", "message"], "additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(_ context.Context, _ Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Success bool   `json:"success"`
			Message string `json:"message"`
		}](args)
		if err != nil {
			return err
		}
		out.Finished, out.Success, out.Message = true, call.Success, call.Message
		return nil
	},
}
