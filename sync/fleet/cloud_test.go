package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// fault is what becomes of a request on its way.
type fault int

const (
	noFault     fault = iota
	loseRequest       // the cloud never sees it
	loseAnswer        // the cloud acts on it, and nobody hears
	twice             // the cloud sees it twice, the second answer arrives
	cutLine           // the cloud acts on it, and the session ends
)

// fakeCloud follows the rules that the cloud's store has. It outlives the rack's
// processes.
type fakeCloud struct {
	mu       sync.Mutex
	online   bool
	changed  chan struct{}
	tasks    []*cloudTask
	attempts map[wire.AttemptRef]*cloudAttempt
	commands []*cloudCommand
	base     uint64 // command_seq of the welcome
	results  map[wire.AttemptRef]map[string]wire.Result
	statuses map[string][]wire.CommandStatus // by command, as they arrived
	pictures map[string]int
	events   []wire.Event
	asked    map[wire.Type]int
	asks     []link.Call
	fault    func(c link.Call) fault
	script   func(c link.Call) (wire.Type, any, bool) // answers instead of the rules
	answers  []wire.Answer
	strange  []string // what a rack must not do
}

type cloudTask struct {
	wire.Task
	state   wire.TaskState
	attempt int
	cancel  bool
}

type cloudAttempt struct {
	ref   wire.AttemptRef
	slot  int
	claim string
	until time.Time
	over  bool
	wrote *bool
}

type cloudCommand struct {
	wire.Command
	state   wire.CommandState
	version int
}

func newCloud() *fakeCloud {
	return &fakeCloud{
		online: true, changed: make(chan struct{}), attempts: map[wire.AttemptRef]*cloudAttempt{},
		results: map[wire.AttemptRef]map[string]wire.Result{}, statuses: map[string][]wire.CommandStatus{}, pictures: map[string]int{},
		asked: map[wire.Type]int{},
	}
}

func (c *fakeCloud) submit(id string, repeatable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, &cloudTask{Task: wire.Task{TaskID: id, Goal: "do " + id, Repeatable: repeatable}, state: wire.TaskQueued})
}

// submitWithFile queues a task that needs a file.
func (c *fakeCloud) submitWithFile(id string) {
	c.submit(id, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks[len(c.tasks)-1].Inputs = []wire.Input{{Name: "a", SHA256: "feed", Size: 4}}
}

// command stores a command and gives it; the caller pushes it, or not.
func (c *fakeCloud) command(name string, slot int, life time.Duration) wire.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := c.base + uint64(len(c.commands)) + 1
	cmd := wire.Command{
		CommandID: fmt.Sprintf("%s-%d", name, seq), Seq: seq, Name: name,
		Target: wire.CommandTarget{Slot: slot}, Expires: time.Now().Add(life).UnixMilli(),
	}
	c.commands = append(c.commands, &cloudCommand{Command: cmd, state: wire.CommandQueued})
	return cmd
}

func (c *fakeCloud) setOnline(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setOnlineLocked(on)
}

func (c *fakeCloud) setOnlineLocked(on bool) {
	if c.online != on {
		c.online = on
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

func (c *fakeCloud) isOnline() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.online
}

func (c *fakeCloud) count(t wire.Type) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[t]
}

func (c *fakeCloud) status(id string) []wire.CommandStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.statuses[id])
}

func (c *fakeCloud) task(id string) *cloudTask {
	for _, k := range c.tasks {
		if k.TaskID == id {
			return k
		}
	}
	return nil
}

// handle answers one request, after it went through JSON as on the wire.
func (c *fakeCloud) handle(call link.Call) (wire.Type, any) {
	raw, err := json.Marshal(call.Body)
	if err != nil {
		c.strange = append(c.strange, err.Error())
	}
	c.expire()
	if c.script != nil {
		if t, body, ok := c.script(call); ok {
			return t, body
		}
	}
	switch call.Type {
	case wire.TypeClaim:
		return c.claim(read[wire.Claim](raw))
	case wire.TypeRenew:
		return c.renew(read[wire.Renew](raw))
	case wire.TypeRelease:
		return c.release(read[wire.Release](raw))
	case wire.TypeHeartbeat:
		return c.heartbeat(read[wire.Heartbeat](raw))
	case wire.TypePending:
		return c.pending(read[wire.Pending](raw))
	case wire.TypeQuestion:
		return wire.TypeTaskAck, wire.Ack{}
	}
	c.strange = append(c.strange, "asked "+string(call.Type))
	return wire.TypeError, wire.Refuse(wire.Unsupported, map[string]any{"what": string(call.Type)})
}

