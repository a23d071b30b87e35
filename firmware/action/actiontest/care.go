package actiontest

import (
	"context"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// care is the care of a Rack: slots 1 and 2 are behind hub A, whose ports can be switched; what is asked for is in the log.
type care struct{ r *Rack }

// Care implements action.Rack.
func (r *Rack) Care() action.Care { return care{r} }

func (c care) Slots(lang string) []action.SlotHealth {
	say := action.Saying{Code: "hung", Title: "phone hangs in " + lang, Why: "it does not answer", Do: "wait"}
	return []action.SlotHealth{
		{Slot: 1, Label: "A1", State: "recovering", Main: say, Rung: "reopen", Next: 30 * time.Second, Power: &action.Outlet{Name: "hub A port 1", Slots: []int{1}, On: true}},
		{Slot: 2, State: "empty", Main: action.Saying{Code: "no_phone", Title: "no phone"}},
	}
}

func (c care) Rack(string) action.RackStatus {
	return action.RackStatus{
		Findings: []action.Saying{{Code: "disk_full", Title: "disk almost full", Why: "5 % are free", Do: "free some"}},
		Slots:    map[string]int{"recovering": 1, "empty": 1, "well": 0},
		Way: action.Way{
			Name: "rack-1.local", URLs: []string{"http://192.0.2.7/", "http://169.254.7.9/"},
			Signs: []action.Sign{{Slot: 1, Ends: 90 * time.Second, URLs: []string{"http://192.0.2.7/"}}},
		},
	}
}

func (c care) Touched(slot int, hub bool) ([]int, error) {
	if hub {
		return []int{1, 2}, nil
	}
	return []int{slot}, nil
}

func (c care) Power(ctx context.Context, slot int, hub, on bool) error {
	return c.r.did(ctx, "power %d hub %v on %v", slot, hub, on)
}

func (c care) Cycle(ctx context.Context, slot int, hub bool) error {
	return c.r.did(ctx, "cycle %d hub %v", slot, hub)
}

func (c care) Quarantine(slot int, length time.Duration, by, reason string) error {
	return c.r.did(context.Background(), "quarantine %d for %v by %s because %s", slot, length, by, reason)
}

func (c care) EndQuarantine(slot int) error {
	if slot == 2 {
		return wire.Refuse(wire.SlotEmpty, map[string]any{"slot": slot})
	}
	return c.r.did(context.Background(), "end quarantine %d", slot)
}

func (c care) Maintain(slot int, on bool) error {
	return c.r.did(context.Background(), "maintenance %d %v", slot, on)
}

func (c care) Identify(ctx context.Context, slot int, d time.Duration) (action.Identified, error) {
	return action.Identified{Slots: []int{1}, Light: true}, c.r.did(ctx, "identify %d for %v", slot, d)
}

func (c care) Sign(ctx context.Context, slot int, d time.Duration) (action.Sign, error) {
	return action.Sign{Slot: max(slot, 1), Ends: d, URLs: []string{"http://192.0.2.7/"}}, c.r.did(ctx, "sign %d for %v", slot, d)
}

func (c care) EndSign(slot int) error { return c.r.did(context.Background(), "end sign %d", slot) }

func (c care) Reboot(ctx context.Context, slot int, _ action.Fence) (action.Rebooted, error) {
	return action.Rebooted{Slot: slot, Serial: "R5CT", MS: 30_000}, c.r.did(ctx, "reboot %d", slot)
}

func (c care) Retry(slot int) error { return c.r.did(context.Background(), "retry %d", slot) }

func (c care) Forget(slot int) error { return c.r.did(context.Background(), "forget %d", slot) }
