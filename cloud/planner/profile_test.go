package planner_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

func TestCheckProfile(t *testing.T) {
	base := func(kind string) store.Profile {
		p := store.Profile{Name: "p", Provider: kind, Model: "m", Timeout: time.Minute}
		if kind == store.Scripted {
			p.Model = ""
		}
		return p
	}
	for _, c := range []struct {
		name, kind, options, key string
		change                   func(*store.Profile)
		want                     string // "" for nothing wrong
	}{
		{name: "anthropic", kind: store.Anthropic, key: "k"},
		{name: "openai", kind: store.OpenAI, key: "k", options: `{"max_tokens":100,"temperature":0.5,"extra":{"provider":{"require_parameters":true}}}`},
		{name: "responses", kind: store.OpenAIResponses, key: "k", options: `{"effort":"low","proxy":"http://proxy.example:3128"}`},
		{name: "scripted", kind: store.Scripted},
		{name: "scripted by a file", kind: store.Scripted, options: `{"rules":"shop.yaml"}`},
		{name: "a local server without a key", kind: store.OpenAI, change: func(p *store.Profile) { p.BaseURL = "http://localhost:11434/v1" }},
		{name: "no options", kind: store.Anthropic, key: "k", options: ` `},

		{name: "an unknown provider", kind: "gemini", want: "gemini"},
		{name: "an unknown option", kind: store.Anthropic, key: "k", options: `{"max_token":1}`, want: `"max_token" is not an option of the provider anthropic`},
		{name: "an option in other case", kind: store.Anthropic, key: "k", options: `{"Max_Tokens":1}`, want: "Max_Tokens"},
		{name: "an option of a model", kind: store.Scripted, options: `{"max_tokens":1}`, want: "max_tokens"},
		{name: "an option of rules", kind: store.OpenAI, key: "k", options: `{"rules":"shop.yaml"}`, want: "rules"},
		{name: "an option twice", kind: store.OpenAI, key: "k", options: `{"strict":true,"strict":false}`, want: "JSON"},
		{name: "options that are a list", kind: store.OpenAI, key: "k", options: `[]`, want: "JSON"},
		{name: "options that are null", kind: store.OpenAI, key: "k", options: `null`, want: "JSON"},
		{name: "a value that does not fit", kind: store.OpenAI, key: "k", options: `{"effort":"enormous"}`, want: "effort"},
		{name: "a value of another type", kind: store.OpenAI, key: "k", options: `{"max_tokens":"many"}`, want: "max_tokens"},
		{name: "a proxy that is no text", kind: store.OpenAI, key: "k", options: `{"proxy":1}`, want: "proxy"},
		{name: "a proxy with a password", kind: store.OpenAI, key: "k", options: `{"proxy":"http://a:b@proxy.example"}`, want: "proxy"},
		{name: "a rule file elsewhere", kind: store.Scripted, options: `{"rules":"../../etc/passwd"}`, want: "rules"},
		{name: "a rule file by its path", kind: store.Scripted, options: `{"rules":"/etc/passwd"}`, want: "rules"},
		{name: "a key for rules", kind: store.Scripted, key: "k", want: "key"},
		{name: "no key", kind: store.Anthropic, want: "key"},
		{name: "a key with a line break", kind: store.Anthropic, key: "secret\nsecret", want: "key"},
		{name: "no model", kind: store.Anthropic, key: "k", change: func(p *store.Profile) { p.Model = "" }, want: "model"},
		{name: "no name", kind: store.Anthropic, key: "k", change: func(p *store.Profile) { p.Name = "" }, want: "name"},
		{name: "no timeout", kind: store.Anthropic, key: "k", change: func(p *store.Profile) { p.Timeout = 0 }, want: "timeout"},
		{name: "an hour of timeout", kind: store.Anthropic, key: "k", change: func(p *store.Profile) { p.Timeout = time.Hour }, want: "timeout"},
		{name: "a base URL without TLS", kind: store.OpenAI, key: "k", change: func(p *store.Profile) { p.BaseURL = "http://models.example/v1" }, want: "TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := base(c.kind)
			p.Options = json.RawMessage(c.options)
			if c.change != nil {
				c.change(&p)
			}
			err := planner.CheckProfile(p, vault.NewSecret([]byte(c.key)))
			if c.want == "" {
				ok(t, err)
				return
			}
			text := refused(t, err, wire.BadRequest).Error()
			if !strings.Contains(text, c.want) || strings.Contains(text, "\n") || c.key != "k" && c.key != "" && strings.Contains(text, c.key) {
				t.Errorf("it says %q, want one sentence with %q", text, c.want)
			}
		})
	}
}

