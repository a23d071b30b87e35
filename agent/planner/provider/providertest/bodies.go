package providertest

import "encoding/json"

// messagesBody is what Messages takes, as far as one decision needs it.
type messagesBody struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content []struct {
			Type   string `json:"type"`
			Text   string `json:"text"`
			Source *struct {
				Type      string `json:"type"`
				MediaType string `json:"media_type"`
				Data      string `json:"data"`
			} `json:"source"`
		} `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
	ToolChoice *struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Single bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	} `json:"thinking"`
	Temperature *float64        `json:"temperature"`
	Metadata    json.RawMessage `json:"metadata"`
}

func (s *Server) readMessages(seen *Seen) error {
	var b messagesBody
	if err := strictly(seen.json, &b); err != nil {
		return err
	}
	seen.Model, seen.MaxTokens = b.Model, b.MaxTokens
	if b.MaxTokens < 1 {
		return bad("max_tokens: field required")
	}
	for _, p := range b.System {
		if p.Type != "text" || p.Text == "" {
			return bad("system: text content blocks must be non-empty")
		}
		seen.System += p.Text
	}
	if len(b.Messages) != 1 || b.Messages[0].Role != "user" {
		return bad("messages: one of the user is expected")
	}
	for _, c := range b.Messages[0].Content {
		switch {
		case c.Type == "text" && c.Source == nil && seen.User == "":
			seen.User = c.Text
		case c.Type == "image" && c.Source != nil && c.Source.Type == "base64" && c.Source.MediaType == "image/jpeg":
			if err := seen.picture(c.Source.Data); err != nil {
				return err
			}
		default:
			return bad("messages.0.content: unexpected block of the type %q", c.Type)
		}
	}
	for _, t := range b.Tools {
		seen.Tools = append(seen.Tools, Tool{t.Name, t.Description, t.InputSchema, t.Strict})
	}
	if c := b.ToolChoice; c != nil {
		seen.Single = c.Single
		switch seen.Choice = c.Type; c.Type {
		case "any":
			seen.Choice = "required"
		case "tool":
			seen.Choice = c.Name
		case "auto":
		default:
			return bad("tool_choice: unknown type %q", c.Type)
		}
	}
	return s.checkModel(seen, &b)
}

// checkModel refuses what models refuse.
func (s *Server) checkModel(seen *Seen, b *messagesBody) error {
	if t := b.Thinking; t != nil {
		switch {
		case t.Type != "enabled" && t.Type != "adaptive" && t.Type != "disabled":
			return bad("thinking: unknown type %q", t.Type)
		case t.Type == "enabled" && (t.BudgetTokens < 1024 || t.BudgetTokens >= b.MaxTokens):
			return bad("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
		case t.Type != "disabled" && seen.Choice != "auto" && seen.Choice != "":
			return bad("Thinking may not be enabled when tool_choice forces tool use.")
		}
	}
	if b.Temperature != nil && s.cfg.NoSampling {
		return bad("temperature: not supported by this model")
	}
	return nil
}

// chatBody is what Chat Completions takes.
type chatBody struct {
	Model               string `json:"model"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	Messages            []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice  json.RawMessage `json:"tool_choice"`
	Parallel    *bool           `json:"parallel_tool_calls"`
	Temperature *float64        `json:"temperature"`
	Effort      string          `json:"reasoning_effort"`
	Store       *bool           `json:"store"`
	Provider    json.RawMessage `json:"provider"` // OpenRouter's
}

