package firmware

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"phonerack/firmware/health"
	"phonerack/hal/board"
	"phonerack/hal/power"
)

// outlets are those of the rack.
func (r *Rack) outlets() []power.State {
	if r.power == nil {
		return nil
	}
	return r.power.States()
}

// cycle takes an outlet's power and gives it back.
func (r *Rack) cycle(ctx context.Context, o power.State, by power.By) error {
	err := r.power.Cycle(ctx, o.Name, by)
	if _, uncut := errors.AsType[*power.NotCutError](err); err == nil || uncut {
		r.tally.cycled(o.Slots)
	}
	return err
}

// places are the slots as the ladder sees them.
func (r *Rack) places() []health.Place {
	var all []health.Place
	for n := range r.slots {
		p := health.Place{Slot: n, Hub: fmt.Sprintf("slot %d", n)}
		if b := r.config.Board; b != nil {
			if s, ok := b.Slot(n); ok {
				p.Hub = hubOf(b, s)
			}
		}
		if o, ok := r.outletOf(n, false); ok {
			p.PortPower = o.Cut.Works()
		}
		if o, ok := r.outletOf(n, true); ok {
			p.HubPower = o.Cut.Works()
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b health.Place) int { return a.Slot - b.Slot })
	return all
}

// hubOf is the port path of what a slot loses its power with: the hub that a line feeds, else the nearest one.
func hubOf(b *board.Board, s board.Slot) string {
	for _, h := range b.Hubs {
		if h.Feed == board.Lines && board.Behind(s.Path, h.Path) {
			return h.Path
		}
	}
	if h, ok := b.Hub(s.Hub); ok {
		return h.Path
	}
	return s.Path
}