func read[T any](raw []byte) (v T) {
	if err := wire.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	return v
}

// expire ends the attempts whose lease ran out, as the store does.
func (c *fakeCloud) expire() {
	for _, a := range c.attempts {
		if !a.over && time.Now().After(a.until.Add(wire.LeaseGrace)) {
			a.over = true
			c.lose(a)
		}
	}
}

func (c *fakeCloud) lose(a *cloudAttempt) {
	k := c.task(a.ref.TaskID)
	switch {
	case k.attempt != a.ref.Attempt || k.state.Over():
	case k.cancel:
		k.state = wire.TaskStopped
	case k.Repeatable || a.wrote != nil && !*a.wrote:
		k.state = wire.TaskQueued
	default:
		k.state = wire.TaskLost
	}
}

func over(ref wire.AttemptRef) (wire.Type, any) {
	return wire.TypeError, wire.Refuse(wire.AttemptOver, map[string]any{"task": ref.TaskID, "attempt": ref.Attempt})
}

func (c *fakeCloud) lease(a *cloudAttempt) (wire.Type, any) {
	a.until = time.Now().Add(wire.LeaseTime)
	return wire.TypeLease, wire.Lease{
		Task: c.task(a.ref.TaskID).Task, Attempt: a.ref.Attempt, LeaseMS: wire.LeaseTime.Milliseconds(), ClaimID: a.claim,
	}
}

func (c *fakeCloud) claim(q wire.Claim) (wire.Type, any) {
	for _, a := range c.attempts {
		if a.claim != q.ClaimID {
			continue
		}
		if a.slot != q.Slot {
			c.strange = append(c.strange, "a claim id for two slots")
		}
		if a.over {
			return over(a.ref)
		}
		return c.lease(a)
	}
	for _, a := range c.attempts {
		if a.slot == q.Slot && !a.over {
			return c.lease(a)
		}
	}
	for _, k := range c.tasks {
		if k.state != wire.TaskQueued {
			continue
		}
		k.attempt++
		k.state = wire.TaskLeased
		a := &cloudAttempt{ref: wire.AttemptRef{TaskID: k.TaskID, Attempt: k.attempt}, slot: q.Slot, claim: q.ClaimID}
		c.attempts[a.ref] = a
		return c.lease(a)
	}
	return wire.TypeNone, wire.NoTask{RetryAfterMS: 1000}
}

func (c *fakeCloud) renew(q wire.Renew) (wire.Type, any) {
	ref := wire.AttemptRef{TaskID: q.TaskID, Attempt: q.Attempt}
	a := c.attempts[ref]
	if a == nil || a.over {
		return over(ref)
	}
	a.until = time.Now().Add(wire.LeaseTime)
	c.task(q.TaskID).state = wire.TaskRunning
	return wire.TypeRenewed, wire.Renewed{LeaseMS: wire.LeaseTime.Milliseconds()}
}

func (c *fakeCloud) release(q wire.Release) (wire.Type, any) {
	ref := wire.AttemptRef{TaskID: q.TaskID, Attempt: q.Attempt}
	a := c.attempts[ref]
	if a == nil || a.over {
		return over(ref)
	}
	if a.wrote != nil && *a.wrote {
		c.strange = append(c.strange, "released after a write")
	}
	a.over = true
	c.task(q.TaskID).state = wire.TaskQueued
	return wire.TypeTaskAck, wire.Ack{}
}

func (c *fakeCloud) heartbeat(h wire.Heartbeat) (wire.Type, any) {
	s := wire.Sync{Leases: []wire.LeaseRef{}, Cancel: []wire.AttemptRef{}, Unknown: []wire.AttemptRef{}, Answers: c.answers}
	for _, r := range h.Running {
		ref := wire.AttemptRef{TaskID: r.TaskID, Attempt: r.Attempt}
		a := c.attempts[ref]
		if a == nil || a.over {
			s.Unknown = append(s.Unknown, ref)
			continue
		}
		if r.Wrote || r.Ended && a.wrote == nil {
			a.wrote = &r.Wrote
		}
	}
	for _, a := range c.attempts {
		if a.over {
			continue
		}
		s.Leases = append(s.Leases, wire.LeaseRef{TaskID: a.ref.TaskID, Attempt: a.ref.Attempt, LeaseMS: time.Until(a.until).Milliseconds()})
		if c.task(a.ref.TaskID).cancel {
			s.Cancel = append(s.Cancel, a.ref)
		}
	}
	return wire.TypeSync, s
}

