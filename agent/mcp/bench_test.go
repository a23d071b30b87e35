package mcp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"phonerack/agent/mcp"
	"phonerack/agent/mcp/mcptest"
	"phonerack/agent/skill/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Eras of the protocol.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

const (
	deskToken  = "desk-0123456789abcdef0123456789abcdef"
	guestToken = "guest-0123456789abcdef0123456789abcde"
)

// bench is a server over HTTP with the callers desk and guest.
type bench struct {
	*testing.T
	server  *mcp.Server
	skills  *mcptest.Skills
	devices *mcptest.Devices
	url     string
	client  *http.Client
	id      int
}

func newBench(t *testing.T, skills ...*model.Skill) *bench {
	t.Helper()
	return newBenchWith(t, mcptest.NewDevices(), skills...)
}

func newBenchWith(t *testing.T, devices *mcptest.Devices, skills ...*model.Skill) *bench {
	t.Helper()
	b := &bench{T: t, skills: mcptest.NewSkills(skills...), devices: devices, client: &http.Client{Transport: &http.Transport{}}}
	b.server = mcp.New(mcp.Options{Version: "test", Devices: b.devices, Logger: slog.New(slog.DiscardHandler)})
	b.server.SetSkills(b.skills)
	tokens, err := mcp.ParseTokens([]byte("desk " + deskToken + "\nguest " + guestToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.url = "http://" + l.Addr().String() + mcp.Path
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(ctx, l, tokens) }()
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		cancel()
		b.server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

// request is a POST as a proper client of the era sends it; change may spoil it.
func (b *bench) request(era, body string, change func(*http.Request)) *http.Request {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+deskToken)
	var message struct {
		Method string
		Params struct{ Name, URI string }
	}
	if era != "" {
		r.Header.Set("MCP-Protocol-Version", era)
	}
	if json.Unmarshal([]byte(body), &message) == nil && era == modern {
		r.Header.Set("Mcp-Method", message.Method)
		if name := cmp.Or(message.Params.URI, message.Params.Name); name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	if change != nil {
		change(r)
	}
	return r
}

// send returns status and body.
func (b *bench) send(r *http.Request) (int, []byte) {
	b.Helper()
	answer, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer.StatusCode, body
}

// message is a request of the era, with what each has to carry.
func (b *bench) message(era, method string, params map[string]any) string {
	b.Helper()
	b.id++
	if params == nil {
		params = map[string]any{}
	}
	if era == modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modern,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
		}
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": b.id, "method": method, "params": params})
	if err != nil {
		b.Fatal(err)
	}
	return string(raw)
}

// reply is an answer of the protocol.
type reply struct {
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
	}
	status int
}

func (b *bench) ask(era, method string, params map[string]any, change func(*http.Request)) reply {
	b.Helper()
	status, body := b.send(b.request(era, b.message(era, method, params), change))
	r := reply{status: status}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&r); err != nil {
		b.Fatalf("%s %s: status %d, %v: %.300s", era, method, status, err, body)
	}
	return r
}

// result of a tool.
type result struct {
	IsError bool
	Texts   []string
	Images  int
	Object  map[string]any
	raw     json.RawMessage // of the object
}

func (b *bench) call(tool string, args map[string]any, change func(*http.Request)) result {
	b.Helper()
	return b.callIn(modern, tool, args, change)
}

func (b *bench) callIn(era, tool string, args map[string]any, change func(*http.Request)) result {
	b.Helper()
	if args == nil {
		args = map[string]any{}
	}
	r := b.ask(era, "tools/call", map[string]any{"name": tool, "arguments": args}, change)
	if r.Error != nil {
		b.Fatalf("%s: %d %s", tool, r.Error.Code, r.Error.Message)
	}
	raw, err := json.Marshal(r.Result)
	if err != nil {
		b.Fatal(err)
	}
	var parts struct {
		IsError           bool
		Content           []struct{ Type, Text, Data, MimeType string }
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		b.Fatal(err)
	}
	out := result{IsError: parts.IsError, raw: parts.StructuredContent}
	for _, c := range parts.Content {
		switch c.Type {
		case "text":
			out.Texts = append(out.Texts, c.Text)
		case "image":
			out.Images++
		}
	}
	if parts.StructuredContent != nil {
		if err := json.Unmarshal(parts.StructuredContent, &out.Object); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// code is that of a failed call, "" of one that did not fail.
func (r result) code() string {
	if !r.IsError || len(r.Texts) != 2 {
		return ""
	}
	var refusal struct{ Error struct{ Code string } }
	if json.Unmarshal([]byte(r.Texts[1]), &refusal) != nil {
		return ""
	}
	return refusal.Error.Code
}

func guest(r *http.Request) { r.Header.Set("Authorization", "Bearer "+guestToken) }

// draft is a skill from YAML, of a subscription.
func draft(t testing.TB, subscription, yaml string) *model.Skill {
	t.Helper()
	s, err := model.ParseDraft("skill.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	s.Subscription = subscription
	return s
}

const noteFlow = `id: shop-search
name: Search the shop
description: Finds an article in the shop
kind: flow_template
version: "3"
tags: [shop]
parameters:
  - {name: query, type: string, required: true, description: what to look for}
  - {name: times, type: integer, default: 500}
steps:
  - {tool: launch_app, args_template: {package: com.example.shop}}
  - {tool: input_text, args_template: {text: "{query}"}}
  - {tool: wait, args_template: {ms: "{times}"}}
`

const noteKnowledge = `id: shop-manners
name: Manners of the shop
description: How the shop wants to be used
kind: knowledge
version: "1"
content: |
  Look before you buy.
`
