package provider_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/planner"
	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

// ask makes one call that has to succeed, and returns what the provider saw.
func ask(t *testing.T, r *rig, req planner.Request) (pt.Seen, provider.Outcome) {
	t.Helper()
	out, err := r.client(t).Call(t.Context(), req)
	seen := r.Seen()
	if len(seen) == 0 {
		t.Fatalf("nothing was sent: %v", err)
	}
	last := seen[len(seen)-1]
	if err != nil {
		t.Fatalf("%v; %s\n%s", err, last.Problem, shown(last.Body))
	}
	return last, out
}

func TestWhatIsSent(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		r.Script(good)
		seen, out := ask(t, r, request())
		if seen.System != systemPrompt || seen.User != userPrompt {
			t.Errorf("system %q, user %q", seen.System, seen.User)
		}
		if !bytes.Equal(seen.Screen, smallScreen) {
			t.Errorf("the screen arrived as %d bytes of %d", len(seen.Screen), len(smallScreen))
		}
		if seen.Model != "model-a" || seen.MaxTokens != provider.DefaultMaxTokens || seen.Choice != "required" || !seen.Single {
			t.Errorf("model %s, max tokens %d, choice %s, single %v", seen.Model, seen.MaxTokens, seen.Choice, seen.Single)
		}
		for i, want := range []string{"tap", "observe", "x--mcp-3aserver-2ftool"} {
			got := seen.Tools[i]
			if got.Name != want || got.Description != tools[i].Description || !sameJSON(t, got.Schema, tools[i].InputSchema) {
				t.Errorf("tool %s %q: %s", got.Name, got.Description, got.Schema)
			}
			if got.Strict != nil && *got.Strict {
				t.Errorf("%s is strict, which nobody asked for", got.Name)
			}
		}
		want := provider.Outcome{
			Decision: planner.Decision{Tool: "tap", Arguments: json.RawMessage(`{"element":3}`), Tokens: pt.TokensIn + pt.TokensOut},
			Usage:    provider.Usage{In: pt.TokensIn, Out: pt.TokensOut, Cached: pt.TokensCached},
			Attempts: 1, Status: 200, RequestID: pt.RequestID, Model: pt.Model,
		}
		if !reflect.DeepEqual(out, want) {
			t.Errorf("got %+v, want %+v", out, want)
		}
	})
}

// shown is a body without its picture, which would fill the screen.
func shown(body []byte) string {
	return regexp.MustCompile(`[A-Za-z0-9+/=]{200,}`).ReplaceAllString(string(body), "(picture)")
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("%s or %s is no JSON", a, b)
	}
	return reflect.DeepEqual(x, y)
}

func TestRequestsWithoutScreenAndSystemPrompt(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		req := request()
		req.Screen, req.SystemPrompt = nil, ""
		r.Script(good)
		if seen, _ := ask(t, r, req); seen.Screen != nil || seen.System != "" || seen.User != userPrompt {
			t.Errorf("%s", shown(seen.Body))
		}
	})
}

