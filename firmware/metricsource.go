package firmware

import (
	"phonerack/agent/phone"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/firmware/metrics"
	"phonerack/sync/link"
)

// metricSource is the rack as Prometheus sees it. It implements metrics.Source.
type metricSource struct {
	rack    *Rack
	version string
}

// Rack implements metrics.Source. A slot that recovery works on is nobody's.
func (m metricSource) Rack() metrics.Rack {
	r := m.rack
	all := metrics.Rack{ID: r.config.Rack.ID, Version: m.version, Restarts: r.watch.Restarts()}
	_, all.Clock = r.wall()
	if r.cloud != nil {
		all.Connected = r.cloud.link.Status().State == link.Online
	}
	for _, f := range r.care.controller() {
		all.Alarms = append(all.Alarms, f.Alarm())
	}
	r.mu.Lock()
	all.Running = len(r.tasks)
	r.mu.Unlock()
	if r.logKept != nil {
		all.LinesLost = r.logKept.LeftOut()
	}
	if b := r.config.Board; b != nil {
		for _, h := range b.Hubs {
			all.Hubs = append(all.Hubs, metrics.Hub{Name: h.Name})
		}
	}
	for _, st := range r.care.keeper.All() {
		s := metrics.Slot{Number: st.Slot, State: st.State, Phone: m.phone(st.Slot)}
		held, is := r.leases.Lookup(st.Slot)
		s.Leased = is && held.Holder.Kind != lease.Recovery
		all.Slots = append(all.Slots, s)
	}
	r.tally.fill(&all)
	return all
}

func (m metricSource) phone(slot int) *metrics.Phone {
	state, _ := m.rack.slots[slot].snapshot()
	if state.State == action.Empty {
		return nil
	}
	p := &metrics.Phone{Serial: state.Serial, Model: state.Model, Android: state.Android}
	if b := m.rack.tally.of(slot, state.Serial).battery; b != nil && b.Level != phone.Unknown && b.Temperature != phone.Unknown && !b.Faked {
		p.Battery = &metrics.Battery{Level: b.Level, Celsius: float64(b.Temperature) / 10}
	}
	return p
}
