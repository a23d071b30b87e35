package status_test

import (
	"testing"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/status"
	"phonerack/firmware/status/statustest"
	"phonerack/hal/power"
	"phonerack/sync/link"
)

// TestOnlyRealChangesCount: a page that is open is read anew for each change, and for nothing else.
func TestOnlyRealChangesCount(t *testing.T) {
	snapshot := func() status.Snapshot { // nothing is shared between two of them
		s := statustest.New(13).Snapshot()
		s.Rack.Findings = append(s.Rack.Findings, health.Finding{Code: "controller_hot", Args: map[string]any{"celsius": 81.5}})
		return s
	}
	for name, age := range map[string]func(*status.Snapshot){
		"nothing":         func(*status.Snapshot) {},
		"time":            func(s *status.Snapshot) { s.Rack.Up += time.Hour; s.Rack.Clock.Time = s.Rack.Clock.Time.Add(time.Hour) },
		"a state's age":   func(s *status.Snapshot) { s.Slots[3].Since += time.Hour; s.Services[0].Since += time.Hour },
		"a reading's age": func(s *status.Snapshot) { s.Slots[3].Phone.Battery.Age += time.Hour },
		"a quarantine's": func(s *status.Snapshot) {
			s.Slots[6].Ends -= time.Minute
			s.Slots[6].Others[0].Args["left"] = 24 * time.Minute
		},
		"a task's age":  func(s *status.Snapshot) { s.Slots[11].Task.Since += time.Minute },
		"a lease's end": func(s *status.Snapshot) { s.Slots[11].Lease.Until = s.Slots[11].Lease.Until.Add(time.Second) },
		"the link's": func(s *status.Snapshot) {
			l := s.Rack.Link.Link
			l.NextTry, l.Time, l.RoundTrip, l.Counters = 1, s.Rack.Clock.Time, 2, map[string]uint64{"x": 1}
		},
		"heat":    func(s *status.Snapshot) { s.Rack.Findings[1].Args["celsius"] = 82.0 },
		"the log": func(s *status.Snapshot) { s.Services[0].LastLog = "4 devices" },
	} {
		b := snapshot()
		if age(&b); !status.Same(snapshot(), b) {
			t.Errorf("%s counts as a change", name)
		}
	}
	for name, change := range map[string]func(*status.Snapshot){
		"a state":   func(s *status.Snapshot) { s.Slots[3].State = health.NeedsHands },
		"a finding": func(s *status.Snapshot) { s.Slots[3].Main.Code = "hung" },
		"another one": func(s *status.Snapshot) {
			s.Slots[3].Others = append(s.Slots[3].Others, health.Finding{Code: "tcp_open"})
		},
		"its words":      func(s *status.Snapshot) { s.Slots[6].Others[0].Args["reason"] = "swollen" },
		"a quarantine":   func(s *status.Snapshot) { s.Slots[6].Ends = 0 },
		"a reading":      func(s *status.Snapshot) { s.Slots[3].Phone.Battery.Level++ },
		"a phone":        func(s *status.Snapshot) { s.Slots[3].Phone.Serial = "other" },
		"a lease":        func(s *status.Snapshot) { s.Slots[11].Lease = nil },
		"a holder":       func(s *status.Snapshot) { s.Slots[11].Lease.Holder = lease.Holder{Kind: lease.Hold, Who: "lee"} },
		"a step":         func(s *status.Snapshot) { s.Slots[11].Task.Steps++ },
		"power":          func(s *status.Snapshot) { s.Slots[3].Power = status.PowerOff },
		"an outlet":      func(s *status.Snapshot) { s.Slots[3].Outlet.Cut = power.NoEffect },
		"a hub":          func(s *status.Snapshot) { s.Hubs[0].OverCurrent = true },
		"a service":      func(s *status.Snapshot) { s.Services[0].Restarts++ },
		"the link":       func(s *status.Snapshot) { s.Rack.Link.Link.State = link.Waiting },
		"why":            func(s *status.Snapshot) { s.Rack.Link.Link.LastError = "refused" },
		"an address":     func(s *status.Snapshot) { s.Rack.Network[1].Up = true },
		"the clock":      func(s *status.Snapshot) { s.Rack.Clock.Trusted = false },
		"maintenance":    func(s *status.Snapshot) { s.Rack.Maintenance = true },
		"the controller": func(s *status.Snapshot) { s.Rack.Findings = nil },
	} {
		b := snapshot()
		if change(&b); status.Same(snapshot(), b) {
			t.Errorf("%s does not count as a change", name)
		}
	}
}
