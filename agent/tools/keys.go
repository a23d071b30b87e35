package tools

import (
	"context"
	"encoding/json"
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

var setClipboard = Tool{
	Name:        "set_clipboard",
	Description: "Put text on the phone's clipboard, in the place of what is there.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"text": {"type": "string", "minLength": 1, "maxLength": 4000}},
		"required": ["text"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, Idempotent: true},
	Role:        Operator,
	Permission:  PermitClipboard,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Text string `json:"text"`
		}](args)
		if err != nil {
			return err
		}
		return out.write(ctx, env, "setting of the clipboard", func() error { return env.Controls.SetClipboard(ctx, call.Text) })
	},
}
