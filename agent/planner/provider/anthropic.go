package provider

import (
	"context"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"phonerack/agent/planner"
)

// messages is Anthropic Messages.
type messages struct{}

func (messages) encode(c *Client, req *planner.Request, place string) ([]byte, error) {
	o := &c.cfg.Options
	p := anthropic.MessageNewParams{Model: c.cfg.Model, MaxTokens: int64(o.maxTokens())}
	if req.SystemPrompt != "" {
		p.System = []anthropic.TextBlockParam{{Text: req.SystemPrompt}}
	}
	var blocks []anthropic.ContentBlockParamUnion
	if len(req.Screen) > 0 {
		blocks = append(blocks, anthropic.NewImageBlockBase64("image/jpeg", place))
	}
	p.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(append(blocks, anthropic.NewTextBlock(req.UserPrompt))...)}
	for _, t := range req.Tools {
		tool := &anthropic.ToolParam{
			Name: outgoingName(t.Name), InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.InputSchema),
		}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		if o.Strict {
			tool.Strict = anthropic.Bool(true)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	p.ToolChoice = messagesChoice(o, req.Tools)
	if o.Temperature != nil {
		p.Temperature = anthropic.Float(*o.Temperature)
	}
	switch o.Thinking {
	case "adaptive":
		p.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{}
	case "enabled":
		p.Thinking.OfEnabled = &anthropic.ThinkingConfigEnabledParam{BudgetTokens: int64(o.ThinkingTokens)}
	case "disabled":
		p.Thinking.OfDisabled = &anthropic.ThinkingConfigDisabledParam{}
	}
	if len(o.Extra) > 0 {
		p.SetExtraFields(o.extra())
	}
	return p.MarshalJSON()
}

func messagesChoice(o *Options, tools []planner.Tool) (u anthropic.ToolChoiceUnionParam) {
	single := anthropic.Bool(true)
	if o.OmitParallel {
		single = param.Opt[bool]{}
	}
	switch o.toolChoice(len(tools)) {
	case "required":
		u.OfAny = &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: single}
	case "named":
		u.OfTool = &anthropic.ToolChoiceToolParam{Name: outgoingName(tools[0].Name), DisableParallelToolUse: single}
	case "auto":
		u.OfAuto = &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: single}
	}
	return u
}

func (messages) send(ctx context.Context, c *Client, body []byte, x *exchange) error {
	opts := []option.RequestOption{
		option.WithoutOpenTelemetry(), // would ask the environment what to record
		option.WithBaseURL(c.base.String()),
		option.WithHTTPClient(x),
		option.WithMaxRetries(0),
		option.WithRequestTimeout(c.cfg.Timeout), // else the SDK sets one of its own by max_tokens, or refuses
	}
	switch {
	case c.cfg.Key.Empty():
	case c.cfg.Options.Auth == "bearer":
		opts = append(opts, option.WithAuthToken(c.cfg.Key.value()))
	case c.cfg.Options.Auth == "api-key":
		opts = append(opts, option.WithHeader("api-key", c.cfg.Key.value()))
	default:
		opts = append(opts, option.WithAPIKey(c.cfg.Key.value()))
	}
	var ignored []byte
	s := anthropic.NewMessageService(opts...) // reads nothing from the environment, as NewClient may
	_, err := s.New(ctx, anthropic.MessageNewParams{Model: c.cfg.Model, MaxTokens: 1},
		option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&ignored))
	return err
}

// messagesEnds are the stop reasons of Messages, and those that servers that
// imitate it send (sdk message.go; StopReason).
var messagesEnds = map[string]end{
	"tool_use": ended, "end_turn": ended, "stop_sequence": ended,
	"max_tokens": cutOff, "model_context_window_exceeded": cutOff, "refusal": declined, "pause_turn": unfinished,
}

func (messages) read(body []byte) (answer, error) {
	m, err := object(body)
	if err != nil {
		return answer{}, err
	}
	a := answer{model: m.text("model"), id: m.text("id")}
	if u, err := object(m["usage"]); err == nil {
		cached := u.count("cache_read_input_tokens")
		a.usage = Usage{In: u.count("input_tokens") + cached + u.count("cache_creation_input_tokens"), Out: u.count("output_tokens"), Cached: cached}
	}
	if a.fault = faultOf(m); a.fault != nil {
		return a, nil
	}
	a.reason = m.text("stop_reason")
	a.end = messagesEnds[a.reason]
	blocks, err := list(m["content"])
	if err != nil {
		return a, err
	}
	for _, raw := range blocks {
		b, err := object(raw)
		if err != nil {
			return a, err
		}
		switch b.text("type") {
		case "text":
			a.say(b.text("text"))
		case "tool_use":
			a.calls = append(a.calls, call{name: b.text("name"), arguments: b["input"]})
		}
	}
	if a.end == declined && len(a.said) == 0 {
		if d, err := object(m["stop_details"]); err == nil {
			a.say(strings.TrimSpace(d.text("category") + " " + d.text("explanation")))
		}
	}
	return a, nil
}
