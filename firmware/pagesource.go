package firmware

import (
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/firmware/supervise"
	"phonerack/hal/power"
)

// pageSource is the rack as its page shows it. It implements status.Source.
type pageSource struct {
	rack    *Rack
	version string
	changes *changes

	mu     sync.Mutex
	links  []status.Interface // of the network, as they were read last; guarded by mu
	readAt time.Time
}

var _ status.Source = (*pageSource)(nil)

func newPageSource(r *Rack) *pageSource {
	p := &pageSource{rack: r, version: versions()["rackd"]}
	p.changes = newChanges(func() sight { return sight{p.Snapshot(), r.events.last.count()} })
	return p
}

// Snapshot implements status.Source.
func (p *pageSource) Snapshot() status.Snapshot {
	feeds := feedsOf(p.rack.outlets())
	return status.Snapshot{Rack: p.controller(), Hubs: p.hubs(feeds), Slots: p.slots(feeds), Services: p.services()}
}

// feeds are the outlets of single ports by slot, and of whole hubs by name.
type feeds struct {
	ports map[int]power.State
	hubs  map[string]power.State
	whole map[int]power.State // of the hub that feeds a slot
	some  map[string]bool     // hubs of which a port can be switched
	lit   map[string]bool     // of those, hubs of which a port is on
}

func feedsOf(outlets []power.State) feeds {
	f := feeds{map[int]power.State{}, map[string]power.State{}, map[int]power.State{}, map[string]bool{}, map[string]bool{}}
	for _, o := range outlets {
		if len(o.Slots) == 1 {
			f.ports[o.Slots[0]] = o
			f.some[o.Hub] = true
			f.lit[o.Hub] = f.lit[o.Hub] || o.Wanted
			continue
		}
		f.hubs[o.Hub] = o
		for _, n := range o.Slots {
			f.whole[n] = o
		}
	}
	return f
}

// shown is an outlet as the page shows it.
func shown(o power.State) *status.Outlet {
	s := &status.Outlet{Cut: o.Cut, Busy: o.Busy, Repowered: o.Repowered, Resets: o.Resets, Silent: o.Silent}
	if o.Fault != nil {
		s.Fault = o.Fault.Error()
	}
	return s
}

// controller is the rack itself. Which systems are on the card this version does not know.
func (p *pageSource) controller() status.Rack {
	r := p.rack
	now, trusted := r.wall()
	s := status.Rack{
		Name: r.config.Rack.ID, ID: r.config.Bundle.Rack, Version: p.version, Boot: r.store.Boot(), Up: time.Since(r.began),
		Maintenance: r.care.hands.of(0) != "", Findings: r.care.controller(), Network: p.network(), Link: r.Link(), Clock: status.Clock{Time: now, Trusted: trusted},
	}
	if b := r.config.Board; b != nil {
		s.Board = b.Name
	}
	return s
}

func (p *pageSource) hubs(f feeds) []status.Hub {
	all := []status.Hub{} // an empty list in JSON, too
	if p.rack.config.Board == nil {
		return all
	}
	over := p.rack.tally.hubsOver()
	for _, h := range p.rack.config.Board.Hubs {
		shownHub := status.Hub{Name: h.Name, Path: h.Path, On: true, OverCurrent: slices.Contains(over, h.Name)}
		if o, ok := f.hubs[h.Name]; ok {
			shownHub.Switched, shownHub.On, shownHub.Outlet = true, o.Wanted, shown(o)
		} else if f.some[h.Name] {
			shownHub.Switched, shownHub.On = true, f.lit[h.Name]
		}
		all = append(all, shownHub)
	}
	return all
}

func (p *pageSource) slots(f feeds) []status.Slot {
	r := p.rack
	now := r.clock()
	tasks := r.tasksNow()
	all := []status.Slot{}
	for _, st := range r.care.keeper.All() {
		state, l := r.slots[st.Slot].snapshot()
		s := status.Slot{
			Number: st.Slot, Label: state.Label, Port: state.Port, State: st.State, Since: now - st.Since, Main: st.Main, Others: st.Others,
			Power: powerOf(st.Slot, f), Hands: r.care.hands.has(st.Slot, inside), Phone: p.phone(st.Slot, state, l, now), Task: tasks[st.Slot],
			Lit: len(r.care.lights[0])+len(r.care.lights[st.Slot]) > 0,
		}
		if st.State == health.Recovering {
			s.Rung = st.Rung
		}
		if st.Ends > now {
			s.Ends = st.Ends - now
		}
		if o, ok := f.ports[st.Slot]; ok {
			s.Outlet, s.PowerActs = shown(o), o.Cut.Works()
		}
		if o, ok := f.whole[st.Slot]; ok {
			s.Fed = o.Hub
		}
		if held, ok := r.leases.Lookup(st.Slot); ok {
			s.Lease = &held
		}
		if b := r.config.Board; b != nil {
			if place, ok := b.Slot(st.Slot); ok {
				s.Row, s.Column, s.Hub = place.Row, place.Column, place.Hub
			}
		}
		all = append(all, s)
	}
	return all
}

