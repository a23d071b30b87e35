package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Kind is the protocol that a provider speaks.
type Kind string

// Kinds.
const (
	Anthropic       Kind = "anthropic"        // Anthropic Messages, POST v1/messages
	OpenAIChat      Kind = "openai-chat"      // Chat Completions, POST chat/completions
	OpenAIResponses Kind = "openai-responses" // Responses, POST responses
)

// Kinds lists the protocols that are spoken.
func Kinds() []Kind { return []Kind{Anthropic, OpenAIChat, OpenAIResponses} }

// Defaults and bounds of a profile.
const (
	DefaultTimeout          = 60 * time.Second
	DefaultMaxTokens        = 4096
	DefaultMaxAttempts      = 3
	DefaultMaxResponseBytes = 1 << 20

	maxTimeout  = 15 * time.Minute
	maxAttempts = 10
	maxTokens   = 1 << 20
	maxKeyBytes = 4096
)

// Config is a provider profile. It can be printed: its key is redacted.
type Config struct {
	Profile  string // the profile's name, for refusals
	Provider Kind
	Model    string // as the provider names it
	// BaseURL is the address without the protocol's own path: a Messages API is
	// asked at BaseURL/v1/messages, the others at BaseURL/chat/completions and
	// BaseURL/responses, so that an OpenAI-compatible one usually ends in /v1.
	// Empty means the provider's public address.
	BaseURL string
	Key     Secret
	// Timeout covers a whole call with all its attempts and waits.
	Timeout time.Duration
	// Proxy is the URL of an HTTP proxy, without credentials. The environment's
	// is never used.
	Proxy            string
	MaxResponseBytes int64 // of a decoded body
	Options          Options
	Pool             *Pool // nil: the one that the process shares
}

// Options are what models and servers need differently. The zero value suits
// the public APIs and current models. docs/planner.md says which server needs which.
type Options struct {
	MaxTokens int `json:"max_tokens,omitempty"` // of an answer, thinking included
	// MaxTokensField is the name under which Chat Completions is told MaxTokens:
	// max_completion_tokens (at OpenAI itself the default) or max_tokens.
	MaxTokensField string   `json:"max_tokens_field,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"` // sent only if set
	// Thinking is Anthropic's: adaptive, enabled (with ThinkingTokens), disabled.
	// Empty sends nothing. Most models refuse it together with a forced call.
	Thinking       string `json:"thinking,omitempty"`
	ThinkingTokens int    `json:"thinking_tokens,omitempty"`
	Effort         string `json:"effort,omitempty"` // OpenAI's reasoning effort; empty sends nothing
	// ToolChoice is how a call is asked for: required (the default); named, which
	// names the tool if only one is offered; auto, for models that refuse to be forced;
	// omit, for servers that do not know the field. The answer is validated alike.
	ToolChoice string `json:"tool_choice,omitempty"`
	// OmitParallel leaves out the field that forbids several calls.
	OmitParallel bool `json:"omit_parallel,omitempty"`
	// Strict asks the provider to hold arguments to the schema. Schemas go out as
	// they are; providers refuse those that are not closed.
	Strict bool `json:"strict,omitempty"`
	// Store overrides whether "store": false is sent, which asks OpenAI to keep
	// nothing. By default Responses sends it, and Chat Completions at OpenAI itself.
	Store string `json:"store,omitempty"` // "", never (always sent), omit
	// ImageDetail is OpenAI's: low, high, auto, original.
	ImageDetail string `json:"image_detail,omitempty"`
	// Auth is the header that carries the key: bearer, x-api-key or api-key.
	Auth string `json:"auth,omitempty"`
	// Extra are more fields of the request's root, such as OpenRouter's
	// {"provider": {"require_parameters": true}}. None may be one that is sent anyway.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
	// MaxAttempts is how often one decision is asked for at most.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// PlainHTTP allows a base URL without TLS on another machine: the key and the
	// screens are then readable on the way.
	PlainHTTP bool `json:"plain_http,omitempty"`
}

// choices are the values that options allow, by the option's JSON name; the
// empty one is always allowed.
var choices = map[string][]string{
	"max_tokens_field": {"max_tokens", "max_completion_tokens"},
	"thinking":         {"adaptive", "enabled", "disabled"},
	"effort":           {"none", "minimal", "low", "medium", "high", "xhigh"},
	"tool_choice":      {"required", "named", "auto", "omit"},
	"store":            {"never", "omit"},
	"image_detail":     {"low", "high", "auto", "original"},
	"auth":             {"bearer", "x-api-key", "api-key"},
}

// own are the fields of a request's root that Extra may not bring: what is sent
// anyway, and what would make an answer of another shape.
var own = []string{
	"model", "max_tokens", "max_completion_tokens", "max_output_tokens", "messages", "input", "instructions", "system", "tools", "tool_choice",
	"parallel_tool_calls", "temperature", "thinking", "reasoning", "reasoning_effort", "store", "stream", "stream_options", "n", "background",
	"previous_response_id", "conversation", "functions", "function_call",
}

