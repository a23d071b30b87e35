// Package statustest holds a rack of the technician's page without a rack behind it: a Source and an Actor in one.
package statustest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"strings"
	"sync"
	"time"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/status"
	"phonerack/hal/power"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Rack implements status.Source and status.Actor. What a test changes, it changes with Change.
type Rack struct {
	mu      sync.Mutex // guards what follows
	refuse  error      // of acts and pictures; nil: they are done
	snap    status.Snapshot
	changed chan struct{} // closed by Change
	logged  chan struct{} // closed by Say
	begun   chan struct{} // an act waits for block; room for those of one test
	block   chan struct{} // acts wait for it to be closed; nil: they do not
	lines   []status.LogLine
	calls   []string
	files   map[string][]byte
	looks   int // pictures that were asked for
	waits   int // Changed and Snapshot that were asked for
}

// New returns a rack of so many slots, ten a row, on hubs of seven. The first ten have one state each, the twelfth works
// on a task, the phone of the thirteenth is gone, the others are well. Those of the fourth hub are fed by it as a whole.
func New(slots int) *Rack {
	r := &Rack{changed: make(chan struct{}), begun: make(chan struct{}, 100), logged: make(chan struct{}), files: map[string][]byte{}}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r.snap.Rack = status.Rack{
		Name: "door-side", ID: "rack-7", Board: "emulated", Version: "1.2.3", Boot: "01J0BOOT", Up: 26 * time.Hour,
		Network:  []status.Interface{{Name: "eth0", Up: true, Addresses: []string{"192.168.1.20/24", "fe80::1/64"}}, {Name: "wlan0"}},
		Link:     action.LinkStatus{Joined: true, Link: &link.Status{State: link.Online, Broker: "tls://broker.example:8883", Outbox: link.OutboxStatus{Bytes: 2048, Limit: 1 << 24}}},
		Clock:    status.Clock{Time: now, Trusted: true},
		Findings: []health.Finding{{Code: "under_voltage"}},
		Images:   []status.Image{{Name: "A", Version: "1.2.3", State: status.ImageGood, Booted: true}, {Name: "B", Version: "1.2.2", State: status.ImageGood}},
	}
	for n := range (slots + 6) / 7 {
		r.snap.Hubs = append(r.snap.Hubs, status.Hub{Name: string(rune('A' + n)), Path: fmt.Sprintf("1-1.%d", n+1), On: n != 1, Switched: n != 2, OverCurrent: n == 3})
	}
	for n := range slots {
		r.snap.Slots = append(r.snap.Slots, slot(n))
	}
	r.snap.Services = []status.Service{
		{Name: "bus", State: status.ServiceRunning, Since: time.Hour, LastLog: "3 devices on the bus"},
		{Name: "link", State: status.ServiceRestarting, Since: time.Second, Restarts: 4, LastLog: "connection refused"},
		{Name: "page", State: status.ServiceStopped, Since: time.Minute},
	}
	r.Say("INFO", "rackd started")
	return r
}

// diagnoses are those of the first ten slots, one for each state.
var diagnoses = []string{"no_phone", "booting", "fine", "fine", "hung", "unauthorized", "hung", "resting", "fine", "unknown"}

func slot(n int) status.Slot {
	s := status.Slot{
		Number: n + 1, Label: fmt.Sprintf("%c%d", 'A'+n/10, n%10+1), Row: n/10 + 1, Column: n%10 + 1, Hub: string(rune('A' + n/7)), Port: fmt.Sprintf("1-1.%d.%d", n/7+1, n%7+1),
		State: health.Well, Since: 3 * time.Hour, Power: status.PowerOn, PowerActs: n%7 != 6, Lit: true,
	}
	s.Outlet = &status.Outlet{Cut: power.LeavesBus}
	if !s.PowerActs {
		s.Outlet = &status.Outlet{Cut: power.Repowers, Repowered: 2, Resets: 3, Silent: 4 * time.Second}
	}
	if n/7 == 3 { // fed by a line
		s.PowerActs, s.Outlet, s.Fed = false, nil, s.Hub
	}
	code := "fine"
	if states := health.States(); n < len(states) {
		s.State, code = states[n], diagnoses[n]
	}
	serial := fmt.Sprintf("R5CT%06d", n+1)
	s.Main = health.Finding{Code: code, Args: map[string]any{"slot": s.Number, "phone": serial}}
	warm, charging := 29.5, n%2 == 0
	s.Phone = &status.Phone{
		Serial: serial, Model: "Pixel 7", Android: "14", Ready: s.State == health.Well || s.State == health.Attention,
		Battery: &status.Battery{Level: 57, Celsius: &warm, Charging: &charging, Age: 4 * time.Minute}, Storage: &status.Storage{Free: 3 << 30, Total: 110 << 30},
	}
	switch s.State {
	case health.Empty:
		s.Phone = nil
	case health.Attention:
		s.Others = []health.Finding{{Code: "storage_low", Args: map[string]any{"slot": s.Number}}}
	case health.Recovering:
		s.Rung = "port_cycle"
	case health.Quarantined:
		s.Ends = 25 * time.Minute
		s.Others = []health.Finding{{Code: "quarantined", Args: map[string]any{"slot": s.Number, "by": "recovery", "left": 25 * time.Minute, "reason": "hung"}}}
	case health.Resting:
		s.Power = status.PowerOff
	case health.Maintenance:
		s.Hands = true
		s.Others = []health.Finding{{Code: "maintenance", Args: map[string]any{"slot": s.Number}}}
	}
	if n == 12 {
		s.State, s.Main.Code, s.Phone.Ready = health.NeedsHands, "dead", false
	}
	if n == 11 {
		s.Lease = &lease.State{Slot: s.Number, Holder: lease.Holder{Kind: lease.Task, Who: "kim", TaskID: "01J0TASK1"}, Until: time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)}
		s.Task = &status.Task{ID: "01J0TASK1", Goal: "buy a kettle <b>now</b>", State: "running", Steps: 3, Since: time.Minute}
	}
	return s
}

