package rackrig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
)

// How long WaitSlots waits, and between two looks: an emulated board on a loaded machine takes its time.
const (
	slotsWithin = 3 * time.Minute
	slotsEvery  = 500 * time.Millisecond
)

// Ask runs rackctl with args and --json, and reads what it writes into result; nil throws it away. An exit code other than 0 is an
// error with what was written, which is the refusal.
func Ask(ctx context.Context, r Rack, result any, args ...string) error {
	var out bytes.Buffer
	exit, err := r.Ctl(ctx, &out, append(slices.Clone(args), "--json")...)
	switch {
	case err != nil:
		return fmt.Errorf("rackctl %v: %w\n%.2000s", args, err, &out)
	case exit != 0:
		return fmt.Errorf("rackctl %v ended with exit code %d: %.2000s", args, exit, &out)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		return fmt.Errorf("rackctl %v --json wrote %.200q: %w", args, out.String(), err)
	}
	return nil
}

// Slots asks rackd how its slots are, and gives that by their numbers.
func Slots(ctx context.Context, r Rack) (map[int]action.SlotHealth, error) {
	var told action.Slots
	if err := Ask(ctx, r, &told, "slots"); err != nil {
		return nil, err
	}
	all := map[int]action.SlotHealth{}
	for _, s := range told.Slots {
		all[s.Slot] = s
	}
	return all, nil
}

// WaitSlots asks for the slots until is says that they are as they should be, for three minutes at most; the error says how they are
// then. One that Slots gives, as when ctx ends, ends it at once.
func WaitSlots(ctx context.Context, r Rack, is func(map[int]action.SlotHealth) bool) (map[int]action.SlotHealth, error) {
	for end := time.Now().Add(slotsWithin); ; {
		all, err := Slots(ctx, r)
		if err != nil || is(all) {
			return all, err
		}
		if time.Now().After(end) {
			return all, fmt.Errorf("after %v the slots are %+v", slotsWithin, all)
		}
		select {
		case <-ctx.Done():
		case <-time.After(slotsEvery):
		}
	}
}

// Well tells whether slots are well and their phones can be used: a slot counts as well from the moment it has its power back.
func Well(all map[int]action.SlotHealth, slots ...int) bool {
	return !slices.ContainsFunc(slots, func(n int) bool {
		return all[n].State != string(health.Well) || all[n].Adb != action.Ready && all[n].Adb != action.Limited
	})
}

// Acts are what recovery has done about a slot and how each ended, such as "reopen done", the oldest first.
func Acts(s action.SlotHealth) (all []string) {
	for _, a := range slices.Backward(s.Acts) {
		all = append(all, a.Act+" "+a.Outcome)
	}
	return all
}

// Sh runs a shell command on the board and gives what it wrote, standard error included. An exit code other than 0 is an error.
func (b *Board) Sh(ctx context.Context, command string) (string, error) {
	out, exit, err := b.Run(ctx, "exec 2>&1; "+command)
	switch {
	case err != nil:
		err = fmt.Errorf("%w\n%s", err, out)
	case exit != 0:
		err = fmt.Errorf("%s: exit code %d\n%s", command, exit, out)
	}
	return out, err
}
