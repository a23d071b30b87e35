package action

import (
	"context"

	"phonerack/sync/wire"
)

// ConfigChanges are the keys of the configuration that a reload found changed.
type ConfigChanges struct {
	Live    []string `json:"live"`    // count now
	Restart []string `json:"restart"` // count after a restart
}

// Reloader is a rack that can read its configuration anew. Errors are refusals.
type Reloader interface {
	ReloadConfig() (ConfigChanges, error)
}

func configActions() []entry {
	return []entry{
		define(Definition{Name: "config_reload", Summary: "read the configuration anew and apply what can be applied without a restart", Role: Operator, Idempotent: true, Timeout: quick}, reloadConfig),
	}
}

func reloadConfig(_ context.Context, c *call, _ *struct{}) (any, error) {
	r, ok := c.rack.(Reloader)
	if !ok {
		return nil, wire.Refuse(wire.Unsupported, map[string]any{"what": "reading the configuration anew"})
	}
	return r.ReloadConfig()
}
