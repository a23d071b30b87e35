package tools

import (
	"context"
	"errors"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// write does one write to the phone, keeps what it came to in out, and turns
// its error into a refusal.
func (o *Outcome) write(ctx context.Context, env Env, what string, do func() error) error {
	if env.Controls == nil {
		return notLeased(env)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do()
	if err == nil {
		o.Wrote, o.Settle, o.Scene = true, true, nil
		return nil
	}
	refusal, sent := explain(env, what, err)
	if ctx.Err() != nil && !sent && !isRefusal(err) {
		return ctx.Err()
	}
	if sent {
		o.Wrote, o.Scene = true, nil
	}
	o.Unknown = errors.Is(err, phone.ErrUnknownOutcome)
	o.Settle = o.Wrote
	return refusal.Because(err)
}

// explain says why a write failed and whether something was, or may have been,
// sent.
func explain(env Env, what string, err error) (refusal *wire.Refusal, sent bool) {
	because := func(code wire.Code, args ...string) *wire.Refusal {
		m := env.place()
		m["what"] = what
		for i := 0; i+1 < len(args); i += 2 {
			m[args[i]] = args[i+1]
		}
		return wire.Refuse(code, m)
	}
	switch {
	case errors.Is(err, phone.ErrUnknownOutcome):
		return because(wire.OutcomeUnknown), true
	case errors.Is(err, phone.ErrPartlyTyped): // whatever stopped it, be it the fence
		return because(wire.PartlyTyped, "reason", err.Error()), true
	}
	if r, ok := errors.AsType[*wire.Refusal](err); ok { // the fence's own words, or the phone's
		return r.With(env.place()), errors.Is(err, phone.ErrRejected)
	}
	switch {
	case errors.Is(err, phone.ErrCannotType):
		return because(wire.CannotType, "reason", err.Error()), false
	case errors.Is(err, phone.ErrDeviceSetup):
		return because(wire.PhoneSetup, "setting", `"USB debugging (Security settings)"`), false
	case errors.Is(err, phone.ErrLocked):
		return because(wire.PhoneLocked), false
	case errors.Is(err, phone.ErrAppMissing):
		return because(wire.AppMissing), false
	case errors.Is(err, phone.ErrOffScreen), errors.Is(err, phone.ErrBadArgument):
		return because(wire.BadArguments, "tool", what, "path", "$", "reason", "is not possible: "+err.Error()), false
	case errors.Is(err, phone.ErrNoFence):
		return because(wire.NotLeased), false
	case errors.Is(err, errors.ErrUnsupported):
		return because(wire.Unsupported), false
	case errors.Is(err, phone.ErrRejected):
		return because(wire.PhoneRejected, "detail", err.Error()), true
	}
	// What had to be read of the phone before the write was not there.
	return because(wire.ObservationFailed, "detail", err.Error()), false
}

func notLeased(env Env) error { return wire.Refuse(wire.NotLeased, map[string]any{"slot": env.Slot}) }
