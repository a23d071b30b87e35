package planner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// TestSpec003_PlannerProxy has a sub-test for each requirement of the specification cloud-planner-proxy and within it
// one for each scenario, as far as they are this package's: who may speak for a rack is proved by the transports, and
// tested with them.
func TestSpec003_PlannerProxy(t *testing.T) {
	for _, r := range []struct {
		title string
		test  func(*testing.T)
	}{
		{"Cloud Control Plane exposes an authenticated planner-decision endpoint", specEndpoint},
		{"Endpoint resolves exactly one tool-call decision using cloud-held provider configuration", specOneDecision},
		{"Cloud-proxy transport removes the need for Host Agent-held provider credentials", specNoHostKey},
		{"Cloud Control Plane persists each resolved planner decision for later retrieval", specPersisted},
		{"Persisted planner decisions are retained within a bounded window", specRetained},
		{"Cloud-side planner decision history is scoped to cloud-proxy transport", specDirect},
		{"Planner-proxy failures do not silently substitute a default action", specNoDefault},
	} {
		t.Run(r.title, r.test)
	}
}

var models = []string{store.Anthropic, store.OpenAI, store.OpenAIResponses}

func specEndpoint(t *testing.T) {
	t.Run("Authenticated host requests a planner decision", func(t *testing.T) {
		b := newBench(t)
		b.activate(b.profile(store.Anthropic), pt.Key)
		d, err := b.decide(ask("q0", b.lease()))
		ok(t, err)
		equal(t, "tool", d.ToolName, "tap")
	})
	t.Run("Unauthenticated or foreign-host request is rejected", func(t *testing.T) {
		b := newBench(t)
		b.activate(b.profile(store.Anthropic), pt.Key)
		addHost(t, b.store, acme, "r2")
		addHost(t, b.store, store.Scope{Tenant: "other", Actor: "admin:otto"}, "r3")
		ref := b.lease()
		for _, c := range []struct {
			name   string
			caller planner.Caller
			host   string
			code   wire.Code
		}{
			{"names another rack", planner.Caller{Tenant: "acme", Host: "r2"}, "r1", wire.HostMismatch},
			{"names none", rack1, "", wire.HostMismatch},
			{"another rack's task", planner.Caller{Tenant: "acme", Host: "r2"}, "r2", wire.NotYourTask},
			{"another tenant's task", planner.Caller{Tenant: "other", Host: "r3"}, "r3", wire.NotYourTask},
			{"the same rack id under another tenant", planner.Caller{Tenant: "other", Host: "r1"}, "r1", wire.NotYourTask},
		} {
			req := ask("q0", ref)
			req.HostID = c.host
			_, err := b.Decide(t.Context(), c.caller, req, nil, func(time.Duration) { t.Errorf("%s: it was accepted", c.name) })
			if !wire.Is(err, c.code) {
				t.Errorf("%s: error is %v, want %s", c.name, err, c.code)
			}
		}
		equal(t, "provider calls", b.fake.Calls(), 0)
		equal(t, "rows", len(b.decisions(ref)), 0)
	})
}

