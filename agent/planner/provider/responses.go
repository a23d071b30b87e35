package provider

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"phonerack/agent/planner"
)

// responsesAPI is OpenAI Responses.
type responsesAPI struct{}

func (responsesAPI) encode(c *Client, req *planner.Request, place string) ([]byte, error) {
	o := &c.cfg.Options
	p := responses.ResponseNewParams{Model: c.cfg.Model, MaxOutputTokens: openai.Int(int64(o.maxTokens()))}
	if req.SystemPrompt != "" {
		p.Instructions = openai.String(req.SystemPrompt)
	}
	var content responses.ResponseInputMessageContentListParam
	if len(req.Screen) > 0 {
		image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
		if o.ImageDetail != "" {
			image.OfInputImage.Detail = responses.ResponseInputImageDetail(o.ImageDetail)
		}
		image.OfInputImage.ImageURL = openai.String("data:image/jpeg;base64," + place)
		content = append(content, image)
	}
	content = append(content, responses.ResponseInputContentParamOfInputText(req.UserPrompt))
	p.Input.OfInputItemList = responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser),
	}
	for _, t := range req.Tools {
		schema, err := schemaMap(t)
		if err != nil {
			return nil, err
		}
		f := &responses.FunctionToolParam{Name: outgoingName(t.Name), Parameters: schema, Strict: openai.Bool(o.Strict)} // left out, it would mean true
		if t.Description != "" {
			f.Description = openai.String(t.Description)
		}
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: f})
	}
	switch choice := o.toolChoice(len(req.Tools)); choice {
	case "required", "auto":
		p.ToolChoice.OfToolChoiceMode = openai.Opt(responses.ToolChoiceOptions(choice))
	case "named":
		p.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: outgoingName(req.Tools[0].Name)}
	}
	if !o.OmitParallel {
		p.ParallelToolCalls = openai.Bool(false)
	}
	if o.Temperature != nil {
		p.Temperature = openai.Float(*o.Temperature)
	}
	if o.Effort != "" {
		p.Reasoning.Effort = shared.ReasoningEffort(o.Effort)
	}
	if o.Store != "omit" {
		p.Store = openai.Bool(false) // left out, OpenAI keeps the screen for 30 days
	}
	if len(o.Extra) > 0 {
		p.SetExtraFields(o.extra())
	}
	return p.MarshalJSON()
}

// schemaMap is a schema in the shape that OpenAI's SDK wants. Its values stay as
// they are written: the SDK would send a json.Number as a string.
func schemaMap(t planner.Tool) (map[string]any, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(t.InputSchema, &members); err != nil {
		return nil, err
	}
	m := make(map[string]any, len(members))
	for name, value := range members {
		m[name] = value
	}
	return m, nil
}

func (responsesAPI) send(ctx context.Context, c *Client, body []byte, x *exchange) error {
	var ignored []byte
	s := responses.NewResponseService(c.openAI(x)...)
	_, err := s.New(ctx, responses.ResponseNewParams{Model: c.cfg.Model},
		option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&ignored))
	return err
}

func (responsesAPI) read(body []byte) (answer, error) {
	m, err := object(body)
	if err != nil {
		return answer{}, err
	}
	a := answer{model: m.text("model"), id: m.text("id")}
	if u, err := object(m["usage"]); err == nil {
		a.usage = Usage{In: u.count("input_tokens"), Out: u.count("output_tokens")}
		if d, err := object(u["input_tokens_details"]); err == nil {
			a.usage.Cached = d.count("cached_tokens")
		}
	}
	if a.fault = faultOf(m); a.fault != nil {
		return a, nil
	}
	switch a.reason = m.text("status"); a.reason {
	case "completed":
		a.end = ended
	case "failed":
		a.fault = &fault{message: "the response failed"}
		return a, nil
	case "incomplete":
		a.end = cutOff
		if d, err := object(m["incomplete_details"]); err == nil {
			if a.reason = d.text("reason"); a.reason == "content_filter" {
				a.end = filtered
			}
		}
	default: // queued, in_progress, cancelled: nothing that was asked for
		a.end = unfinished
	}
	items, err := list(m["output"])
	if err != nil {
		return a, err
	}
	for _, raw := range items {
		if err := a.item(raw); err != nil {
			return a, err
		}
	}
	return a, nil
}

// item reads one of the output's items: reasoning, a message, a call.
func (a *answer) item(raw []byte) error {
	it, err := object(raw)
	if err != nil {
		return err
	}
	switch it.text("type") {
	case "function_call":
		// An item may be cut off in a response that says it is complete.
		if s := it.text("status"); s != "" && s != "completed" && a.end == ended {
			a.end, a.reason = cutOff, s
		}
		a.calls = append(a.calls, textual(it))
	case "custom_tool_call":
		a.calls = append(a.calls, call{name: it.text("name")})
	case "message":
		parts, err := list(it["content"])
		if err != nil {
			return err
		}
		for _, raw := range parts {
			p, err := object(raw)
			if err != nil {
				return err
			}
			a.say(p.text("text"))
			if p.text("type") == "refusal" {
				a.said = nil
				a.say(p.text("refusal"))
				if a.end == ended {
					a.end = declined
				}
			}
		}
	}
	return nil
}
