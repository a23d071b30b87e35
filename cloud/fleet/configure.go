package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// NewSettings change what a rack should be set to, key by key; what is not named stays. The keys are those of
// [wire.SettingKeys].
type NewSettings struct {
	Set   map[string]json.RawMessage `json:"set,omitempty"`
	Unset []string                   `json:"unset,omitempty"` // the rack's own file decides again
}

// Configuration is what a rack should be set to.
type Configuration struct {
	Rack    string          `json:"rack_id"`
	Version int64           `json:"version"` // 0: nothing was ever set
	Config  json.RawMessage `json:"config"`
	Changed int64           `json:"changed,omitempty"`
	Applied int64           `json:"applied"` // version that the rack says it has applied
}

func viewConfiguration(d store.Desired) Configuration {
	return Configuration{Rack: d.Host, Version: d.Version, Config: d.Config, Changed: toMS(d.At), Applied: d.Applied}
}

// check lets only through what this version's racks understand. What an older version has left may still be unset.
func (n NewSettings) check() error {
	if len(n.Set)+len(n.Unset) == 0 {
		return bad("no setting is named, neither in set nor in unset")
	}
	config, err := json.Marshal(n.Set)
	if err != nil {
		return bad("the settings cannot be stored")
	}
	if n.Set != nil {
		_, unusable, err := wire.ReadSettings(config)
		if err != nil {
			return bad("%s", err)
		}
		if len(unusable) > 0 {
			return bad("%s", unusable[0])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Set)) {
		if slices.Contains(n.Unset, key) {
			return bad("%.80q is set and unset at once", key)
		}
	}
	return nil
}

// Configure changes what a rack should be set to, and tells the rack, now or when it comes.
func (f *Fleet) Configure(ctx context.Context, op Operator, rack string, n NewSettings) (Configuration, error) {
	if err := n.check(); err != nil {
		return Configuration{}, err
	}
	d, err := f.store.Configure(ctx, op.Scope(), store.Settings{Host: rack, Set: n.Set, Unset: n.Unset})
	if err != nil {
		return Configuration{}, Named(err, "rack", rack)
	}
	f.desire(ctx, enroll.Caller{Tenant: op.Tenant, Rack: rack}, d)
	return viewConfiguration(d), nil
}

// Configuration tells what a rack should be set to.
func (f *Fleet) Configuration(ctx context.Context, op Operator, rack string) (Configuration, error) {
	d, err := f.store.Desired(ctx, op.Scope(), rack)
	return viewConfiguration(d), Named(err, "rack", rack)
}

// Revoked drops what the broker keeps for a rack whose revocation is committed. The frame says nothing that anybody could use any
// more: if the broker cannot be reached, it stays until the rack is revoked again.
func (f *Fleet) Revoked(ctx context.Context, op Operator, rack string) {
	f.tell(ctx, enroll.Caller{Tenant: op.Tenant, Rack: rack}, wire.TypeDesired, nil)
}

// desire publishes a configuration. The broker keeps it for a rack that is away; what a broker loses comes again with
// the rack's next hello. Of two that cross on the way the rack takes the newer one.
func (f *Fleet) desire(ctx context.Context, to enroll.Caller, d store.Desired) {
	if d.Version > 0 {
		f.tell(ctx, to, wire.TypeDesired, wire.Desired{Version: uint64(d.Version), Config: d.Config})
	}
}