func specOneDecision(t *testing.T) {
	t.Run("Provider returns a usable decision", func(t *testing.T) {
		for _, kind := range models {
			t.Run(kind, func(t *testing.T) {
				b := newBench(t)
				b.activate(b.profile(kind), pt.Key)
				var deadlines []time.Duration
				screen := screenshot(t)
				d, err := b.Decide(t.Context(), rack1, ask("q0", b.lease()), screen, func(d time.Duration) { deadlines = append(deadlines, d) })
				ok(t, err)
				if d.RequestID != "q0" || d.StepIndex != 0 || d.ToolName != "tap" || string(d.Arguments) != `{"element":3}` || d.Tokens != pt.TokensIn+pt.TokensOut {
					t.Errorf("decision is %+v", d)
				}
				if len(deadlines) != 1 || deadlines[0] != 10*time.Second {
					t.Errorf("accepted with %v, want the profile's timeout once", deadlines)
				}
				seen := b.fake.Seen()
				if len(seen) != 1 || seen[0].Problem != "" || seen[0].Model != "model-a" || seen[0].System != systemPrompt || seen[0].User != userPrompt ||
					!bytes.Equal(seen[0].Screen, screen) || len(seen[0].Tools) != len(tools) {
					t.Errorf("the provider saw %+v", seen)
				}
			})
		}
		t.Run(store.Scripted, func(t *testing.T) {
			b := newBench(t)
			b.activate(b.profile(store.Scripted), "")
			req := ask("q0", b.lease())
			req.UserPrompt = scriptedPrompt
			req.Tools = scriptedTools
			d, err := b.decide(req)
			ok(t, err)
			equal(t, "tool", d.ToolName, "launch_app")
			equal(t, "arguments", string(d.Arguments), `{"package":"com.phonerack.shop"}`)
		})
	})
	t.Run("Configured provider is unreachable or misconfigured", func(t *testing.T) {
		for _, c := range []struct {
			name  string
			reply pt.Reply
			key   string
			code  wire.Code
		}{
			{"invalid credentials", good, "another-key-0123456789abcdef", wire.ProviderAuth},
			{"provider error", pt.Status(400, "no such model"), pt.Key, wire.ProviderBadRequest},
			{"rate limit", pt.Status(429, "slow down", "Retry-After", "3600"), pt.Key, wire.ProviderRateLimited},
			{"connection reset", pt.CutBody(good), pt.Key, wire.ProviderUnreachable},
			{"timeout", pt.Hang(), pt.Key, wire.ProviderTimeout},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t)
				p := b.profile(store.Anthropic)
				p.Timeout = 300 * time.Millisecond
				b.activate(p, c.key)
				b.fake.Script(c.reply)
				_, err := b.decide(ask("q0", b.lease()))
				refused(t, err, c.code)
				// The process lives on.
				p.Timeout, p.ID, p.Name = 10*time.Second, store.NewID(), "another"
				b.activate(p, pt.Key)
				_, err = b.decide(ask("q1", b.lease2()))
				ok(t, err)
			})
		}
		t.Run("no profile", func(t *testing.T) {
			b := newBench(t)
			_, err := b.decide(ask("q0", b.lease()))
			refused(t, err, wire.NoProfile)
		})
		t.Run("nobody listens", func(t *testing.T) {
			b := newBench(t)
			b.activate(b.profile(store.OpenAI), pt.Key)
			b.fake.Close()
			_, err := b.decide(ask("q0", b.lease()))
			refused(t, err, wire.ProviderUnreachable)
		})
		t.Run("the credential cannot be opened", func(t *testing.T) {
			b := newBench(t)
			p := b.profile(store.Anthropic)
			foreign := newVault(t, b.dir+"/foreign")
			activate(t, b.store, foreign, p, pt.Key)
			_, err := b.decide(ask("q0", b.lease()))
			r := refused(t, err, wire.ProfileUndecryptable)
			equal(t, "profile", r.Args["profile"], any(p.Name))
			equal(t, "provider calls", b.fake.Calls(), 0)
		})
	})
	t.Run("Database profile is the only planner configuration source", func(t *testing.T) {
		for _, kind := range models {
			t.Run(kind, func(t *testing.T) {
				poison(t)
				b := newBench(t)
				b.activate(b.profile(kind), pt.Key)
				ref := b.lease()
				_, err := b.decide(ask("q0", ref))
				ok(t, err)
				// The next request has the next profile, without a restart.
				p := b.profile(kind)
				p.Name, p.Model = "second", "model-b"
				b.activate(p, pt.Key)
				_, err = b.decide(ask("q1", ref))
				ok(t, err)
				seen := b.fake.Seen()
				equal(t, "provider calls", len(seen), 2)
				equal(t, "first model", seen[0].Model, "model-a")
				equal(t, "second model", seen[1].Model, "model-b")
				for _, s := range seen {
					raw, _ := json.Marshal(s.Header)
					if bytes.Contains(raw, []byte("poison")) || bytes.Contains(s.Body, []byte("poison")) {
						t.Errorf("the environment reached the provider: %s", raw)
					}
				}
				ok(t, b.store.DeactivateProfile(t.Context(), acme, p.ID))
				_, err = b.decide(ask("q2", ref))
				refused(t, err, wire.NoProfile)
			})
		}
	})
	t.Run("Host supplies a different timeout", func(t *testing.T) {
		b := newBench(t)
		p := b.profile(store.Anthropic)
		p.Timeout = 400 * time.Millisecond
		b.activate(p, pt.Key)
		raw, err := json.Marshal(ask("q0", b.lease()))
		ok(t, err)
		// What a host might send beside: none of it is a field of the request.
		raw = append(raw[:len(raw)-1], `,"timeout":3600,"timeout_ms":3600000,"model":"model-z","api_key":"hosts-own-key","provider":"openai","base_url":"http://127.0.0.1:1"}`...)
		var req wire.PlanRequest
		ok(t, wire.Unmarshal(raw, &req))
		b.fake.Script(pt.Hang())
		var told time.Duration
		began := time.Now()
		_, err = b.Decide(t.Context(), rack1, req, nil, func(d time.Duration) { told = d })
		r := refused(t, err, wire.ProviderTimeout)
		equal(t, "timeout told", told, p.Timeout)
		if ms, _ := r.Args["timeout_ms"].(int64); ms < 350 || ms > 400 {
			t.Errorf("timed out after %v ms, want the profile's 400", r.Args["timeout_ms"])
		}
		if took := time.Since(began); took < p.Timeout || took > 20*p.Timeout {
			t.Errorf("it took %s", took)
		}
		seen := b.fake.Seen()
		if len(seen) != 1 || seen[0].Model != "model-a" || bytes.Contains(seen[0].Body, []byte("model-z")) || seen[0].Header.Get("X-Api-Key") != pt.Key {
			t.Errorf("the provider saw %+v", seen)
		}
	})
}

