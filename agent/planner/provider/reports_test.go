package provider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

// call makes a call against the script.
func (r *rig) call(t *testing.T, script ...pt.Reply) (provider.Outcome, error) {
	t.Helper()
	r.Script(script...)
	return r.client(t).Call(t.Context(), request())
}

// langchain-ai/langchain-litellm PR #260: what cannot be parsed became a call with {}.
func TestReport15_UnparsableArgumentsAreNotAnEmptyObject(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		for _, args := range []string{`{"element"`, `element=1`, `{"element":1}}`, `{'element':1}`, "```json\n{\"element\":1}\n```"} {
			out, err := r.call(t, pt.Call("x--mcp-3aserver-2ftool", args), good) // that tool takes any object
			if r.cfg.Provider == provider.Anthropic {
				refusal(t, out, err, wire.ProviderUnreachable) // its whole answer is no JSON
			} else {
				refusal(t, out, err, wire.BadArguments)
			}
			r.Script() // the good answer stays for the next round
			if out, err := r.call(t); err != nil || out.Decision.Tool != "tap" {
				t.Errorf("%s: the turn after it: %v", args, err)
			}
		}
	})
}

// NousResearch/hermes-agent #7680, PR #83229: what was cut off was executed
// when routers changed the finish reason, and what was malformed was called cut off.
func TestReport16_CutOffIsNotMalformedAndMalformedIsNotCutOff(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		out, err := r.call(t, pt.CutOffDisguised("tap", `{"element":1,"note":"whole by chance"}`))
		refusal(t, out, err, wire.Truncated)
		if r.cfg.Provider != provider.Anthropic {
			out, err = r.call(t, pt.CutOff("tap", `{"element":1,"no`))
			refusal(t, out, err, wire.Truncated)
			out, err = r.call(t, pt.Call("tap", `{"element":1,"no`))
			refusal(t, out, err, wire.BadArguments)
		}
	})
}

// vllm-project/vllm #53255 and #9451: a call is reported that is not there, and
// parallel calls come though they are forbidden.
func TestReport17_NoCallAndManyCallsUnderRequired(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		out, err := r.call(t, pt.Dropped())
		refusal(t, out, err, wire.NoToolCall)
		one := pt.ToolCall{Name: "tap", Arguments: `{"element":1}`}
		out, err = r.call(t, pt.Calls(one, one, one))
		if n := refusal(t, out, err, wire.MultipleToolCalls).Args["count"]; n != 3 {
			t.Errorf("count %v", n)
		}
	})
}

// ollama/ollama #17921: a forced call is answered with text.
func TestReport18_ForcedCallAnsweredWithText(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		out, err := r.call(t, pt.Text(`I will call tap({"element":1}).`))
		if d := refusal(t, out, err, wire.NoToolCall).Args["detail"]; !strings.Contains(d.(string), "I will call tap") {
			t.Errorf("detail %v", d)
		}
	})
}

// OpenHands/OpenHands #5111, simonw/llm #1104: a tool is called that was never offered.
func TestReport19_ToolThatWasNeverOffered(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		out, err := r.call(t, pt.Call("tap\x1b[31m"+strings.Repeat("z", 5000), `{}`))
		args := refusal(t, out, err, wire.UnknownTool).Args
		if name := args["tool"].(string); len(name) > 240 || strings.Contains(name, "\x1b") {
			t.Errorf("tool %q", name)
		}
		if fmt.Sprint(args["known"]) != "[tap observe mcp:server/tool]" {
			t.Errorf("known %v", args["known"])
		}
	})
}

// openai/openai-python #3828: 30 s cost 91 s. llm-exe/llm-exe PR #797: a
// repeated timeout is billed twice.
func TestReport20_TimeoutIsTheWholeCallsAndIsNotRepeated(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		start := time.Now()
		out, err := r.call(t, pt.Hang(), good)
		refusal(t, out, err, wire.ProviderTimeout)
		if took := time.Since(start); took != 30*time.Second || r.Calls() != 1 {
			t.Errorf("%v, %d calls", took, r.Calls())
		}
		start = time.Now()
		r.Script(pt.Status(500, "a", "Retry-After", "9"), pt.Status(500, "b", "Retry-After", "9"), pt.Hang())
		out, err = r.client(t).Call(t.Context(), request()) // the first answer is the good one from before
		if err != nil || out.Attempts != 1 {
			t.Fatal(err)
		}
		out, err = r.client(t).Call(t.Context(), request())
		refusal(t, out, err, wire.ProviderTimeout)
		if took := time.Since(start); took != 30*time.Second || out.Attempts != 3 {
			t.Errorf("%v, %d attempts", took, out.Attempts)
		}
	})
}

