package rackrig

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"phonerack/firmware/action"
	"phonerack/usb/bus"
)

// Rack is a running rackd with phones.
type Rack interface {
	// Ctl runs rackctl with args, writes its output as it comes, and returns its exit code.
	Ctl(ctx context.Context, stdout io.Writer, args ...string) (exit int, err error)
	// Fetch copies a folder of the rack into dir.
	Fetch(ctx context.Context, from, dir string) error
	// Scratch is a folder of the rack that rackctl may write to.
	Scratch() string
	// Log is what rackd has logged so far.
	Log() string
	// Close ends rackd and all that goes with it.
	Close() error
}

// Phones asks rackd for its slots.
func Phones(ctx context.Context, r Rack) ([]action.PhoneState, error) {
	var list struct {
		Phones []action.PhoneState `json:"phones"`
	}
	err := Ask(ctx, r, &list, "phones")
	return list.Phones, err
}

// WaitState waits until each of the slots is in the state; the error says where they are if ctx ends first.
func WaitState(ctx context.Context, r Rack, state action.State, slots ...int) ([]action.PhoneState, error) {
	var last string
	for {
		phones, err := Phones(ctx, r)
		if err != nil && ctx.Err() == nil {
			last = err.Error()
		}
		if err == nil {
			there := 0
			last = ""
			for _, p := range phones {
				if p.State == state && slices.Contains(slots, p.Slot) {
					there++
				}
				last += fmt.Sprintf("slot %d %s %s; ", p.Slot, p.State, p.Reason)
			}
			if there == len(slots) {
				return phones, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("slots %v are not all %s: %s: %w", slots, state, last, ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// boardFile writes the board file for phones in slots.
func boardFile(slots map[int]string) string {
	var b strings.Builder
	b.WriteString("name = \"emulated board\"\n")
	numbers := make([]int, 0, len(slots))
	for n := range slots {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, c int) int { return bus.ComparePaths(slots[a], slots[c]) })
	for _, n := range numbers {
		fmt.Fprintf(&b, "\n[[slot]]\nnumber = %d\npath = %q\n", n, slots[n])
	}
	return b.String()
}