func specNoHostKey(t *testing.T) {
	t.Run("Host configured for cloud-proxy transport has no local provider key", func(t *testing.T) {
		for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
			if v, there := os.LookupEnv(name); there {
				ok(t, os.Unsetenv(name))
				defer func() { _ = os.Setenv(name, v) }()
			}
		}
		b := newBench(t)
		b.activate(b.profile(store.OpenAI), pt.Key)
		req := ask("q0", b.lease())
		raw, err := json.Marshal(req)
		ok(t, err)
		if bytes.Contains(raw, []byte("_key")) {
			t.Errorf("the request has a key: %s", raw)
		}
		_, err = b.decide(req)
		ok(t, err)
		equal(t, "the key that the provider got", b.fake.Seen()[0].Header.Get("Authorization"), "Bearer "+pt.Key)
	})
}

func specPersisted(t *testing.T) {
	t.Run("A planner-decision request resolves successfully", func(t *testing.T) {
		b := newBench(t)
		p := b.activate(b.profile(store.Anthropic), pt.Key)
		ref, other := b.lease(), b.lease2()
		b.fake.Script(good, pt.Text("I would rather not"), pt.Call("x--mcp-3ashop-2fbuy", `{"what":"a \"kettle\", 水壶"}`), good)
		var rows int
		b.hooks[planner.BeforePublish] = func() { rows = len(b.decisions(ref)) }
		_, err := b.decide(ask("q0", ref))
		ok(t, err)
		equal(t, "rows before the answer goes out", rows, 1)
		_, err = b.decide(ask("q1", ref))
		refused(t, err, wire.NoToolCall)
		d, err := b.decide(ask("q2", ref))
		ok(t, err)
		equal(t, "step after a failure between", d.StepIndex, 1)
		d, err = b.decide(ask("q3", other))
		ok(t, err)
		equal(t, "step of another task", d.StepIndex, 0)

		list := b.decisions(ref)
		equal(t, "rows", len(list), 2)
		for i, row := range list {
			if row.Step != i || row.Ref != ref || row.Host != "r1" || row.SystemPrompt != systemPrompt || row.UserPrompt != userPrompt ||
				row.Profile != p.Name || row.TokensIn != pt.TokensIn || row.TokensOut != pt.TokensOut {
				t.Errorf("row is %+v", row)
			}
		}
		equal(t, "tool", list[0].Tool, "tap")
		equal(t, "arguments", string(list[0].Arguments), `{"element":3}`)
		equal(t, "tool", list[1].Tool, "mcp:shop/buy")
		equal(t, "arguments", string(list[1].Arguments), `{"what":"a \"kettle\", 水壶"}`)
	})
	t.Run("A planner-decision request fails", func(t *testing.T) {
		b := newBench(t)
		b.activate(b.profile(store.Anthropic), pt.Key)
		ref := b.lease()
		b.fake.Script(failures()...)
		for i := range failures() {
			if _, err := b.decide(ask(store.NewID(), ref)); err == nil {
				t.Errorf("failure %d is a decision", i)
			}
		}
		equal(t, "rows", len(b.decisions(ref)), 0)
		attempts, err := b.store.Attempts(t.Context(), acme, ref.Task)
		ok(t, err)
		equal(t, "next step", attempts[0].NextStep, 0)
	})
	t.Run("A screenshot was included in the request", testScreenIsNowhere)
}

func specRetained(t *testing.T) {
	const window = 24 * time.Hour
	setup := func(t *testing.T) (b *bench, ended, active store.Ref, prune func()) {
		b = newBench(t)
		b.activate(b.profile(store.Anthropic), pt.Key)
		ended, active = b.lease(), b.lease2()
		for _, ref := range []store.Ref{ended, active} {
			_, err := b.decide(ask(store.NewID(), ref))
			ok(t, err)
		}
		_, err := b.store.SetResult(t.Context(), acme, store.Result{Ref: ended, Host: "r1", Outcome: store.Succeeded, Wrote: true})
		ok(t, err)
		return b, ended, active, func() { pruneOnce(t, b, window) }
	}
	t.Run("A task's retention window has elapsed since reaching a terminal state", func(t *testing.T) {
		b, ended, active, prune := setup(t)
		b.wait(window + time.Second)
		prune()
		equal(t, "rows of the ended task", len(b.decisions(ended)), 0)
		equal(t, "rows of the active task, however old", len(b.decisions(active)), 1)
		if b.counter("pruned_total", "kind", "decision") != 1 {
			t.Error("the removed row is not counted")
		}
	})
	t.Run("A task is still active or within its retention window", func(t *testing.T) {
		b, ended, active, prune := setup(t)
		b.wait(window - time.Second)
		prune()
		equal(t, "rows of the ended task", len(b.decisions(ended)), 1)
		equal(t, "rows of the active task", len(b.decisions(active)), 1)
	})
}

