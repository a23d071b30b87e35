package planner

import (
	"context"
	"path/filepath"
	"sync"

	"phonerack/agent/planner/provider"
	"phonerack/agent/planner/script"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// client is a provider that can be asked.
type client interface {
	// prepare makes a request ready, so that all that is left is to wait for the decision. What is wrong with it, ask
	// tells. It keeps the request's bytes.
	prepare(req provider.Request) ask
	// estimate is about how many tokens a call costs at most.
	estimate(req *wire.PlanRequest, screen bool) int64
}

// ask makes the one decision. Its error is a *wire.Refusal or counts as Internal.
type ask func(ctx context.Context) (provider.Outcome, error)

// client makes the client of the active profile.
func (t *turn) client() (client, *wire.Refusal) {
	p := &t.profile
	o, err := parseOptions(p)
	if err != nil {
		return nil, misconfigured(err)
	}
	if p.Provider == store.Scripted {
		rules, err := t.rules(o.Rules)
		if err != nil {
			return nil, misconfigured(err)
		}
		return scripted{rules}, nil
	}
	var key provider.Secret
	if len(p.Credential) > 0 {
		secret, err := t.o.Vault.Open(CredentialBinding(t.caller.Tenant, p.ID, p.KeyVersion), p.Credential)
		if err != nil {
			t.log.Error("credential of a profile cannot be opened", "profile", p.Name, "kek", p.KEK, "error", err)
			return nil, wire.Refuse(wire.ProfileUndecryptable, map[string]any{"profile": p.Name}).Because(err)
		}
		key = provider.NewSecret(string(secret.Reveal()))
	}
	cfg := o.config(p, key)
	cfg.Pool = t.o.Pool
	c, err := provider.New(cfg)
	if err != nil {
		return nil, misconfigured(err)
	}
	return model{c, o.maxTokens()}, nil
}

// misconfigured says that a profile cannot be used as it is. CheckProfile would have refused it.
func misconfigured(err error) *wire.Refusal {
	return wire.Refuse(wire.ProviderBadRequest, map[string]any{"detail": err.Error()}).Because(err)
}

// model is a provider that is asked over the network.
type model struct {
	*provider.Client
	answer int // tokens that an answer may have
}

func (m model) prepare(req provider.Request) ask {
	p, err := m.Prepare(req)
	if err != nil {
		return func(context.Context) (provider.Outcome, error) { return provider.Outcome{}, err }
	}
	return p.Call
}

func (m model) estimate(req *wire.PlanRequest, screen bool) int64 {
	size := len(req.SystemPrompt) + len(req.UserPrompt)
	for _, t := range req.Tools {
		size += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	n := size/bytesOfToken + m.answer
	if screen {
		n += screenTokens
	}
	return int64(n)
}

// scripted decides by rules.
type scripted struct{ rules *script.Rules }

func (s scripted) prepare(req provider.Request) ask {
	return func(ctx context.Context) (provider.Outcome, error) { return s.ask(ctx, req) }
}

func (s scripted) ask(ctx context.Context, req provider.Request) (provider.Outcome, error) {
	d, err := s.rules.Decide(ctx, req)
	if err == nil {
		err = provider.Validate(d, req.Tools)
	}
	if err != nil {
		return provider.Outcome{}, err
	}
	return provider.Outcome{Decision: d}, nil
}

func (scripted) estimate(*wire.PlanRequest, bool) int64 { return 0 }

var shipped = sync.OnceValues(script.Shipped)

// rules reads the rule file of a profile, each time anew; "" are the shipped rules.
func (p *Proxy) rules(name string) (*script.Rules, error) {
	if name == "" {
		return shipped()
	}
	if p.o.RulesDir == "" {
		return nil, errNoRules
	}
	return script.Load(filepath.Join(p.o.RulesDir, name))
}