// ParseOptions reads options strictly: an unknown one is an error, and so is
// what [New] would refuse. Nothing at all is the zero value.
func ParseOptions(raw []byte) (Options, error) {
	var o Options
	if len(bytes.TrimSpace(raw)) == 0 {
		return o, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return Options{}, fmt.Errorf("provider options: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Options{}, errors.New("provider options: something follows the object")
	}
	return o, o.check()
}

func (o *Options) check() error {
	for name, value := range map[string]string{
		"max_tokens_field": o.MaxTokensField, "thinking": o.Thinking, "effort": o.Effort, "tool_choice": o.ToolChoice, "store": o.Store,
		"image_detail": o.ImageDetail, "auth": o.Auth,
	} {
		if value != "" && !slices.Contains(choices[name], value) {
			return fmt.Errorf("provider options: %s is %.40q, but must be one of %s", name, value, strings.Join(choices[name], ", "))
		}
	}
	switch {
	case o.MaxTokens < 0 || o.MaxTokens > maxTokens:
		return fmt.Errorf("provider options: max_tokens is %d, but must be between 0 and %d", o.MaxTokens, maxTokens)
	case o.MaxAttempts < 0 || o.MaxAttempts > maxAttempts:
		return fmt.Errorf("provider options: max_attempts is %d, but must be between 0 and %d", o.MaxAttempts, maxAttempts)
	case o.Temperature != nil && (*o.Temperature < 0 || *o.Temperature > 2):
		return fmt.Errorf("provider options: temperature is %v, but must be between 0 and 2", *o.Temperature)
	case (o.Thinking == "enabled") != (o.ThinkingTokens > 0):
		return errors.New("provider options: thinking_tokens belongs to thinking = enabled, which needs it")
	case o.ThinkingTokens < 0 || o.ThinkingTokens >= o.maxTokens():
		return fmt.Errorf("provider options: thinking_tokens is %d, but must be less than max_tokens (%d)", o.ThinkingTokens, o.maxTokens())
	}
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		if slices.Contains(own, name) {
			return fmt.Errorf("provider options: extra holds %q, which is not for it", name)
		}
		if !json.Valid(o.Extra[name]) {
			return fmt.Errorf("provider options: extra.%s is not JSON", name)
		}
	}
	return nil
}

func (o *Options) maxTokens() int {
	if o.MaxTokens == 0 {
		return DefaultMaxTokens
	}
	return o.MaxTokens
}

// public are the addresses of the providers themselves.
var public = map[Kind]string{
	Anthropic:       "https://api.anthropic.com/",
	OpenAIChat:      "https://api.openai.com/v1/",
	OpenAIResponses: "https://api.openai.com/v1/",
}

// checked returns c with its defaults filled in, and its base URL.
func (c Config) checked() (Config, *url.URL, error) {
	if !slices.Contains(Kinds(), c.Provider) {
		return c, nil, fmt.Errorf("provider %.40q is not one of anthropic, openai-chat, openai-responses", string(c.Provider))
	}
	if c.Model == "" || len(c.Model) > 200 || strings.ContainsFunc(c.Model, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return c, nil, errors.New("the model's name is empty, too long, or has characters that cannot be seen")
	}
	if err := checkKey(c.Key.value()); err != nil {
		return c, nil, err
	}
	if err := c.Options.check(); err != nil {
		return c, nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		return c, nil, fmt.Errorf("the timeout is %v, but must be between 0 and %v", c.Timeout, maxTimeout)
	}
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if c.Options.MaxAttempts == 0 {
		c.Options.MaxAttempts = DefaultMaxAttempts
	}
	if c.Proxy != "" {
		if _, err := plainURL("proxy", c.Proxy); err != nil {
			return c, nil, err
		}
	}
	if c.BaseURL == "" {
		c.BaseURL = public[c.Provider]
	}
	base, err := plainURL("base URL", c.BaseURL)
	if err != nil {
		return c, nil, err
	}
	if base.Scheme == "http" && !c.Options.PlainHTTP && !loopback(base.Hostname()) {
		return c, nil, errors.New("the base URL has no TLS: use https, or allow it with the option plain_http")
	}
	return c, base, nil
}

// checkKey refuses what no header can carry, without quoting it.
func checkKey(key string) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("the key has %d bytes where %d are allowed", len(key), maxKeyBytes)
	}
	for _, b := range []byte(key) {
		if b <= ' ' || b > '~' {
			return errors.New("the key holds white space or characters that are not ASCII")
		}
	}
	return nil
}

// plainURL reads an http or https URL that carries no credentials, query or
// fragment. Its errors do not quote it, as what was typed wrongly may be a key.
func plainURL(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the %s is no http or https URL", what)
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("the %s must have no user, query or fragment", what)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
