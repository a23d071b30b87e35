package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

func TestKeysAreNeverShown(t *testing.T) {
	const key = "sk-live-0123456789abcdef"
	cfg := provider.Config{Provider: provider.OpenAIChat, Model: "m", Key: provider.NewSecret(key)}
	client, err := provider.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hidden := struct{ cfg provider.Config }{cfg}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "cfg", cfg, "key", cfg.Key, "client", client, "hidden", hidden)
	}
	all := log.String()
	for _, v := range []any{cfg, &cfg, cfg.Key, &cfg.Key, client, *client, hidden, &hidden} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			all += fmt.Sprintf(verb, v)
		}
		if b, err := json.Marshal(v); err == nil {
			all += string(b)
		}
	}
	if strings.Contains(all, "0123456789") || strings.Contains(all, fmt.Sprintf("%x", key)) {
		t.Errorf("the key is in %s", all)
	}
	if !strings.Contains(all, "[redacted]") {
		t.Error("nothing was printed")
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	number := 3.0
	for name, spoil := range map[string]func(*provider.Config){
		"provider":       func(c *provider.Config) { c.Provider = "gemini" },
		"model":          func(c *provider.Config) { c.Model = "" },
		"model's line":   func(c *provider.Config) { c.Model = "a\nb" },
		"key's newline":  func(c *provider.Config) { c.Key = provider.NewSecret(pt.Key + "\n") },
		"key":            func(c *provider.Config) { c.Key = provider.NewSecret(strings.Repeat("k", 5000)) },
		"timeout":        func(c *provider.Config) { c.Timeout = -1 },
		"long timeout":   func(c *provider.Config) { c.Timeout = time.Hour },
		"scheme":         func(c *provider.Config) { c.BaseURL = "ftp://a" },
		"no host":        func(c *provider.Config) { c.BaseURL = "https:///v1" },
		"credentials":    func(c *provider.Config) { c.BaseURL = "https://u:" + pt.Key + "@a/v1" },
		"query":          func(c *provider.Config) { c.BaseURL = "https://a/v1?key=" + pt.Key },
		"broken URL":     func(c *provider.Config) { c.BaseURL = "https://a/%zz" + pt.Key },
		"plain HTTP":     func(c *provider.Config) { c.BaseURL = "http://example.org/v1" },
		"proxy":          func(c *provider.Config) { c.Proxy = "http://u:" + pt.Key + "@a" },
		"choice":         func(c *provider.Config) { c.Options.ToolChoice = "none" },
		"temperature":    func(c *provider.Config) { c.Options.Temperature = &number },
		"thinking":       func(c *provider.Config) { c.Options.Thinking = "enabled" },
		"thinking's max": func(c *provider.Config) { c.Options.Thinking, c.Options.ThinkingTokens = "enabled", 5000 },
		"tokens":         func(c *provider.Config) { c.Options.MaxTokens = -1 },
		"attempts":       func(c *provider.Config) { c.Options.MaxAttempts = 11 },
		"extra":          func(c *provider.Config) { c.Options.Extra = map[string]json.RawMessage{"stream": []byte("true")} },
		"broken extra":   func(c *provider.Config) { c.Options.Extra = map[string]json.RawMessage{"a": []byte("{")} },
	} {
		cfg := provider.Config{Provider: provider.Anthropic, Model: "m", Key: provider.NewSecret(pt.Key)}
		if _, err := provider.New(cfg); err != nil {
			t.Fatal(err)
		}
		spoil(&cfg)
		_, err := provider.New(cfg)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), pt.Key) {
			t.Errorf("%s: the error holds the key: %v", name, err)
		}
	}
}

func TestOptionsAreReadStrictly(t *testing.T) {
	o, err := provider.ParseOptions([]byte(`{"max_tokens":800,"temperature":0,"tool_choice":"auto","extra":{"provider":{"order":["a"]}}}`))
	if err != nil || o.MaxTokens != 800 || o.Temperature == nil || o.ToolChoice != "auto" || string(o.Extra["provider"]) != `{"order":["a"]}` {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := provider.ParseOptions(nil); err != nil || o.MaxTokens != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, raw := range []string{`{"max_token":1}`, `[]`, `{} {}`, `{"max_tokens":"1"}`, `{"tool_choice":"maybe"}`, `{"extra":{"model":"x"}}`, `{`} {
		if _, err := provider.ParseOptions([]byte(raw)); err == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

// TestDocumentation: docs/planner.md names every option and every value.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/planner.md")
	if err != nil {
		t.Fatal(err)
	}
	table := string(page[bytes.Index(page, []byte("## Profile options")):])
	for f := range reflect.TypeFor[provider.Options]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the option %s is not documented", name)
		}
	}
	for _, code := range []wire.Code{
		wire.ProviderAuth, wire.ProviderBadRequest, wire.ProviderRateLimited, wire.ProviderOverloaded, wire.ProviderTimeout, wire.ProviderUnreachable,
		wire.Truncated, wire.Refused, wire.ContentFiltered, wire.NoToolCall, wire.MultipleToolCalls, wire.UnknownTool, wire.BadArguments, wire.BadRequest,
	} {
		if !bytes.Contains(page, []byte("| `"+code+"` |")) {
			t.Errorf("the code %s is not documented", code)
		}
	}
}