func (s *Server) readChat(seen *Seen) error {
	var b chatBody
	if err := strictly(seen.json, &b); err != nil {
		return err
	}
	seen.Model, seen.MaxTokens = b.Model, max(b.MaxTokens, b.MaxCompletionTokens)
	if b.MaxTokens != 0 && b.MaxCompletionTokens != 0 {
		return bad("setting max_tokens and max_completion_tokens at the same time is not supported")
	}
	if b.Temperature != nil && s.cfg.NoSampling {
		return bad("unsupported parameter: temperature")
	}
	if b.Store != nil && *b.Store {
		return bad("store: a test wants nothing stored")
	}
	for i, m := range b.Messages {
		var err error
		switch {
		case m.Role == "system" && i == 0:
			err = json.Unmarshal(m.Content, &seen.System)
		case m.Role == "user" && i == len(b.Messages)-1 && i < 2:
			err = seen.chatContent(m.Content)
		default:
			err = bad("messages.%d: unexpected role %q", i, m.Role)
		}
		if err != nil {
			return err
		}
	}
	for _, t := range b.Tools {
		if t.Type != "function" {
			return bad("tools: unknown type %q", t.Type)
		}
		seen.Tools = append(seen.Tools, Tool{t.Function.Name, t.Function.Description, t.Function.Parameters, t.Function.Strict})
	}
	seen.Single = b.Parallel != nil && !*b.Parallel
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	return seen.choice(b.ToolChoice, &named, func() (string, string) { return named.Type, named.Function.Name })
}

func (seen *Seen) chatContent(raw json.RawMessage) error {
	if json.Unmarshal(raw, &seen.User) == nil {
		return nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL *struct {
			URL    string `json:"url"`
			Detail string `json:"detail"`
		} `json:"image_url"`
	}
	if err := strictly(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && seen.User == "":
			seen.User = p.Text
		case p.Type == "image_url" && p.ImageURL != nil:
			if err := seen.dataURL(p.ImageURL.URL); err != nil {
				return err
			}
		default:
			return bad("messages: unexpected part of the type %q", p.Type)
		}
	}
	return nil
}

// choice reads a tool_choice of OpenAI's: a word, or the name of a function.
func (seen *Seen) choice(raw json.RawMessage, named any, get func() (kind, name string)) error {
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &seen.Choice) == nil {
		if seen.Choice != "required" && seen.Choice != "auto" {
			return bad("tool_choice: unexpected %q", seen.Choice)
		}
		return nil
	}
	if err := strictly(raw, named); err != nil {
		return err
	}
	kind, name := get()
	if kind != "function" || name == "" {
		return bad("tool_choice: no function")
	}
	seen.Choice = name
	return nil
}

// responsesBody is what Responses takes.
type responsesBody struct {
	Model        string `json:"model"`
	MaxTokens    int    `json:"max_output_tokens"`
	Instructions string `json:"instructions"`
	Input        []struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			ImageURL string `json:"image_url"`
			Detail   string `json:"detail"`
		} `json:"content"`
	} `json:"input"`
	Tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
	ToolChoice  json.RawMessage `json:"tool_choice"`
	Parallel    *bool           `json:"parallel_tool_calls"`
	Temperature *float64        `json:"temperature"`
	Reasoning   *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Store *bool `json:"store"`
}

func (s *Server) readResponses(seen *Seen) error {
	var b responsesBody
	if err := strictly(seen.json, &b); err != nil {
		return err
	}
	seen.Model, seen.MaxTokens, seen.System = b.Model, b.MaxTokens, b.Instructions
	if b.Store == nil || *b.Store {
		return bad("store: left out it means true, and a test wants nothing stored")
	}
	if b.Temperature != nil && s.cfg.NoSampling {
		return bad("unsupported parameter: temperature")
	}
	if len(b.Input) != 1 || b.Input[0].Role != "user" || (b.Input[0].Type != "" && b.Input[0].Type != "message") {
		return bad("input: one message of the user is expected")
	}
	for _, p := range b.Input[0].Content {
		switch {
		case p.Type == "input_text" && seen.User == "":
			seen.User = p.Text
		case p.Type == "input_image" && p.Detail != "":
			if err := seen.dataURL(p.ImageURL); err != nil {
				return err
			}
		default:
			return bad("input: unexpected part of the type %q", p.Type)
		}
	}
	for _, t := range b.Tools {
		if t.Type != "function" {
			return bad("tools: unknown type %q", t.Type)
		}
		if t.Strict == nil {
			return bad("tools: strict is left out, which means true here")
		}
		seen.Tools = append(seen.Tools, Tool{t.Name, t.Description, t.Parameters, t.Strict})
	}
	seen.Single = b.Parallel != nil && !*b.Parallel
	var named struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	return seen.choice(b.ToolChoice, &named, func() (string, string) { return named.Type, named.Name })
}
