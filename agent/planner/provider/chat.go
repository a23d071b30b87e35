package provider

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"phonerack/agent/planner"
)

// chat is OpenAI Chat Completions, and what imitates it.
type chat struct{}

func (chat) encode(c *Client, req *planner.Request, place string) ([]byte, error) {
	o := &c.cfg.Options
	p := openai.ChatCompletionNewParams{Model: c.cfg.Model, ReasoningEffort: shared.ReasoningEffort(o.Effort)}
	if req.SystemPrompt != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.SystemPrompt))
	}
	if len(req.Screen) == 0 {
		p.Messages = append(p.Messages, openai.UserMessage(req.UserPrompt)) // not all servers know content parts
	} else {
		image := openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/jpeg;base64," + place, Detail: o.ImageDetail}
		p.Messages = append(p.Messages, openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.ImageContentPart(image), openai.TextContentPart(req.UserPrompt),
		}))
	}
	for _, t := range req.Tools {
		f, err := chatFunction(t, o.Strict)
		if err != nil {
			return nil, err
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	switch choice := o.toolChoice(len(req.Tools)); choice {
	case "required", "auto":
		p.ToolChoice.OfAuto = openai.String(choice)
	case "named":
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: outgoingName(req.Tools[0].Name)})
	}
	if !o.OmitParallel {
		p.ParallelToolCalls = openai.Bool(false)
	}
	if o.Temperature != nil {
		p.Temperature = openai.Float(*o.Temperature)
	}
	atHome := c.base.Hostname() == "api.openai.com"
	if o.MaxTokensField == "max_completion_tokens" || (o.MaxTokensField == "" && atHome) {
		p.MaxCompletionTokens = openai.Int(int64(o.maxTokens()))
	} else {
		p.MaxTokens = openai.Int(int64(o.maxTokens()))
	}
	if o.Store == "never" || (o.Store == "" && atHome) {
		p.Store = openai.Bool(false)
	}
	if len(o.Extra) > 0 {
		p.SetExtraFields(o.extra())
	}
	return p.MarshalJSON()
}

func (chat) send(ctx context.Context, c *Client, body []byte, x *exchange) error {
	var ignored []byte
	s := openai.NewChatCompletionService(c.openAI(x)...)
	_, err := s.New(ctx, openai.ChatCompletionNewParams{Model: c.cfg.Model},
		option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&ignored))
	return err
}

// openAI are the options of OpenAI's services. The services read nothing from
// the environment; openai.NewClient would, and has no switch against it.
func (c *Client) openAI(x *exchange) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(c.base.String()), option.WithHTTPClient(x), option.WithMaxRetries(0)}
	switch auth := c.cfg.Options.Auth; {
	case c.cfg.Key.Empty():
	case auth == "x-api-key" || auth == "api-key":
		opts = append(opts, option.WithHeader(auth, c.cfg.Key.value()))
	default:
		opts = append(opts, option.WithAPIKey(c.cfg.Key.value()))
	}
	return opts
}

// chatEnds are the finish reasons of Chat Completions, and others that servers
// send for the same (model_length: Mistral; eos, tool_call: vLLM and older ones).
var chatEnds = map[string]end{
	"tool_calls": ended, "stop": ended, "tool_call": ended, "eos": ended,
	"length": cutOff, "model_length": cutOff, "max_tokens": cutOff, "content_filter": filtered, "refusal": declined,
}

func (chat) read(body []byte) (answer, error) {
	m, err := object(body)
	if err != nil {
		return answer{}, err
	}
	a := answer{model: m.text("model"), id: m.text("id")}
	if u, err := object(m["usage"]); err == nil {
		a.usage = Usage{In: u.count("prompt_tokens"), Out: u.count("completion_tokens")}
		if d, err := object(u["prompt_tokens_details"]); err == nil {
			a.usage.Cached = d.count("cached_tokens")
		}
	}
	if a.fault = faultOf(m); a.fault != nil {
		return a, nil
	}
	choices, err := list(m["choices"])
	if err != nil {
		return a, err
	}
	a.end, a.reason = ended, "no choices"
	for _, raw := range choices { // one is asked for; if more come, their calls are counted together
		if err := a.choice(raw); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *answer) choice(raw []byte) error {
	ch, err := object(raw)
	if err != nil {
		return err
	}
	if fault := faultOf(ch); fault != nil { // OpenRouter, when the model fails half way
		a.fault = fault
		return nil
	}
	a.reason = ch.text("finish_reason")
	if e := chatEnds[a.reason]; a.end == ended {
		a.end = e
	}
	msg, err := object(ch["message"])
	if err != nil {
		return err
	}
	a.say(msg.text("content"))
	if refusal := msg.text("refusal"); refusal != "" {
		a.said = nil
		a.say(refusal)
		if a.end == ended {
			a.end = declined
		}
	}
	if none(msg["tool_calls"]) {
		return nil
	}
	calls, err := list(msg["tool_calls"])
	if err != nil {
		return err
	}
	for _, raw := range calls {
		t, err := object(raw)
		if err != nil {
			return err
		}
		f, err := object(t["function"])
		if err != nil { // a call of another type, such as custom: it counts, and fits no tool
			a.calls = append(a.calls, call{name: t.text("type")})
			continue
		}
		a.calls = append(a.calls, textual(f))
	}
	return nil
}

// chatFunction passes a tool's schema on as it is.
func chatFunction(t planner.Tool, strict bool) (f shared.FunctionDefinitionParam, err error) {
	f.Name = outgoingName(t.Name)
	if t.Description != "" {
		f.Description = param.NewOpt(t.Description)
	}
	if strict {
		f.Strict = param.NewOpt(true)
	}
	f.Parameters, err = schemaMap(t)
	return f, err
}