// TestToolNamesComeBackFromTheModel: a model calls what it was offered, and the
// decision names what the rack knows.
func TestToolNamesComeBackFromTheModel(t *testing.T) {
	names := []string{"mcp:server/tool", "x/_anon_0", "x--tap", strings.Repeat("registry/", 12) + "a", strings.Repeat("registry/", 12) + "b"}
	eachKind(t, func(t *testing.T, r *rig) {
		req := request()
		req.Tools = nil
		for _, n := range names {
			req.Tools = append(req.Tools, planner.Tool{Name: n, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
		r.Script(good)
		_, _ = r.client(t).Call(t.Context(), req)
		offered := r.Seen()[0].Tools
		for i, n := range names {
			r.Script(pt.Call(offered[i].Name, `{"a":[1,{"b":null}]}`))
			if _, out := ask(t, r, req); out.Decision.Tool != n || string(out.Decision.Arguments) != `{"a":[1,{"b":null}]}` {
				t.Errorf("%s came back as %+v", n, out.Decision)
			}
		}
	})
}

func TestOptionsReachTheProvider(t *testing.T) {
	temperature := 0.25
	strict := []planner.Tool{tools[0]}
	for _, c := range []struct {
		name    string
		options provider.Options
		tools   []planner.Tool
		kinds   []provider.Kind
		want    []string // parts of the body
		not     []string
	}{
		{name: "none", not: []string{"temperature", "thinking", "reasoning", `"strict":true`, "original"}},
		{name: "max_tokens", options: provider.Options{MaxTokens: 777}, want: []string{":777"}},
		{name: "max_completion_tokens", options: provider.Options{MaxTokensField: "max_completion_tokens"}, kinds: openAI[:1], want: []string{`"max_completion_tokens":4096`}, not: []string{`"max_tokens"`}},
		{name: "temperature", options: provider.Options{Temperature: &temperature}, want: []string{`"temperature":0.25`}},
		{name: "adaptive thinking", options: provider.Options{Thinking: "adaptive", ToolChoice: "auto"}, kinds: claude, want: []string{`"thinking":{"type":"adaptive"}`, `"disable_parallel_tool_use":true`}},
		{name: "thinking", options: provider.Options{Thinking: "enabled", ThinkingTokens: 2048, ToolChoice: "auto"}, kinds: claude, want: []string{`"budget_tokens":2048`}},
		{name: "no thinking", options: provider.Options{Thinking: "disabled"}, kinds: claude, want: []string{`"thinking":{"type":"disabled"}`, `"type":"any"`}},
		{name: "effort", options: provider.Options{Effort: "low"}, kinds: openAI, want: []string{`"low"`}},
		{name: "auto", options: provider.Options{ToolChoice: "auto"}, want: []string{`auto`}, not: []string{`"required",`, `"required"}`, `"any"`}},
		{name: "omitted choice", options: provider.Options{ToolChoice: "omit"}, not: []string{"tool_choice"}},
		{name: "named", options: provider.Options{ToolChoice: "named"}, tools: strict, not: []string{`"required",`, `"required"}`, `"any"`}},
		{name: "named among many", options: provider.Options{ToolChoice: "named"}, kinds: openAI, want: []string{`"tool_choice":"required"`}},
		{name: "omitted parallel", options: provider.Options{OmitParallel: true}, not: []string{"parallel"}},
		{name: "strict", options: provider.Options{Strict: true}, tools: strict, want: []string{`"strict":true`}},
		{name: "store", options: provider.Options{Store: "never"}, kinds: openAI, want: []string{`"store":false`}},
		{name: "no store", kinds: openAI[:1], not: []string{"store"}},
		{name: "detail", options: provider.Options{ImageDetail: "original"}, kinds: openAI, want: []string{`"detail":"original"`}},
		{name: "extra", options: provider.Options{Extra: map[string]json.RawMessage{"provider": json.RawMessage(`{"require_parameters":true}`)}}, kinds: openAI[:1], want: []string{`"provider":{"require_parameters":true}`}},
		{name: "more extra", options: provider.Options{Extra: map[string]json.RawMessage{"metadata": json.RawMessage(`{"user_id":"u"}`)}}, kinds: claude, want: []string{`"metadata":{"user_id":"u"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, r *rig) {
				if c.kinds != nil && !slices.Contains(c.kinds, r.cfg.Provider) {
					return
				}
				r.cfg.Options = c.options
				req := request()
				if c.tools != nil {
					req.Tools = c.tools
				}
				r.Script(good)
				seen, _ := ask(t, r, req)
				for _, part := range c.want {
					if !bytes.Contains(seen.Body, []byte(part)) {
						t.Errorf("%s is not in %s", part, shown(seen.Body))
					}
				}
				for _, part := range c.not {
					if bytes.Contains(seen.Body, []byte(part)) {
						t.Errorf("%s is in %s", part, shown(seen.Body))
					}
				}
			})
		})
	}
}

// TestKeysTravelWhereTheyAreWanted: one header, the one that the profile says.
func TestKeysTravelWhereTheyAreWanted(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		usual := "Authorization"
		if r.cfg.Provider == provider.Anthropic {
			usual = "X-Api-Key"
		}
		for auth, header := range map[string]string{"": usual, "bearer": "Authorization", "x-api-key": "X-Api-Key", "api-key": "Api-Key"} {
			r.cfg.Options.Auth = auth
			r.Script(good)
			seen, _ := ask(t, r, request()) // the server refuses two keys, and none
			if !strings.HasSuffix(seen.Header.Get(header), pt.Key) {
				t.Errorf("auth %q: %v", auth, seen.Header)
			}
			if bytes.Contains(seen.Body, []byte(pt.Key)) {
				t.Error("the key is in the body")
			}
		}
		r.cfg.Key = provider.Secret{}
		out, err := r.client(t).Call(t.Context(), request())
		refusal(t, out, err, wire.ProviderAuth)
		if last := r.Seen()[len(r.Seen())-1]; last.Problem != "no key" {
			t.Errorf("without a key: %s", last.Problem)
		}
	})
}

func TestOneConnectionServesManyCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		for range 5 { // a client each, as the cloud makes them
			r.Script(good)
			ask(t, r, request())
		}
		if len(r.dials) != 1 {
			t.Errorf("connections: %v", r.dials)
		}
	})
}

func TestRequestsThatCannotBeAsked(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		for name, spoil := range map[string]func(*planner.Request){
			"no tools":     func(q *planner.Request) { q.Tools = nil },
			"no prompt":    func(q *planner.Request) { q.UserPrompt = "" },
			"a PNG":        func(q *planner.Request) { q.Screen = []byte("\x89PNG\r\n") },
			"a tool twice": func(q *planner.Request) { q.Tools = append(q.Tools[:2:2], q.Tools[0]) },
			"a broad schema": func(q *planner.Request) {
				q.Tools = []planner.Tool{{Name: "a", InputSchema: json.RawMessage(`{"type":"object","oneOf":[]}`)}}
			},
			"a broken one": func(q *planner.Request) { q.Tools = []planner.Tool{{Name: "a", InputSchema: json.RawMessage(`{`)}} },
		} {
			req := request()
			spoil(&req)
			out, err := r.client(t).Call(t.Context(), req)
			refusal(t, out, err, wire.BadRequest)
			if out.Attempts != 0 || r.Calls() != 0 {
				t.Errorf("%s: %d attempts, %d calls", name, out.Attempts, r.Calls())
			}
		}
	})
}
