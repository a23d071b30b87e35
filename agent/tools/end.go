package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// maxOptions bounds the answers that a question offers.
const maxOptions = 6

var askHuman = Tool{
	Name: "ask_human",
	Description: "Ask the person behind the task, and wait for the answer: what you cannot know, or a decision that is theirs. " +
		"options are up to 6 short answers to choose from.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"question": {"type": "string", "minLength": 1, "maxLength": 1000},
		"options": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 100}}},
		"required": ["question"], "additionalProperties": false}`),
	Annotations: Annotations{OpenWorld: true},
	Role:        Operator,
	run: func(_ context.Context, _ Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Question string   `json:"question"`
			Options  []string `json:"options"`
		}](args)
		if err != nil {
			return err
		}
		if strings.TrimSpace(call.Question) == "" {
			return badArgument(out.Tool, "$.question", "must not be empty")
		}
		if len(call.Options) > maxOptions {
			return badArgument(out.Tool, "$.options", fmt.Sprintf("must have at most %d entries", maxOptions))
		}
		seen := map[string]bool{}
		for i, o := range call.Options {
			if o = strings.TrimSpace(o); o == "" || seen[o] {
				return badArgument(out.Tool, fmt.Sprintf("$.options[%d]", i), "must be different from the others, and not empty")
			}
			seen[o] = true
		}
		out.Ask = &Question{Text: call.Question, Options: call.Options}
		return nil
	},
}

var finish = Tool{
	Name: "finish",
	Description: "End the task once the screen shows that the goal is reached. message says what was done; result holds what the goal asked " +
		"to find out.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"success": {"type": "boolean", "description": "true if left out"},
		"message": {"type": "string", "maxLength": 2000},
		"result": {"type": "object"}},
		"required": ["message"], "additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(_ context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Success *bool           `json:"success"`
			Message string          `json:"message"`
			Result  json.RawMessage `json:"result"`
		}](args)
		if err != nil {
			return err
		}
		if call.Result != nil {
			var b bytes.Buffer
			if err := json.Compact(&b, call.Result); err != nil {
				return wire.Refuse(wire.Internal, nil).Because(err)
			}
			if utf8.RuneCount(b.Bytes()) > MaxResult {
				return badArgument(out.Tool, "$.result", fmt.Sprintf("must have at most %d characters", MaxResult))
			}
			out.Object = b.Bytes()
		}
		success := call.Success == nil || *call.Success
		if success {
			if err := env.Result.Check(out.Object); err != nil {
				out.Object = nil
				return unfit(out.Tool, err)
			}
		}
		out.Finished, out.Success, out.Message = true, success, call.Message
		return nil
	},
}

// unfit tells what of a result its task does not take.
func unfit(tool string, err error) error {
	if e, ok := errors.AsType[*resultschema.Error](err); ok {
		return badArgument(tool, e.Path, e.Reason)
	}
	return wire.Refuse(wire.Internal, nil).Because(err)
}

var fail = Tool{
	Name:        "fail",
	Description: "End the task because its goal cannot be reached. reason says what stands in the way.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"reason": {"type": "string", "minLength": 1, "maxLength": 2000}},
		"required": ["reason"], "additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(_ context.Context, _ Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Reason string `json:"reason"`
		}](args)
		if err != nil {
			return err
		}
		out.Finished, out.Message = true, call.Reason
		return nil
	},
}
