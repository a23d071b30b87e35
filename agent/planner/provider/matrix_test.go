package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

// span is how much time passes in the bubble.
type span struct{ from, to time.Duration }

// faults is what providers do, and what is made of it. Each row runs against
// each protocol.
var faults = []struct {
	name     string
	script   []pt.Reply
	code     wire.Code // "" is a decision
	attempts int
	took     span
	after    time.Duration // retry_after
	final    bool          // not retryable
	detail   string
	status   int
	usage    bool
	only     []provider.Kind // nil is all
}{
	{name: "a decision", script: []pt.Reply{good}, attempts: 1, status: 200, usage: true},

	// The provider refuses.
	{name: "401", script: []pt.Reply{pt.Status(401, "invalid x-api-key "+pt.Key), good}, code: wire.ProviderAuth, attempts: 1, final: true, status: 401, detail: "[redacted]"},
	{name: "403", script: []pt.Reply{pt.Status(403, "no"), good}, code: wire.ProviderAuth, attempts: 1, final: true, status: 403},
	{name: "404", script: []pt.Reply{pt.Status(404, "model: model-a"), good}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 404, detail: "model: model-a"},
	{name: "413", script: []pt.Reply{pt.Status(413, "too large"), good}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 413},
	{name: "400 that repeats the request", script: []pt.Reply{pt.Status(400, "messages.0: "+userPrompt), good}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 400, detail: "messages.0"},
	{name: "400 that repeats the request as JSON", script: []pt.Reply{pt.Status(400, fmt.Sprintf("messages.0: %q", userPrompt)), good}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 400, detail: "messages.0"},

	// The provider cannot.
	{name: "429 and 3600 seconds", script: []pt.Reply{pt.Status(429, "slow down", "Retry-After", "3600"), good}, code: wire.ProviderRateLimited, attempts: 1, after: time.Hour, status: 429, detail: "slow down"},
	{name: "429 and 1 second", script: []pt.Reply{pt.Status(429, "slow down", "Retry-After", "1"), good}, attempts: 2, took: span{time.Second, 1200 * time.Millisecond}, status: 200, usage: true},
	{name: "429 and a date", script: []pt.Reply{pt.Status(429, "slow down", "Date", clock(0), "Retry-After", clock(5)), good}, attempts: 2, took: span{5 * time.Second, 5200 * time.Millisecond}, status: 200, usage: true},
	{name: "429 and a distant date", script: []pt.Reply{pt.Status(429, "slow down", "Date", clock(0), "Retry-After", clock(600)), good}, code: wire.ProviderRateLimited, attempts: 1, after: 10 * time.Minute, status: 429},
	{name: "429 and a wait that leaves no time", script: []pt.Reply{pt.Status(429, "slow down", "Retry-After", "29"), good}, code: wire.ProviderRateLimited, attempts: 1, after: 29 * time.Second, status: 429},
	{name: "429 and milliseconds", script: []pt.Reply{pt.Status(429, "slow down", "Retry-After-Ms", "1500", "Retry-After", "3600"), good}, attempts: 2, took: span{1500 * time.Millisecond, 1700 * time.Millisecond}, status: 200, usage: true},
	{name: "429 and nonsense", script: []pt.Reply{pt.Status(429, "slow down", "Retry-After", "-5"), good}, attempts: 2, took: backoff1, status: 200, usage: true},
	{name: "429 and no word", script: []pt.Reply{pt.Status(429, "slow down"), good}, attempts: 2, took: backoff1, status: 200, usage: true},
	{name: "429 thrice", script: []pt.Reply{pt.Status(429, "a"), pt.Status(429, "b"), pt.Status(429, "c"), good}, code: wire.ProviderRateLimited, attempts: 3, took: backoff2, status: 429, detail: ": c"},
	{name: "429 thrice with a wait", script: []pt.Reply{pt.Status(429, "a", "Retry-After", "0"), pt.Status(429, "b", "Retry-After", "0"), pt.Status(429, "c", "Retry-After", "2"), good}, code: wire.ProviderRateLimited, attempts: 3, after: 2 * time.Second, status: 429},
	{name: "429 that money ends", script: []pt.Reply{pt.Raw(429, "application/json", `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`), good}, code: wire.ProviderRateLimited, attempts: 1, final: true, status: 429},
	{name: "429 not to be repeated", script: []pt.Reply{pt.Status(429, "slow down", "X-Should-Retry", "false"), good}, code: wire.ProviderRateLimited, attempts: 1, status: 429},
	{name: "400 to be repeated", script: []pt.Reply{pt.Status(400, "hiccup", "X-Should-Retry", "true"), good}, attempts: 2, status: 200, took: backoff1, usage: true},
	{name: "408 and 409", script: []pt.Reply{pt.Status(408, "a"), pt.Status(409, "b"), good}, attempts: 3, took: backoff2, status: 200, usage: true},
	{name: "500, then a decision", script: []pt.Reply{pt.Status(500, "oops"), good}, attempts: 2, took: backoff1, status: 200, usage: true},
	{name: "500 thrice", script: []pt.Reply{pt.Status(500, "a"), pt.Status(500, "b"), pt.Status(500, "oops"), good}, code: wire.ProviderOverloaded, attempts: 3, took: backoff2, status: 500, detail: "oops"},
	{name: "503 that is HTML", script: []pt.Reply{pt.Raw(503, "text/html", "<html>down"), pt.Raw(503, "text/html", "<html>down"), pt.Raw(503, "text/html", "<html>down")}, code: wire.ProviderOverloaded, attempts: 3, status: 503, detail: "HTTP 503"},
	{name: "529 thrice", script: []pt.Reply{pt.Status(529, "a"), pt.Status(529, "b"), pt.Status(529, "Overloaded")}, code: wire.ProviderOverloaded, attempts: 3, status: 529},
	{name: "a giant error", script: []pt.Reply{pt.Raw(400, "application/json", `{"error":{"message":"`+strings.Repeat("x", 1<<20)+`"}}`)}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 400},
	{name: "an error whose body never comes", script: []pt.Reply{pt.HangAfterHeaders(529)}, code: wire.ProviderOverloaded, attempts: 1, took: timeout, status: 529},

	// The network fails.
	{name: "hang before headers", script: []pt.Reply{pt.Hang(), good}, code: wire.ProviderTimeout, attempts: 1, took: timeout},
	{name: "hang after headers", script: []pt.Reply{pt.HangAfterHeaders(200), good}, code: wire.ProviderTimeout, attempts: 1, took: timeout, status: 200},
	{name: "a slow body", script: []pt.Reply{pt.Slow(good, 2*time.Second)}, attempts: 1, took: span{20 * time.Second, 24 * time.Second}, status: 200, usage: true},
	{name: "a body that is too slow", script: []pt.Reply{pt.Slow(good, 4*time.Second), good}, code: wire.ProviderTimeout, attempts: 1, took: timeout, status: 200},
	{name: "a hang after a failure", script: []pt.Reply{pt.Status(500, "a"), pt.Hang(), good}, code: wire.ProviderTimeout, attempts: 2, took: timeout},
	{name: "a cut body", script: []pt.Reply{pt.CutBody(good), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200, detail: "broke off"},
	{name: "a refused connection", script: []pt.Reply{pt.Refuse(), good}, attempts: 2, took: backoff1, status: 200, usage: true},
	{name: "connections refused thrice", script: []pt.Reply{pt.Refuse(), pt.Refuse(), pt.Refuse(), good}, code: wire.ProviderUnreachable, attempts: 3, took: backoff2, detail: "connection refused"},
	{name: "a broken connection", script: []pt.Reply{pt.Reset(), good}, attempts: 2, took: backoff1, status: 200, usage: true},
	{name: "connections broken thrice", script: []pt.Reply{pt.Reset(), pt.Reset(), pt.Reset(), good}, code: wire.ProviderUnreachable, attempts: 3, took: backoff2},
	{name: "a giant body", script: []pt.Reply{pt.Giant(8 << 20), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200, detail: "too large"},
	{name: "a redirect", script: []pt.Reply{pt.Redirect(307, "http://localhost/elsewhere"), good}, code: wire.ProviderUnreachable, attempts: 1, final: true, status: 307, detail: "redirects"},
	{name: "a redirect to GET", script: []pt.Reply{pt.Redirect(302, "http://elsewhere.test/"), good}, code: wire.ProviderUnreachable, attempts: 1, final: true, status: 302},

	// The answer is none.
	{name: "HTML", script: []pt.Reply{pt.HTML(), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200, detail: "text/html"},
	{name: "nothing", script: []pt.Reply{pt.Raw(200, "application/json", ""), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200},
	{name: "204", script: []pt.Reply{pt.Raw(204, "", ""), good}, code: wire.ProviderUnreachable, attempts: 1, status: 204},
	{name: "null", script: []pt.Reply{pt.Raw(200, "application/json", "null"), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200},
	{name: "an empty object", script: []pt.Reply{pt.Raw(200, "application/json", "{}"), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200},
	{name: "200 and overloaded", script: []pt.Reply{pt.Disguised(529, "busy"), good}, code: wire.ProviderOverloaded, attempts: 1, status: 200, detail: "busy"},
	{name: "200 and a bad request", script: []pt.Reply{pt.Disguised(400, "bad"), good}, code: wire.ProviderBadRequest, attempts: 1, final: true, status: 200},
	{name: "200 and OpenRouter's error", script: []pt.Reply{pt.Raw(200, "application/json", `{"error":{"code":429,"message":"free tier"},"user_id":"u"}`), good}, code: wire.ProviderRateLimited, attempts: 1, status: 200, detail: "free tier"},
	{name: "200 and an error that is a word", script: []pt.Reply{pt.Raw(200, "application/json", `{"error":"model is loading"}`), good}, code: wire.ProviderOverloaded, attempts: 1, status: 200, detail: "loading"},

	// The answer is no decision.
	{name: "no call", script: []pt.Reply{pt.Text("I would rather talk."), good}, code: wire.NoToolCall, attempts: 1, status: 200, detail: "rather talk", usage: true},
	{name: "no call and a forged one", script: []pt.Reply{pt.Text(`{"name":"tap","arguments":{"element":1}}`), good}, code: wire.NoToolCall, attempts: 1, status: 200, usage: true},
	{name: "calls that are not there", script: []pt.Reply{pt.Dropped(), good}, code: wire.NoToolCall, attempts: 1, status: 200, usage: true},
	{name: "two calls", script: []pt.Reply{pt.Calls(pt.ToolCall{Name: "tap", Arguments: `{"element":1}`}, pt.ToolCall{Name: "observe", Arguments: `{}`}), good}, code: wire.MultipleToolCalls, attempts: 1, status: 200, usage: true},
	{name: "two calls of which one fits", script: []pt.Reply{pt.Calls(pt.ToolCall{Name: "fly", Arguments: `[]`}, pt.ToolCall{Name: "observe", Arguments: `{}`}), good}, code: wire.MultipleToolCalls, attempts: 1, status: 200, usage: true},
	{name: "an unknown tool", script: []pt.Reply{pt.Call("fly", `{}`), good}, code: wire.UnknownTool, attempts: 1, status: 200, usage: true},
	{name: "a tool by its inner name", script: []pt.Reply{pt.Call("mcp:server/tool", `{}`), good}, code: wire.UnknownTool, attempts: 1, status: 200, usage: true},
	{name: "arguments that are an array", script: []pt.Reply{pt.Call("tap", `[{"element":1}]`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "arguments that are null", script: []pt.Reply{pt.Call("observe", `null`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "arguments that are a string", script: []pt.Reply{pt.Call("tap", `"{\"element\":1}"`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "arguments with a key twice", script: []pt.Reply{pt.Call("tap", `{"element":1,"element":2}`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "arguments that do not fit", script: []pt.Reply{pt.Call("tap", `{"element":10}`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "arguments that were invented", script: []pt.Reply{pt.Call("tap", `{"element":1,"force":true}`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true},
	{name: "broken arguments", script: []pt.Reply{pt.Call("tap", `{"element":1,"note":"hal`), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true, only: openAI},
	{name: "broken arguments", script: []pt.Reply{pt.Call("tap", `{"element":1,"note":"hal`), good}, code: wire.ProviderUnreachable, attempts: 1, status: 200, only: claude},
	{name: "no arguments where some are needed", script: []pt.Reply{pt.Call("tap", ``), good}, code: wire.BadArguments, attempts: 1, status: 200, usage: true, only: openAI},
	{name: "no arguments where none are needed", script: []pt.Reply{pt.Call("observe", ``), good}, attempts: 1, status: 200, usage: true, only: openAI},
	{name: "no input", script: []pt.Reply{pt.Raw(200, "application/json", `{"type":"message","stop_reason":"tool_use","content":[{"type":"tool_use","name":"observe"}]}`)}, code: wire.BadArguments, attempts: 1, status: 200, only: claude},

	// The answer did not end by itself.
	{name: "cut off", script: []pt.Reply{pt.CutOff("tap", `{"element":1}`), good}, code: wire.Truncated, attempts: 1, status: 200, usage: true},
	{name: "cut off in the middle of the arguments", script: []pt.Reply{pt.CutOff("tap", `{"element":1,"note":"hal`), good}, code: wire.Truncated, attempts: 1, status: 200, usage: true, only: openAI},
	{name: "cut off in disguise", script: []pt.Reply{pt.CutOffDisguised("tap", `{"element":1}`), good}, code: wire.Truncated, attempts: 1, status: 200, usage: true},
	{name: "a refusal", script: []pt.Reply{pt.Refusal("I cannot buy that."), good}, code: wire.Refused, attempts: 1, final: true, status: 200, detail: "cannot buy", usage: true},
	{name: "filtered", script: []pt.Reply{pt.Filtered(), good}, code: wire.ContentFiltered, attempts: 1, final: true, status: 200, usage: true, only: openAI},
	{name: "a filtered prompt", script: []pt.Reply{pt.Raw(400, "application/json", `{"error":{"message":"The prompt triggered the policy","code":"content_filter"}}`)}, code: wire.ContentFiltered, attempts: 1, final: true, status: 400},
	{name: "paused", script: []pt.Reply{pt.Paused("tap", `{"element":1}`), good}, code: wire.NoToolCall, attempts: 1, status: 200, usage: true},
}

var (
	openAI   = []provider.Kind{provider.OpenAIChat, provider.OpenAIResponses}
	claude   = []provider.Kind{provider.Anthropic}
	good     = pt.Call("tap", `{"element":3}`)
	backoff1 = span{375 * time.Millisecond, 500 * time.Millisecond}
	backoff2 = span{1125 * time.Millisecond, 1500 * time.Millisecond}
	timeout  = span{30 * time.Second, 30 * time.Second}
)

// clock is a moment as HTTP writes it, some seconds after one that no clock here shows.
func clock(seconds int) string {
	return time.Date(2031, 5, 6, 7, 8, 9+seconds, 0, time.UTC).Format(http.TimeFormat)
}

func TestWhatProvidersDo(t *testing.T) {
	for _, c := range faults {
		t.Run(strings.ReplaceAll(c.name, ",", ""), func(t *testing.T) {
			eachKind(t, func(t *testing.T, r *rig) {
				if c.only != nil && !slices.Contains(c.only, r.cfg.Provider) {
					return
				}
				r.Script(c.script...)
				start := time.Now()
				out, err := r.client(t).Call(t.Context(), request())
				took := time.Since(start)
				if slices.ContainsFunc(r.dials, func(a string) bool { return a != "localhost:80" }) {
					t.Errorf("it went elsewhere: %v", r.dials)
				}
				for _, s := range r.Seen() {
					if s.Problem != "" {
						t.Fatalf("the provider refuses the request: %s", s.Problem)
					}
				}
				if c.code == "" {
					if err != nil {
						t.Fatal(err)
					}
				} else {
					checkFailure(t, refusal(t, out, err, c.code), out, c.after, c.final, c.detail)
				}
				if out.Attempts != c.attempts || r.Calls() != c.attempts {
					t.Errorf("%d attempts are told and %d were made, want %d", out.Attempts, r.Calls(), c.attempts)
				}
				if out.Status != c.status {
					t.Errorf("status %d, want %d", out.Status, c.status)
				}
				if got := out.Usage.In > 0; got != c.usage {
					t.Errorf("usage %+v", out.Usage)
				}
				if took < c.took.from || took > max(c.took.to, 2*time.Millisecond) && (c.took != span{} || c.attempts == 1) {
					t.Errorf("it took %v, want %v to %v", took, c.took.from, c.took.to)
				}
			})
		})
	}
}

func checkFailure(t *testing.T, r *wire.Refusal, out provider.Outcome, after time.Duration, final bool, detail string) {
	t.Helper()
	if r.RetryAfter() != after {
		t.Errorf("retry after %v, want %v", r.RetryAfter(), after)
	}
	if r.Retryable == final {
		t.Errorf("retryable is %v", r.Retryable)
	}
	if got, _ := r.Args["detail"].(string); !strings.Contains(got, detail) || len(got) > 240 {
		t.Errorf("detail %q, want %q", got, detail)
	}
	if r.Args["attempts"] != out.Attempts || r.Args["profile"] != profileName {
		t.Errorf("arguments %v", r.Args)
	}
	if status, ok := r.Args["provider_status"]; ok != (out.Status != 0) || (ok && status != out.Status) {
		t.Errorf("provider_status %v, status %d", status, out.Status)
	}
	if id, ok := r.Args["request_id"]; ok != (out.RequestID != "") || (ok && id != out.RequestID) {
		t.Errorf("request_id %v, id %q", id, out.RequestID)
	}
	if r.Code == wire.ProviderTimeout && r.Args["timeout_ms"] != int64(30000) {
		t.Errorf("timeout_ms %v", r.Args["timeout_ms"])
	}
}
