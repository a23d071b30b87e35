package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"phonerack/agent/planner/provider"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// kinds are the protocols of a profile's providers.
var kinds = map[string]provider.Kind{
	store.Anthropic:       provider.Anthropic,
	store.OpenAI:          provider.OpenAIChat,
	store.OpenAIResponses: provider.OpenAIResponses,
}

// CredentialBinding is what a profile's credential is sealed for.
func CredentialBinding(tenant, profile string, version int) vault.Binding {
	return vault.Binding{Purpose: "profile", Owner: []string{tenant, profile}, Version: version}
}

// options are a profile's options as parsed.
type options struct {
	provider.Options
	Proxy string // URL of an HTTP proxy to the provider
	Rules string // name of a rule file, of a scripted profile
}

// ruleName is a name without a folder.
var ruleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

var errNoRules = errors.New("the profile names a rule file, but this installation has no folder for them")

// parseOptions reads the options of a profile for its provider. It is the one place that knows which there are.
func parseOptions(p *store.Profile) (options, error) {
	var o options
	raw := bytes.TrimSpace(p.Options)
	if len(raw) == 0 {
		return o, nil
	}
	var all map[string]json.RawMessage
	if err := wire.Unmarshal(raw, &all); err != nil || all == nil {
		return o, errors.New("the profile's options are no JSON object")
	}
	known := optionNames(p.Provider)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, name) {
			return o, fmt.Errorf("%.40q is not an option of the provider %s, which has: %s", name, p.Provider, strings.Join(known, ", "))
		}
	}
	for name, to := range map[string]*string{"rules": &o.Rules, "proxy": &o.Proxy} {
		if raw, ok := all[name]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return o, fmt.Errorf("the option %s must be a text", name)
			}
			delete(all, name)
		}
	}
	if o.Rules != "" && !ruleName.MatchString(o.Rules) {
		return o, errors.New("the option rules must be the name of a file, without a folder")
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return o, err
	}
	o.Options, err = provider.ParseOptions(rest)
	return o, err
}

// optionNames lists the options that a provider has.
func optionNames(kind string) []string {
	if kind == store.Scripted {
		return []string{"rules"}
	}
	names := []string{"proxy"}
	for f := range reflect.TypeFor[provider.Options]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (o *options) config(p *store.Profile, key provider.Secret) provider.Config {
	return provider.Config{
		Profile: p.Name, Provider: kinds[p.Provider], Model: p.Model, BaseURL: p.BaseURL, Key: key, Timeout: p.Timeout, Proxy: o.Proxy, Options: o.Options,
	}
}

func (o *options) maxTokens() int {
	if o.MaxTokens > 0 {
		return o.MaxTokens
	}
	return provider.DefaultMaxTokens
}

// CheckProfile tells in one sentence why a profile could never be called with this key, which is its credential before
// it is sealed: an unknown provider or option, a value that does not fit, a model or key where none belongs. nil if
// it could. It connects to nothing. The error is a *wire.Refusal with BadRequest.
func CheckProfile(p store.Profile, key vault.Secret) error {
	if err := checkProfile(&p, key); err != nil {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()}).Because(err)
	}
	return nil
}

func checkProfile(p *store.Profile, key vault.Secret) error {
	if p.Provider != store.Scripted && kinds[p.Provider] == "" {
		return fmt.Errorf("the provider %.40q is none of %s, %s, %s, %s", p.Provider, store.Anthropic, store.OpenAI, store.OpenAIResponses, store.Scripted)
	}
	if p.Name == "" {
		return errors.New("the profile has no name")
	}
	if p.Timeout <= 0 {
		return errors.New("the profile has no timeout")
	}
	o, err := parseOptions(p)
	if err != nil {
		return err
	}
	if p.Provider == store.Scripted {
		if p.Model != "" || p.BaseURL != "" || !key.Empty() {
			return errors.New("a scripted profile has no model, base URL or key")
		}
		return nil
	}
	if key.Empty() && p.BaseURL == "" {
		return errors.New("the provider's own address needs a key")
	}
	_, err = provider.New(o.config(p, provider.NewSecret(string(key.Reveal()))))
	return err
}

// CredentialFault is a profile whose credential cannot be opened. Requests of its tenant are refused with
// profile_undecryptable while it is active.
type CredentialFault struct {
	Tenant  string
	Profile string // its name
	ID      string
	KEK     string // the key that it is sealed under
	Active  bool
	Err     error
}

// maxCredentials bounds the profiles that are looked at when the process starts.
const maxCredentials = 10_000

// CheckCredentials opens every profile's credential and tells which cannot be opened. Each is logged. The error
// is the store's.
func (p *Proxy) CheckCredentials(ctx context.Context) ([]CredentialFault, error) {
	all, err := p.o.Store.System().SealedUnder(ctx, "", maxCredentials)
	if err != nil {
		return nil, err
	}
	var faults []CredentialFault
	for _, s := range all {
		if s.Purpose != "profile" || len(s.Owner) != 1 {
			continue
		}
		_, err := p.o.Vault.Open(CredentialBinding(s.Tenant, s.Owner[0], s.Version), s.Value)
		if err == nil {
			continue
		}
		f := CredentialFault{Tenant: s.Tenant, ID: s.Owner[0], KEK: s.KEK, Err: err}
		profile, err := p.o.Store.Profile(ctx, store.Scope{Tenant: s.Tenant, Actor: "system"}, f.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		f.Profile, f.Active = profile.Name, profile.Active
		p.o.Logger.Error("credential of a profile cannot be opened", "tenant", f.Tenant, "profile", f.Profile, "kek", f.KEK, "active", f.Active, "error", f.Err)
		faults = append(faults, f)
	}
	return faults, nil
}