func specDirect(t *testing.T) {
	t.Run("A Host uses direct-to-provider transport", func(t *testing.T) {
		b := newBench(t)
		b.activate(b.profile(store.Anthropic), pt.Key)
		ref := b.lease()
		direct, err := provider.New(provider.Config{
			Provider: provider.Anthropic, Model: "model-a", BaseURL: b.fake.URL, Key: provider.NewSecret(pt.Key), Timeout: 5 * time.Second, Pool: b.o.Pool,
		})
		ok(t, err)
		_, err = direct.Call(t.Context(), provider.Request{
			TaskID: ref.Task, Attempt: ref.Attempt, RequestID: "d0", UserPrompt: userPrompt,
			Tools: []provider.Tool{{Name: "tap", InputSchema: tools[0].InputSchema}},
		})
		ok(t, err)
		_, err = b.store.SetResult(t.Context(), acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Succeeded, Wrote: true, Steps: 1})
		ok(t, err)
		equal(t, "rows after a result of 1 step", len(b.decisions(ref)), 0)
	})
}

func specNoDefault(t *testing.T) {
	t.Run("Endpoint cannot resolve a decision", func(t *testing.T) {
		for _, kind := range models {
			t.Run(kind, func(t *testing.T) {
				b := newBench(t)
				b.activate(b.profile(kind), pt.Key)
				ref := b.lease()
				// There is a decision that could be repeated, and of this very screen.
				_, err := b.decide(ask("q0", ref))
				ok(t, err)
				for i, f := range failing {
					b.fake.Script(f.reply)
					d, err := b.decide(ask(store.NewID(), ref))
					if !wire.Is(err, f.code) || d.ToolName != "" || d.Arguments != nil {
						t.Errorf("case %d: %+v, %v, want %s", i, d, err, f.code)
					}
				}
				equal(t, "rows", len(b.decisions(ref)), 1)
			})
		}
	})
}

// failing is what providers answer without deciding.
var failing = []struct {
	reply pt.Reply
	code  wire.Code
}{
	{pt.Text("I would tap the button"), wire.NoToolCall},
	{pt.Dropped(), wire.NoToolCall},
	{pt.Calls(pt.ToolCall{Name: "tap", Arguments: `{"element":1}`}, pt.ToolCall{Name: "tap", Arguments: `{"element":2}`}), wire.MultipleToolCalls},
	{pt.Call("swipe", `{}`), wire.UnknownTool},
	{pt.Call("tap", `{"element":"three"}`), wire.BadArguments},
	{pt.Call("tap", `{}`), wire.BadArguments},
	{pt.CutOff("tap", `{"element":3}`), wire.Truncated},
	{pt.Refusal("no"), wire.Refused},
	{pt.Disguised(500, "oops"), wire.ProviderOverloaded},
	{pt.HTML(), wire.ProviderUnreachable},
	{pt.Status(401, "invalid x-api-key"), wire.ProviderAuth},
}

func failures() []pt.Reply {
	list := make([]pt.Reply, len(failing))
	for i, f := range failing {
		list[i] = f.reply
	}
	return list
}

// poison sets every variable that the SDKs or other programs take providers from.
func poison(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "ANTHROPIC_MODEL", "OPENAI_API_KEY",
		"OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_MODEL", "PLANNER_PROVIDER", "PLANNER_MODEL", "PLANNER_API_KEY",
	} {
		t.Setenv(name, "poison: poison")
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://poison.invalid/")
	}
	for _, name := range []string{"PLANNER_TIMEOUT", "PLANNER_TIMEOUT_MS"} {
		t.Setenv(name, "1")
	}
}

func pruneOnce(t *testing.T, b *bench, window time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	r := planner.Retention{Store: pruneThen{b.store.System(), cancel}, Window: window, Every: time.Millisecond, Clock: b.clock, Logger: b.o.Logger, Metrics: b.o.Metrics}
	go func() { defer close(done); r.Run(ctx) }()
	<-done
}

// pruneThen ends Run after one run.
type pruneThen struct {
	planner.Pruner
	then func()
}

func (p pruneThen) Prune(ctx context.Context, o store.PruneOptions) (store.Pruned, error) {
	defer p.then()
	return p.Pruner.Prune(ctx, o)
}
