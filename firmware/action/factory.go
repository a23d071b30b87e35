package action

import (
	"context"

	"phonerack/sync/wire"
)

// Resetter is a rack that can be made as it was delivered.
type Resetter interface {
	// FactoryReset ends the rack, which its next start makes new; keys has it forget its ADB keys too.
	FactoryReset(by string, keys bool) error
}

// FactoryResetArgs are the arguments of factory_reset.
type FactoryResetArgs struct {
	Yes    bool `json:"yes,omitempty" doc:"must be true: what has gathered is lost"`
	ADBKey bool `json:"adb_key,omitempty" doc:"forget the ADB key too: each phone asks its person again"`
}

func factoryActions() []entry {
	return []entry{
		define(Definition{Name: "factory_reset", Summary: "make the rack as it was delivered: identity, tasks, phones' records, skills and logs go", Role: Operator, Idempotent: true, Timeout: quick}, factoryReset),
	}
}

func factoryReset(_ context.Context, c *call, args *FactoryResetArgs) (any, error) {
	r, ok := c.rack.(Resetter)
	if !ok || c.actor.Via != viaSocket && c.actor != Button {
		return nil, wire.Refuse(wire.Unsupported, map[string]any{"what": "a factory reset from anywhere but the board itself"})
	}
	if !args.Yes {
		return nil, badRequest("a factory reset removes the identity, tasks, records of phones, skills and logs: confirm it with yes")
	}
	return Done{}, r.FactoryReset(c.actor.Name, args.ADBKey)
}
