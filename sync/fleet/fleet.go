package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Options say what a fleet works with. Link, Outbox, Bucket, Runner, Generation
// and Boot are needed.
type Options struct {
	Link   Link
	Outbox Outbox
	Bucket link.Bucket // of its own, in the database of the outbox
	Runner Runner

	// Generation is that of the link. Records of another one are dropped unreported:
	// the cloud has ended what they stand for.
	Generation    uint64
	Boot          func() time.Duration // the boot clock: that of the link
	SkillsVersion func() string        // nil for none
	Logger        *slog.Logger

	CommandTime time.Duration // that a command may take; 0 is DefaultCommandTime

	Jitter func(limit time.Duration) time.Duration // a random time up to limit; for tests
}

// DefaultCommandTime bounds the execution of a command.
const DefaultCommandTime = 5 * time.Minute

// answerTime bounds the wait for the answer to one request.
const answerTime = 10 * time.Second

// Fleet is a rack's half of tasks and commands. It is safe for concurrent use.
type Fleet struct {
	o        Options
	log      *slog.Logger
	wake     chan struct{} // slots may have changed
	beat     chan struct{} // a heartbeat is due at once
	ask      chan struct{} // commands may be pending
	commands commands

	mu       sync.Mutex // guards what follows, and the attempts
	run      *run       // nil unless Run is at work
	begins   bool       // Run takes up what there is, and nothing is executed yet
	draining bool
	paused   bool           // as the desired configuration says
	every    time.Duration  // between two heartbeats
	claims   map[int]*claim // by slot
	attempts map[wire.AttemptRef]*attempt
	over     map[wire.AttemptRef]overRecord // the newest attempts that have ended
	orphans  bool                           // the cloud listed a lease that is not known here
}

// run owns the goroutines of one call of Run.
type run struct {
	ctx context.Context
	wg  sync.WaitGroup
}

// ErrRunning means that Run was called while it runs.
var ErrRunning = errors.New("the fleet runs already")

// Open reads what an earlier process has left and registers the handlers; before
// the link runs.
func Open(o Options) (*Fleet, error) {
	if o.Link == nil || o.Outbox == nil || o.Bucket == nil || o.Runner == nil || o.Boot == nil || o.Generation == 0 {
		return nil, errors.New("fleet: link, outbox, bucket, runner, boot clock and generation are needed")
	}
	if o.SkillsVersion == nil {
		o.SkillsVersion = func() string { return "" }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CommandTime == 0 {
		o.CommandTime = DefaultCommandTime
	}
	if o.Jitter == nil {
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(max(1, limit)) }
	}
	f := &Fleet{
		o: o, log: o.Logger,
		wake: make(chan struct{}, 1), beat: make(chan struct{}, 1), ask: make(chan struct{}, 1),
		commands: commands{lanes: map[int]*lane{}}, every: wire.HeartbeatEvery,
		claims: map[int]*claim{}, attempts: map[wire.AttemptRef]*attempt{}, over: map[wire.AttemptRef]overRecord{},
	}
	if err := f.load(); err != nil {
		return nil, fmt.Errorf("open the records of tasks and commands: %w", err)
	}
	o.Link.Handle(wire.TypeWelcome, f.onWelcome)
	o.Link.Handle(wire.TypeCancel, f.onCancel)
	o.Link.Handle(wire.TypeAnswer, f.onAnswer)
	o.Link.Handle(wire.TypeExecute, f.onExecute)
	return f, nil
}

// Run works until ctx ends, and then returns nil when all of its goroutines have
// ended. An error is one of the database, or [ErrRunning]. Attempts go on in the
// runner; Run may be called again.
func (f *Fleet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{ctx: ctx}
	f.mu.Lock()
	if f.run != nil || f.begins {
		f.mu.Unlock()
		return ErrRunning
	}
	f.begins = true
	f.mu.Unlock()
	// While nothing can be executed: a command that comes now would be found in the records, and be executed twice.
	err := f.takeUpCommands()
	f.mu.Lock()
	f.begins = false
	if err == nil {
		f.run = r
	}
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("take up commands: %w", err)
	}
	defer func() {
		cancel()
		f.mu.Lock()
		f.run = nil // nothing is added from here on
		f.mu.Unlock()
		r.wg.Wait()
	}()
	f.kickLanes()
	f.takeUpAttempts()
	f.spawn(f.heartbeats)
	f.spawn(f.pendings)
	f.spawn(f.claiming)
	signal(f.ask)
	<-ctx.Done()
	return nil
}

// spawn starts a goroutine of the present run, if there is one.
func (f *Fleet) spawn(fn func(ctx context.Context)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run == nil {
		return false
	}
	ctx := f.run.ctx
	f.run.wg.Go(func() { fn(ctx) })
	return true
}

// Drain stops claiming, or takes it up again, and says so in the rack's state. A
// claim that is on its way still gets its task.
func (f *Fleet) Drain(on bool) { f.hold(&f.draining, on) }

// Pause does as Drain does, as the cloud wants it: the rack claims when it neither drains nor is paused.
func (f *Fleet) Pause(on bool) { f.hold(&f.paused, on) }

// hold sets one of the reasons not to claim. The presence is set under the lock, so that the last of two calls counts.
func (f *Fleet) hold(reason *bool, on bool) {
	f.mu.Lock()
	*reason = on
	p := wire.Online
	if f.holding() {
		p = wire.Draining
	}
	f.o.Link.SetPresence(p)
	f.mu.Unlock()
	f.Wake()
}

// holding tells that no task is to be claimed. The lock is held.
func (f *Fleet) holding() bool { return f.draining || f.paused }

// SetHeartbeat changes the time between two heartbeats, from now on; 0 is [wire.HeartbeatEvery].
func (f *Fleet) SetHeartbeat(every time.Duration) {
	if every <= 0 {
		every = wire.HeartbeatEvery
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.every != every {
		f.every = every
		signal(f.beat)
	}
}

// heartbeatEvery is the time between two heartbeats.
func (f *Fleet) heartbeatEvery() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.every
}

// Wake tells that slots have changed. Without it they are looked at each second.
func (f *Fleet) Wake() { signal(f.wake) }

// Event puts an event into the outbox. detail is made to JSON, nil for none.
// Errors are those of link.Outbox.Put and of the JSON.
func (f *Fleet) Event(kind string, slot int, phone string, detail any) error {
	now, _ := f.o.Link.Now()
	e := wire.Event{Kind: kind, Slot: slot, Phone: phone, At: now.UnixMilli()}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil {
			return fmt.Errorf("event %s: %w", kind, err)
		}
		e.Detail = raw
	}
	_, err := f.o.Outbox.Put(link.Entry{Type: wire.TypeEvent, Body: e})
	return err
}

// onWelcome begins a session: what the cloud missed is told, what the rack
// missed is asked for.
func (f *Fleet) onWelcome(_ context.Context, m *wire.Message) {
	var w wire.Welcome
	if err := m.Decode(&w); err != nil {
		f.log.Warn("a welcome cannot be read", "err", err)
		return
	}
	f.commands.welcome(w.CommandSeq)
	signal(f.beat)
	signal(f.ask)
}

// signal leaves word in a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