// langgenius/dify #9197: 200 with an error's body.
func TestReport23_SuccessThatIsAnError(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		for status, code := range map[int]wire.Code{401: wire.ProviderAuth, 429: wire.ProviderRateLimited, 500: wire.ProviderOverloaded, 529: wire.ProviderOverloaded} {
			if status == 401 && r.cfg.Provider != provider.Anthropic {
				code = wire.ProviderBadRequest // OpenAI's type does not tell, and no status does
			}
			out, err := r.call(t, pt.Disguised(status, "x"))
			refusal(t, out, err, code)
		}
	})
}

// run-llama/llama_index #19641: thinking and a forced call do not go together.
func TestReport24_ThinkingAndAForcedCall(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		if r.cfg.Provider != provider.Anthropic {
			return
		}
		r.cfg.Options.Thinking = "adaptive"
		out, err := r.call(t)
		if d := refusal(t, out, err, wire.ProviderBadRequest).Args["detail"]; !strings.Contains(d.(string), "Thinking may not be enabled") {
			t.Errorf("detail %v", d)
		}
		r.cfg.Options.ToolChoice = "auto"
		if out, err := r.call(t, good); err != nil || out.Decision.Tool != "tap" {
			t.Error(err)
		}
	})
}

// anthropics/anthropic-sdk-go #201: hang. alibaba/open-code-review PR #1162:
// header timeouts that are repeated. labring/aiproxy PR #286: nil pointer on an error.
func TestReport25_SilenceLongerThanTheSDKsTimeoutsAndStrangeErrors(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		r.cfg.Timeout = 14 * time.Minute
		start := time.Now()
		out, err := r.call(t, pt.Slow(good, 70*time.Second)) // the first byte after 70 s, the last after 770
		if err != nil || out.Attempts != 1 || time.Since(start) < 12*time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for _, body := range []string{``, `null`, `[]`, `{"error":null}`, `{"error":[]}`, `{"error":{}}`, `{"type":"error"}`, `{"type":"error","error":null}`, "\xff"} {
			out, err := r.call(t, pt.Raw(418, "application/json", body))
			refusal(t, out, err, wire.ProviderBadRequest)
		}
	})
}

func TestCallersWhoLoseInterest(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		r.Script(pt.Hang(), pt.Status(500, "a", "Retry-After", "10"), good)
		out, err := r.client(t).Call(ctx, request())
		if !errors.Is(err, context.Canceled) || out.Attempts != 1 {
			t.Errorf("%v", err)
		}
		if _, ok := errors.AsType[*wire.Refusal](err); ok {
			t.Error("the caller's own doing is no refusal")
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel) // in the middle of a wait
		if out, err = r.client(t).Call(ctx, request()); !errors.Is(err, context.Canceled) || out.Attempts != 1 || out.Status != 500 {
			t.Errorf("%v %+v", err, out)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		r.Script(pt.Hang()) // after the good one
		if _, err := r.client(t).Call(ctx, request()); err != nil {
			t.Fatal(err)
		}
		out, err = r.client(t).Call(ctx, request())
		if ms := refusal(t, out, err, wire.ProviderTimeout).Args["timeout_ms"]; ms != int64(2000) || time.Since(start) != 2*time.Second {
			t.Errorf("timeout_ms %v after %v", ms, time.Since(start))
		}
	})
}

// The scenarios of spec 003 that show here; the others belong to the cloud.
func TestSpec003_ProviderCalls(t *testing.T) {
	t.Run("Provider returns a usable decision", func(t *testing.T) {
		eachKind(t, func(t *testing.T, r *rig) {
			r.Script(good)
			var p planner.Planner = r.client(t)
			d, err := p.Decide(t.Context(), request())
			if err != nil || d.Tool != "tap" || string(d.Arguments) != `{"element":3}` {
				t.Errorf("%+v, %v", d, err)
			}
		})
	})
	t.Run("Configured provider is unreachable or misconfigured", func(t *testing.T) {
		eachKind(t, func(t *testing.T, r *rig) {
			for _, c := range []struct {
				reply pt.Reply
				code  wire.Code
			}{{pt.Status(401, "no"), wire.ProviderAuth}, {pt.Status(404, "no"), wire.ProviderBadRequest}, {pt.Hang(), wire.ProviderTimeout}, {pt.HTML(), wire.ProviderUnreachable}} {
				out, err := r.call(t, c.reply)
				refusal(t, out, err, c.code)
			}
		})
	})
	t.Run("Endpoint cannot resolve a decision", func(t *testing.T) {
		eachKind(t, func(t *testing.T, r *rig) {
			if out, err := r.call(t, good); err != nil || out.Decision.Tool == "" {
				t.Fatal(err)
			}
			for _, bad := range []pt.Reply{pt.Text("no"), pt.Dropped(), pt.Call("fly", `{}`), pt.Call("tap", `{}`), pt.Refusal("no"), pt.CutOff("tap", `{"element":1}`), pt.Paused("tap", `{"element":1}`)} {
				out, err := r.call(t, bad)
				if err == nil || out.Decision.Tool != "" || out.Decision.Arguments != nil { // no default, no guess, not the one before
					t.Errorf("%+v, %v", out, err)
				}
			}
		})
	})
}