func TestAProfileThatWasMadeWrongIsAFailureOfItsRequests(t *testing.T) {
	b := newBench(t)
	for i, options := range []string{`{"no_such":1}`, `{"rules":"gone.yaml"}`} {
		p := b.profile([]string{store.Anthropic, store.Scripted}[i])
		p.Options = json.RawMessage(options)
		activate(t, b.store, b.vault, p, "")
		_, err := b.decide(ask(store.NewID(), b.lease()))
		if r := refused(t, err, wire.ProviderBadRequest); r.Retryable {
			t.Error("it is retryable")
		}
	}
	equal(t, "provider calls", b.fake.Calls(), 0)
}

func TestAScriptedProfileMayNameARuleFile(t *testing.T) {
	b := newBench(t, func(o *planner.Options) { o.RulesDir = t.TempDir() })
	b.dir = b.o.RulesDir
	b.write("own.yaml", "name: own\ngoals: [kettle]\nrules:\n  - name: always\n    do: {'mcp:shop/buy': {what: kettle}}\n")
	b.write("broken.yaml", "name: [")
	b.write("wrong.yaml", "name: wrong\ngoals: [kettle]\nrules:\n  - name: always\n    do: {tap: {element: {role: button}}}\n")
	ref := b.lease()
	use := func(file string) (wire.PlanDecision, error) {
		p := b.profile(store.Scripted)
		p.Name, p.Options = file, json.RawMessage(`{"rules":"`+file+`"}`)
		b.activate(p, "")
		return b.decide(ask(store.NewID(), ref))
	}
	d, err := use("own.yaml")
	ok(t, err)
	equal(t, "tool", d.ToolName, "mcp:shop/buy")
	_, err = use("broken.yaml")
	refused(t, err, wire.ProviderBadRequest)
	_, err = use("wrong.yaml") // rules are held to the schema like a model
	refused(t, err, wire.BadArguments)
	p := b.profile(store.Scripted)
	b.activate(p, "")
	_, err = b.decide(ask(store.NewID(), ref)) // no shipped rule knows this goal
	refused(t, err, wire.NoToolCall)
	equal(t, "rows", len(b.decisions(ref)), 1)
}

func TestCredentialsAreCheckedAtTheStart(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	b.activate(b.profile(store.Scripted), "")
	foreign := newVault(t, b.dir+"/foreign")
	lost := activate(t, b.store, foreign, b.profile(store.OpenAI), pt.Key)
	// A credential that was moved to another profile's row.
	moved := b.profile(store.OpenAIResponses)
	sealed, err := b.vault.Seal(planner.CredentialBinding("acme", lost.ID, 1), vault.NewSecret([]byte(pt.Key)))
	ok(t, err)
	moved.Credential, moved.KEK = sealed, vault.KeyID(sealed)
	_, err = b.store.AddProfile(t.Context(), acme, moved)
	ok(t, err)

	faults, err := b.CheckCredentials(t.Context())
	ok(t, err)
	equal(t, "faults", len(faults), 2)
	byName := map[string]planner.CredentialFault{}
	for _, f := range faults {
		byName[f.Profile] = f
	}
	f := byName[lost.Name]
	if f.Tenant != "acme" || f.ID != lost.ID || f.KEK != lost.KEK || !f.Active || f.Err == nil {
		t.Errorf("fault is %+v", f)
	}
	if f = byName[moved.Name]; f.Active || f.Err == nil {
		t.Errorf("fault is %+v", f)
	}
	if !strings.Contains(b.logs.String(), lost.Name) || strings.Contains(b.logs.String(), pt.Key) {
		t.Errorf("log is %s", b.logs.String())
	}
	// The rest works.
	ok(t, b.store.ActivateProfile(t.Context(), acme, lost.ID))
	_, err = b.decide(ask("q0", b.lease()))
	refused(t, err, wire.ProfileUndecryptable)
}

func TestARotatedCredentialServesTheNextRequest(t *testing.T) {
	b := newBench(t)
	p := b.activate(b.profile(store.Anthropic), "an-old-key-0123456789abcdef")
	ref := b.lease()
	_, err := b.decide(ask("q0", ref))
	refused(t, err, wire.ProviderAuth)
	sealed, err := b.vault.Seal(planner.CredentialBinding("acme", p.ID, 2), vault.NewSecret([]byte(pt.Key)))
	ok(t, err)
	ok(t, b.store.RotateCredential(t.Context(), acme, p.ID, sealed, vault.KeyID(sealed), 2))
	_, err = b.decide(ask("q1", ref))
	ok(t, err)
}
