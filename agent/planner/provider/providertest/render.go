package providertest

import (
	"encoding/json"
	"net/http"
	"strings"
)

type m = map[string]any

func render(a answer) Reply {
	return Reply{serve: func(t *turn) {
		if a.tokens == 0 {
			a.tokens = TokensOut
		}
		if a.end == disguisedLimit {
			a.tokens = t.seen.MaxTokens
		}
		switch t.seen.Protocol {
		case Messages:
			t.messages(a)
		case ChatCompletions:
			t.send(http.StatusOK, t.chat(a))
		case Responses:
			t.send(http.StatusOK, t.responses(a))
		}
	}}
}

// messages answers as Messages does. Arguments that are no JSON cannot be put
// there, so the body is not JSON either.
func (t *turn) messages(a answer) {
	content := []any{}
	if a.text != "" {
		content = append(content, m{"type": "text", "text": a.text})
	}
	broken := ""
	for i, c := range a.calls {
		input := json.RawMessage(c.Arguments)
		if !json.Valid(input) {
			broken, input = c.Arguments, json.RawMessage(`"(broken)"`)
		}
		content = append(content, m{"type": "tool_use", "id": "toolu_" + string(rune('a'+i)), "name": c.Name, "input": input})
	}
	body := m{
		"id": "msg_1", "type": "message", "role": "assistant", "model": Model, "content": content, "stop_sequence": nil,
		"stop_reason": map[ending]string{
			whole: "tool_use", disguisedLimit: "tool_use", limit: "max_tokens", refused: "refusal", filtered: "refusal", paused: "pause_turn",
		}[a.end],
		"usage": m{
			"input_tokens": TokensIn - TokensCached, "cache_read_input_tokens": TokensCached, "cache_creation_input_tokens": 0,
			"output_tokens": a.tokens,
		},
	}
	if a.end == whole && len(a.calls) == 0 && !a.dropped {
		body["stop_reason"] = "end_turn"
	}
	if broken == "" {
		t.send(http.StatusOK, body)
		return
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	t.w.Header().Set("Request-Id", RequestID)
	Raw(http.StatusOK, "application/json", replaceOnce(string(b), `"(broken)"`, broken)).serve(t)
}

func (t *turn) chat(a answer) m {
	msg := m{"role": "assistant", "content": nil, "refusal": nil}
	if a.text != "" {
		msg["content"] = a.text
	}
	finish := map[ending]string{
		whole: "tool_calls", disguisedLimit: "tool_calls", limit: "length", refused: "stop", filtered: "content_filter", paused: "in_progress",
	}[a.end]
	calls := []any{}
	for i, c := range a.calls {
		calls = append(calls, m{
			"id": "call_" + string(rune('a'+i)), "type": "function", "function": m{"name": c.Name, "arguments": c.Arguments},
		})
	}
	switch {
	case len(calls) > 0 || a.dropped:
		msg["tool_calls"] = calls
	case a.end == whole:
		finish = "stop"
	}
	if a.end == refused {
		msg["refusal"], msg["content"] = a.text, nil
	}
	return m{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1790000000, "model": Model,
		"choices": []any{m{"index": 0, "message": msg, "finish_reason": finish, "logprobs": nil}},
		"usage": m{
			"prompt_tokens": TokensIn, "completion_tokens": a.tokens, "total_tokens": TokensIn + a.tokens,
			"prompt_tokens_details": m{"cached_tokens": TokensCached},
		},
	}
}

func (t *turn) responses(a answer) m {
	output := []any{m{"type": "reasoning", "id": "rs_1", "summary": []any{}}}
	part := m{"type": "output_text", "text": a.text, "annotations": []any{}}
	if a.end == refused {
		part = m{"type": "refusal", "refusal": a.text}
	}
	if a.text != "" {
		output = append(output, m{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{part}})
	}
	itemStatus := "completed"
	if a.end == limit {
		itemStatus = "incomplete"
	}
	for i, c := range a.calls {
		output = append(output, m{
			"type": "function_call", "id": "fc_" + string(rune('a'+i)), "call_id": "call_" + string(rune('a'+i)), "name": c.Name,
			"arguments": c.Arguments, "status": itemStatus,
		})
	}
	if a.dropped {
		output = []any{}
	}
	body := m{
		"id": "resp_1", "object": "response", "created_at": 1790000000, "model": Model, "status": "completed", "error": nil,
		"incomplete_details": nil, "output": output,
		"usage": m{
			"input_tokens": TokensIn, "output_tokens": a.tokens, "total_tokens": TokensIn + a.tokens,
			"input_tokens_details": m{"cached_tokens": TokensCached},
		},
	}
	switch a.end {
	case limit:
		body["status"], body["incomplete_details"] = "incomplete", m{"reason": "max_output_tokens"}
	case filtered:
		body["status"], body["incomplete_details"] = "incomplete", m{"reason": "content_filter"}
	case paused:
		body["status"] = "in_progress"
	}
	return body
}

// kinds are the types of errors by their status: Anthropic's and OpenAI's.
var kinds = map[int][2]string{
	400: {"invalid_request_error", "invalid_request_error"},
	401: {"authentication_error", "invalid_request_error"},
	403: {"permission_error", "insufficient_permissions"},
	404: {"not_found_error", "invalid_request_error"},
	413: {"request_too_large", "invalid_request_error"},
	429: {"rate_limit_error", "rate_limit_error"},
	500: {"api_error", "server_error"},
	503: {"api_error", "service_unavailable_error"},
	529: {"overloaded_error", "overloaded_error"},
}

func (t *turn) fault(status int, message string) m {
	kind := kinds[status]
	if t.seen.Protocol == Messages {
		return m{"type": "error", "error": m{"type": kind[0], "message": message}, "request_id": RequestID}
	}
	return m{"error": m{"message": message, "type": kind[1], "param": nil, "code": nil}}
}

func replaceOnce(s, old, with string) string {
	before, after, _ := strings.Cut(s, old)
	return before + with + after
}
