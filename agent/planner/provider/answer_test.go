package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner"
)

const fuzzKey = "key-0123456789abcdef"

// bodies are whole answers, from which fuzzing starts.
var bodies = []string{
	`{"type":"message","id":"msg_1","model":"m","role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"tap","input":{"element":1}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":1}}`,
	`{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"tap","arguments":"{\"element\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":1}}}`,
	`{"id":"r","model":"m","status":"completed","error":null,"output":[{"type":"reasoning"},{"type":"function_call","name":"tap","arguments":"{\"element\":1}","status":"completed"}],"usage":{"input_tokens":5,"output_tokens":6}}`,
	`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`,
	`{"error":{"message":"m","type":"t","param":null,"code":429}}`,
	`{"error":"loading"}`,
	`{"choices":[{"message":{"tool_calls":[{"function":{"name":"free","arguments":""}}]},"finish_reason":"stop"}]}`,
	`{"choices":[{"message":{"refusal":"no"},"finish_reason":"stop"}]}`,
	`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`,
	`{"stop_reason":"max_tokens","stop_reason":"tool_use","content":[{"type":"tool_use","name":"tap","input":{"element":1}}]}`,
	`{"Stop_Reason":"tool_use","content":[{"type":"tool_use","name":"tap","input":{"element":1}}]}`,
	`{"stop_reason":"tool_use","content":[{"type":"tool_use","name":"tap","input":{"element":1}}]} {}`,
	"{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"free\",\"arguments\":\"{\\\"a\\\":\\\"\xff\\\"}\"}}]},\"finish_reason\":\"stop\"}]}",
	`[[[[[[]]]]]]`, `{"choices":[null]}`, `{"output":[[]]}`, "",
}

func fuzzAsked() *asked {
	req := &planner.Request{SystemPrompt: "the system prompt", UserPrompt: "a prompt with a screen", Tools: []planner.Tool{
		{Name: "tap", InputSchema: json.RawMessage(`{"type":"object","properties":{"element":{"type":"integer"}},"required":["element"]}`)},
		{Name: "free", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}}
	n, err := namesOf(req.Tools)
	if err != nil {
		panic(err)
	}
	return &asked{names: n, req: req, key: fuzzKey}
}

// FuzzAnswer: whatever comes, a decision is one that was offered and fits, and
// a failure is bounded and does not show the key.
func FuzzAnswer(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range Kinds() {
			c := &Client{cfg: Config{Provider: kind}}
			q := fuzzAsked()
			a, err := c.readAnswer(body)
			if a.usage.In < 0 || a.usage.Out < 0 {
				t.Errorf("usage %+v", a.usage)
			}
			if err != nil || a.fault != nil {
				if a.fault != nil {
					checkDetail(t, q.disguised(a.fault))
				}
				continue
			}
			d, refusal := q.judge(&a, 1000)
			if refusal != nil {
				if d.Tool != "" || d.Arguments != nil {
					t.Errorf("a failure came with %+v", d)
				}
				checkDetail(t, &failure{refusal: refusal})
				continue
			}
			if err := planner.Validate(d, q.req.Tools); err != nil || a.end != ended || len(a.calls) != 1 {
				t.Errorf("%s was accepted: %v", body, err)
			}
		}
	})
}

// FuzzErrorBody: the same of a failure's body.
func FuzzErrorBody(f *testing.F) {
	for i, b := range bodies {
		f.Add([]byte(b), 400+i*11)
	}
	f.Add([]byte(`{"error":{"message":"your key `+fuzzKey+` is wrong, prompt: a prompt with a screen"}}`), 401)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		if status < 400 || status > 599 {
			return
		}
		fail := fuzzAsked().failed(&exchange{status: status, body: body, header: http.Header{"Retry-After": {string(body)}}})
		if fail == nil || fail.wait < 0 || fail.wait > maxRetryAfter {
			t.Fatalf("%+v", fail)
		}
		checkDetail(t, fail)
	})
}

