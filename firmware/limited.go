package firmware

import (
	"context"
	"time"

	"phonerack/agent/planner"
	"phonerack/firmware/action"
)

// limitedPhone is a phone of which only shell and files can be used. Everything that needs its screen is refused.
type limitedPhone struct {
	readyPhone
	refusal error
}

func (p limitedPhone) Observe(context.Context, action.Want) (action.Observation, error) {
	return action.Observation{}, p.refusal
}

func (p limitedPhone) Element(context.Context, uint64, int) (x, y int, err error) {
	return 0, 0, p.refusal
}

func (p limitedPhone) Text(context.Context, string) (x, y int, err error) { return 0, 0, p.refusal }

func (p limitedPhone) Tool(context.Context, action.Fence, string, planner.Decision) (action.ToolOutcome, error) {
	return action.ToolOutcome{}, p.refusal
}

func (p limitedPhone) Info(context.Context) (action.PhoneInfo, error) {
	return action.PhoneInfo{}, p.refusal
}

func (p limitedPhone) HelperStatus(context.Context) (action.HelperStatus, error) {
	return action.HelperStatus{}, p.refusal
}

func (p limitedPhone) InstallHelpers(context.Context, action.Fence) error { return p.refusal }

func (p limitedPhone) RemoveHelpers(context.Context, action.Fence) error { return p.refusal }

func (p limitedPhone) Under(action.Fence) action.Controls { return refused{p.refusal} }

// refused implements action.Controls for a phone that cannot be touched.
type refused struct{ err error }

func (r refused) Tap(context.Context, int, int) error                            { return r.err }
func (r refused) LongPress(context.Context, int, int, time.Duration) error       { return r.err }
func (r refused) Swipe(context.Context, int, int, int, int, time.Duration) error { return r.err }
func (r refused) Type(context.Context, string) (string, error)                   { return "", r.err }
func (r refused) Key(context.Context, string) error                              { return r.err }
func (r refused) Launch(context.Context, string) error                           { return r.err }