// powerOf is what a slot is wanted to have.
func powerOf(slot int, f feeds) status.Power {
	known := status.PowerUnknown
	for _, from := range []map[int]power.State{f.whole, f.ports} {
		if o, ok := from[slot]; ok && !o.Wanted {
			return status.PowerOff
		} else if ok {
			known = status.PowerOn
		}
	}
	return known
}

// phone is what is known of the phone in a slot.
func (p *pageSource) phone(slot int, state action.PhoneState, l *live, now time.Duration) *status.Phone {
	if state.State == action.Empty {
		return nil
	}
	s := &status.Phone{Serial: state.Serial, Model: state.Model, Android: state.Android, Ready: l != nil && l.phone != nil}
	read := p.rack.tally.of(slot, state.Serial)
	if read.storage != nil {
		s.Storage = &status.Storage{Free: read.storage.Free, Total: read.storage.Total}
	}
	if b := read.battery; b != nil && b.Level != phone.Unknown && !b.Faked {
		s.Battery = &status.Battery{Level: b.Level, Age: now - read.at}
		if b.Temperature != phone.Unknown {
			celsius := float64(b.Temperature) / 10
			s.Battery.Celsius = &celsius
		}
		if b.Status != "unknown" {
			charging := b.Status == "charging" || b.Status == "full"
			s.Battery.Charging = &charging
		}
	}
	return s
}

// tasksNow are those that run, by slot.
func (r *Rack) tasksNow() map[int]*status.Task {
	r.mu.Lock()
	running := slices.Collect(maps.Values(r.tasks))
	r.mu.Unlock()
	all := map[int]*status.Task{}
	for _, t := range running {
		s := t.snapshot()
		all[s.Slot] = &status.Task{ID: s.ID, Goal: s.Goal, State: string(s.State), Steps: s.Steps, Since: time.Since(s.Started)}
	}
	return all
}

// states are those of parts as the page names them.
var states = map[supervise.State]status.ServiceState{
	supervise.Running: status.ServiceRunning, supervise.Waiting: status.ServiceRestarting, supervise.Stuck: status.ServiceStopped,
}

// services are the parts of rackd. The owner of a slot is one of them only if it has failed: there are as many as slots.
func (p *pageSource) services() []status.Service {
	r := p.rack
	now := r.clock()
	owners := map[string]bool{}
	for _, s := range r.slots {
		owners[s.String()] = true
	}
	all := []status.Service{}
	for _, part := range r.watch.Parts() {
		if owners[part.Name] && part.Ends == 0 && part.State == supervise.Running {
			continue
		}
		s := status.Service{Name: part.Name, State: states[part.State], Since: now - part.Since, Restarts: int(part.Ends)}
		if r.logBook != nil {
			s.LastLog = r.logBook.Of(part.Name)
		}
		all = append(all, s)
	}
	return all
}

const (
	networkAge    = 5 * time.Second // of what was read of the network
	maxInterfaces = 16
	maxOfEach     = 8 // addresses
)

// network are the ways into the network, without those that stay on this machine.
func (p *pageSource) network() []status.Interface {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links != nil && time.Since(p.readAt) < networkAge {
		return p.links
	}
	p.links, p.readAt = readNetwork(), time.Now()
	return p.links
}

// readNetwork asks the kernel. An interface that cannot be read has no addresses.
func readNetwork() []status.Interface {
	all := []status.Interface{}
	interfaces, err := net.Interfaces()
	if err != nil {
		return all
	}
	slices.SortFunc(interfaces, func(a, b net.Interface) int { return strings.Compare(a.Name, b.Name) })
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 || len(all) == maxInterfaces {
			continue
		}
		one := status.Interface{Name: i.Name, Up: i.Flags&net.FlagRunning != 0, Addresses: []string{}}
		addresses, _ := i.Addrs()
		for _, a := range addresses[:min(len(addresses), maxOfEach)] {
			one.Addresses = append(one.Addresses, a.String())
		}
		slices.Sort(one.Addresses)
		all = append(all, one)
	}
	return all
}

// Changed implements status.Source.
func (p *pageSource) Changed() <-chan struct{} { return p.changes.next() }

// Events implements status.Source.
func (p *pageSource) Events(slot, most int) []status.Event {
	all := p.rack.events.last.newest(slot, most)
	for i := range all {
		all[i].Boot = p.rack.store.Boot()
	}
	return all
}

// Log implements status.Source.
func (p *pageSource) Log(after uint64, most int) []status.LogLine {
	lines := []status.LogLine{}
	if p.rack.logBook == nil {
		return lines
	}
	for _, r := range p.rack.logBook.Newest(after, most) {
		lines = append(lines, status.LogLine{Seq: r.Number, Time: r.Time, Level: r.Level.String(), Text: r.Line})
	}
	return lines
}

// Logged implements status.Source.
func (p *pageSource) Logged() <-chan struct{} {
	if p.rack.logBook == nil {
		return nil // never
	}
	return p.rack.logBook.More()
}