func checkDetail(t *testing.T, f *failure) {
	t.Helper()
	for name, v := range f.refusal.Args {
		s, ok := v.(string)
		if !ok {
			continue
		}
		if len(s) > maxDetail || strings.ContainsAny(s, "\n\x1b\x00") || strings.Contains(s, fuzzKey) || strings.Contains(s, "a prompt with a screen") {
			t.Errorf("%s is %q", name, s)
		}
	}
	if f.refusal.Code == "" {
		t.Error("no code")
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	decided := map[Kind][]int{Anthropic: {0}, OpenAIChat: {1, 6}, OpenAIResponses: {2}}
	for _, kind := range Kinds() {
		c := &Client{cfg: Config{Provider: kind}}
		for i, b := range bodies {
			q := fuzzAsked()
			a, err := c.readAnswer([]byte(b))
			got := false
			if err == nil && a.fault == nil {
				_, refusal := q.judge(&a, 1000)
				got = refusal == nil
			}
			want := false
			for _, n := range decided[kind] {
				want = want || n == i
			}
			if got != want {
				t.Errorf("%s: %s is decided: %v", kind, b, got)
			}
		}
	}
}

// TestClientsShareConnections: a client is made for each request, connections are not.
func TestClientsShareConnections(t *testing.T) {
	made := func(proxy string) *Client {
		c, err := New(Config{Provider: Anthropic, Model: "m", Proxy: proxy})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if made("").transport != made("").transport || made("http://p:1").transport != made("http://p:1").transport {
		t.Error("two clients have connections of their own")
	}
	if made("").transport == made("http://p:1").transport {
		t.Error("a client uses another one's proxy")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, ms, date string
		want            time.Duration
		told            bool
	}{
		{"", "", "", 0, false},
		{"3600", "", "", time.Hour, true},
		{"1.5", "", "", 1500 * time.Millisecond, true},
		{"0", "", "", 0, true},
		{"7", "250", "", 250 * time.Millisecond, true},
		{"-1", "", "", 0, false},
		{"NaN", "", "", 0, false},
		{"1e999", "", "", maxRetryAfter, true},
		{"99999999", "", "", maxRetryAfter, true},
		{"soon", "", "", 0, false},
		{"Mon, 30 Nov 2026 12:00:30 GMT", "", "", 30 * time.Second, true},
		{"Mon, 30 Nov 2026 11:00:00 GMT", "", "", 0, true},
		{"Mon, 30 Nov 2026 12:00:30 GMT", "", "Mon, 30 Nov 2026 12:00:10 GMT", 20 * time.Second, true}, // the rack's clock does not count
		{"Mon, 30 Nov 2036 12:00:30 GMT", "", "", maxRetryAfter, true},
	} {
		h := http.Header{}
		for name, v := range map[string]string{"Retry-After": c.after, "Retry-After-Ms": c.ms, "Date": c.date} {
			if v != "" {
				h.Set(name, v)
			}
		}
		if d, told := retryAfter(h, now); d != c.want || told != c.told {
			t.Errorf("%+v: %v, %v", c, d, told)
		}
	}
}

func TestWhatIsQuoted(t *testing.T) {
	q := fuzzAsked()
	for in, want := range map[string]string{
		"plain words":                          "plain words",
		"your key " + fuzzKey + " is wrong":    "your key [redacted] is wrong",
		"key " + fuzzKey[:12] + "*** is wrong": "key [redacted]*** is wrong",
		"bad: a prompt with a screen!":         "bad: [...]!",
		"two\nlines\x1b[0m":                    "two lines [0m",
		"image " + strings.Repeat("QUJD", 60):  "image [...]",
		strings.Repeat("é ", 400):              strings.Repeat("é ", 79) + "...",
	} {
		if got := q.quote(in); got != want {
			t.Errorf("%q is quoted as %q, want %q", in, got, want)
		}
	}
}