func (c *fakeCloud) pending(q wire.Pending) (wire.Type, any) {
	const page = 3
	var l wire.Commands
	for _, k := range c.commands {
		if k.Seq <= q.After || k.state.Over() || time.Now().UnixMilli() >= k.Expires {
			continue
		}
		if len(l.Commands) == page {
			l.More = true
			break
		}
		l.Commands = append(l.Commands, k.Command)
	}
	return wire.TypeCommands, l
}

// receive takes an entry of the outbox.
func (c *fakeCloud) receive(e stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	switch e.Type {
	case wire.TypeResult:
		r := read[wire.Result](e.Body)
		ref := wire.AttemptRef{TaskID: r.TaskID, Attempt: r.Attempt}
		if c.results[ref] == nil {
			c.results[ref] = map[string]wire.Result{}
		}
		c.results[ref][e.ID] = r
		c.result(ref, r)
	case wire.TypeCommandStatus:
		s := read[wire.CommandStatus](e.Body)
		c.statuses[s.CommandID] = append(c.statuses[s.CommandID], s)
		c.pictures[s.CommandID] += e.Attachments
		for _, k := range c.commands {
			if k.CommandID == s.CommandID && s.Version > k.version && !k.state.Over() {
				k.state, k.version = s.Status, s.Version
			}
		}
	case wire.TypeEvent:
		c.events = append(c.events, read[wire.Event](e.Body))
	}
}

func (c *fakeCloud) result(ref wire.AttemptRef, r wire.Result) {
	a := c.attempts[ref]
	if a == nil {
		c.strange = append(c.strange, fmt.Sprint("a result of an attempt that was never granted: ", ref))
		return
	}
	if a.over {
		return
	}
	wrote := r.Wrote || a.wrote != nil && *a.wrote
	a.over, a.wrote = true, &wrote
	k := c.task(ref.TaskID)
	switch r.Outcome {
	case wire.Lost:
		c.lose(a)
	case wire.Succeeded:
		k.state = wire.TaskSucceeded
	case wire.Failed:
		k.state = wire.TaskFailure
	default:
		k.state = wire.TaskStopped
	}
}

// line is the link of one process to the cloud: it implements fleet.Link.
type line struct {
	p        *process
	handlers map[wire.Type]link.Handler
	presence wire.Presence
}

func (l *line) Handle(t wire.Type, h link.Handler) { l.handlers[t] = h }

func (l *line) Now() (time.Time, bool) { return time.Now(), true }

func (l *line) SetPresence(p wire.Presence) { l.presence = p }

func (l *line) WaitOnline(ctx context.Context) error {
	c := l.p.w.cloud
	for {
		c.mu.Lock()
		on, changed := c.online, c.changed
		c.mu.Unlock()
		if on {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trip is how long a message travels.
const trip = 20 * time.Millisecond

func (l *line) Ask(ctx context.Context, call link.Call) (*wire.Message, time.Duration, error) {
	c, sent := l.p.w.cloud, l.p.w.boot()
	if l.p.step("ask "+string(call.Type)) || !c.isOnline() {
		return nil, 0, link.ErrOffline
	}
	time.Sleep(trip)
	c.mu.Lock()
	if !c.online {
		c.mu.Unlock()
		return nil, sent, link.ErrOffline
	}
	f := noFault
	if c.fault != nil {
		f = c.fault(call)
	}
	c.asked[call.Type]++
	c.asks = append(c.asks, call)
	changed := c.changed
	var t wire.Type
	var body any
	if f != loseRequest {
		t, body = c.handle(call)
	}
	if f == twice {
		t, body = c.handle(call)
	}
	if f == cutLine {
		c.setOnlineLocked(false)
	}
	c.mu.Unlock()
	if f == loseRequest || f == loseAnswer {
		select {
		case <-ctx.Done():
		case <-changed:
			return nil, sent, link.ErrOffline
		}
	}
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, sent, link.ErrTimeout
		}
		return nil, sent, ctx.Err()
	}
	time.Sleep(trip)
	if f == cutLine || l.p.step("answer to "+string(call.Type)) {
		return nil, sent, link.ErrOffline
	}
	if t == wire.TypeError {
		return nil, sent, body.(*wire.Refusal)
	}
	m, err := wire.NewMessage(t, time.Now(), time.Minute, body)
	return m, sent, err
}

// push says something unasked. It is lost while the rack is offline.
func (p *process) push(t wire.Type, body any) {
	if p.dead.Load() || !p.w.cloud.isOnline() {
		return
	}
	m, err := wire.NewMessage(t, time.Now(), time.Minute, body)
	if err != nil {
		panic(err)
	}
	if h := p.line.handlers[t]; h != nil {
		h(p.ctx, m)
	}
}

var _ fleet.Link = (*line)(nil)