// Change changes the rack, and says so to who waits.
func (r *Rack) Change(change func(*status.Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snap.Slots, r.snap.Hubs = slices.Clone(r.snap.Slots), slices.Clone(r.snap.Hubs)
	change(&r.snap)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Say adds a line to the log.
func (r *Rack) Say(level, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seq := uint64(len(r.lines) + 1)
	r.lines = append(r.lines, status.LogLine{Seq: seq, Time: r.snap.Rack.Clock.Time, Level: level, Text: text})
	close(r.logged)
	r.logged = make(chan struct{})
}

// Refuse has acts and pictures refused from now on; nil: done.
func (r *Rack) Refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

// Block has acts wait until finish is called, or their context ends. Each that waits is told on begun.
func (r *Rack) Block() (begun <-chan struct{}, finish func()) {
	block := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.block = block
	return r.begun, func() { close(block) }
}

// Attach adds a file for bundles.
func (r *Rack) Attach(name string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = text
}

// Calls are the actions that were run: actor, name and arguments, one a line.
func (r *Rack) Calls() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.calls, "\n")
}

// Asked counts how often pictures, and the state of the rack, were asked for.
func (r *Rack) Asked() (pictures, states int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looks, r.waits
}

// Snapshot implements status.Source.
func (r *Rack) Snapshot() status.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits++
	return r.snap
}

// Changed implements status.Source.
func (r *Rack) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits++
	return r.changed
}

// Events implements status.Source.
func (r *Rack) Events(slot, most int) []status.Event {
	all := []status.Event{
		{Seq: 9, Boot: "01J0BOOT", Age: 20 * time.Second, Slot: slot, Kind: "phone.lost", Detail: json.RawMessage(`{"reason":"<script>alert(1)</script>"}`)},
		{Seq: 8, Boot: "01J0BOOT", Age: 3 * time.Minute, Slot: slot, Kind: "phone.ready"},
		{Seq: 1, Boot: "01J0BOOT", Age: 50 * time.Hour, Kind: "rack.started"},
	}
	return all[:min(most, len(all))]
}

// Log implements status.Source.
func (r *Rack) Log(after uint64, most int) []status.LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines[min(after, uint64(len(r.lines))):]
	return slices.Clone(lines[max(0, len(lines)-most):])
}

// Logged implements status.Source.
func (r *Rack) Logged() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logged
}

// Picture implements status.Source.
func (r *Rack) Picture(ctx context.Context, slot int) (status.Picture, error) {
	r.mu.Lock()
	r.looks++
	refuse := r.refuse
	r.mu.Unlock()
	if refuse != nil {
		return status.Picture{}, refuse
	}
	return status.Picture{JPEG: picture(), Width: 90, Height: 200}, ctx.Err()
}

// picture is a screen.
var picture = sync.OnceValue(func() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 90, 200))
	for y := range 200 {
		for x := range 90 {
			m.Set(x, y, color.RGBA{uint8(x * 2), uint8(y), 120, 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		panic(err)
	}
	return b.Bytes()
})

// Tasks implements status.Source.
func (r *Rack) Tasks(_ context.Context, most int) ([]action.TaskStatus, error) {
	start := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	var all []action.TaskStatus
	for n := range 60 {
		t := action.TaskStatus{ID: fmt.Sprintf("01J0TASK%d", n), Attempt: 1, Slot: n%10 + 1, Goal: "buy a kettle <b>now</b>", State: action.Succeeded, Steps: 25, Started: start, Ended: start.Add(90 * time.Second)}
		if n%3 == 1 {
			t.State, t.Refusal = action.TaskError, wire.Refuse(wire.BudgetSpent, map[string]any{"steps": 25})
		}
		all = append(all, t)
	}
	return all[:min(most, len(all))], nil
}

// Steps implements status.Source.
func (r *Rack) Steps(_ context.Context, task string) ([]record.Step, error) {
	if !strings.HasPrefix(task, "01J0TASK") {
		return nil, wire.Refuse(wire.TaskUnknown, map[string]any{"task": task})
	}
	var all []record.Step
	for n := range 25 {
		s := record.Step{N: n + 1, App: "com.example.shop", Tool: "tap", Arguments: json.RawMessage(`{"element":3,"why":"<img src=x>"}`), Outcome: "tapped Add", Effect: "changed"}
		if n%2 == 0 {
			s.Image = fmt.Sprintf("%03d.jpg", n+1)
		}
		all = append(all, s)
	}
	return all, nil
}

// StepPicture implements status.Source.
func (r *Rack) StepPicture(context.Context, string, string) ([]byte, error) { return picture(), nil }

// Attachments implements status.Source.
func (r *Rack) Attachments(context.Context) map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]byte{}
	for name, text := range r.files {
		all[name] = text
	}
	return all
}

// Call implements status.Actor.
func (r *Rack) Call(ctx context.Context, actor action.Actor, name string, args json.RawMessage, _ action.Pipes) (any, error) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		r.begun <- struct{}{}
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return nil, r.refuse
	}
	r.calls = append(r.calls, fmt.Sprintf("%s via %s: %s %s", actor.Name, actor.Via, name, args))
	return action.Done{}, nil
}
