package status

import (
	"reflect"
	"slices"
	"time"

	"phonerack/firmware/health"
	"phonerack/sync/link"
)

// Same tells whether two snapshots say the same, apart from what changes by itself: ages, clocks, counters of the link,
// temperatures of the controller, the end of a lease, last lines of the log.
func Same(a, b Snapshot) bool { return reflect.DeepEqual(a.still(), b.still()) }

// still is the snapshot without what changes by itself.
func (s Snapshot) still() Snapshot {
	s.Rack.Up, s.Rack.Clock.Time = 0, time.Time{}
	s.Rack.Findings = stillAll(s.Rack.Findings)
	if l := s.Rack.Link.Link; l != nil {
		s.Rack.Link.Link = &link.Status{
			State: l.State, Broker: l.Broker, Tenant: l.Tenant, Rack: l.Rack, Presence: l.Presence, Desired: l.Desired,
			LastError: l.LastError, Trusted: l.Trusted, Outbox: l.Outbox,
		}
	}
	s.Slots, s.Services = slices.Clone(s.Slots), slices.Clone(s.Services)
	for i := range s.Slots {
		s.Slots[i] = s.Slots[i].still()
	}
	for i := range s.Services {
		s.Services[i].Since, s.Services[i].LastLog = 0, ""
	}
	return s
}

func (s Slot) still() Slot {
	s.Since, s.Ends = 0, min(s.Ends, 1)
	s.Main = still(s.Main)
	s.Others = stillAll(s.Others)
	if s.Phone != nil && s.Phone.Battery != nil {
		phone, battery := *s.Phone, *s.Phone.Battery
		battery.Age = 0
		phone.Battery, s.Phone = &battery, &phone
	}
	if s.Lease != nil {
		held := *s.Lease
		held.Until = time.Time{}
		s.Lease = &held
	}
	if s.Task != nil {
		task := *s.Task
		task.Since = 0
		s.Task = &task
	}
	return s
}

func stillAll(all []health.Finding) []health.Finding {
	var out []health.Finding
	for _, f := range all {
		out = append(out, still(f))
	}
	return out
}

// still is a finding without times and temperatures.
func still(f health.Finding) health.Finding {
	out := health.Finding{Code: f.Code}
	for name, v := range f.Args {
		switch v.(type) {
		case time.Duration, float64:
			continue
		}
		if out.Args == nil {
			out.Args = map[string]any{}
		}
		out.Args[name] = v
	}
	return out
}
