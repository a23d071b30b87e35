package fleet_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tester is what rapid and testing have in common here.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// world is what outlives a process of the rack: the cloud, the phones and the disk.
type world struct {
	t      tester
	path   string
	begun  time.Time
	cloud  *fakeCloud
	phones *phones
	p      *process

	generation  uint64
	commandTime time.Duration
	room        int // results that the outbox takes; 0 is any number
}

func newWorld(t tester, dir string) *world {
	return &world{
		t: t, path: filepath.Join(dir, fmt.Sprintf("rack-%d.db", files.Add(1))), begun: time.Now(), cloud: newCloud(), generation: 1,
		phones: &phones{
			slots: 1, think: 3 * time.Second, starts: map[wire.AttemptRef]int{}, writes: map[wire.AttemptRef]int{}, finishes: map[wire.AttemptRef]int{},
			executed: map[string]int{}, cancels: map[wire.AttemptRef][]wire.Code{}, extended: map[wire.AttemptRef][]time.Duration{},
		},
	}
}

var files atomic.Int64

func (w *world) boot() time.Duration { return time.Since(w.begun) }

// process is one life of rackd.
type process struct {
	w        *world
	db       *bolt.DB
	line     *line
	runner   *runner
	fleet    *fleet.Fleet
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup
	dead     atomic.Bool // nothing that it does has an effect any more
	steps    atomic.Int64
	dieAt    int64  // the step at which it dies; 0 for never
	dieOn    string // of these steps only; empty for all
	diedAt   string
	reserved atomic.Int64
}

// step counts the moments at which a process may die, and tells that it is dead.
func (p *process) step(what string) bool {
	if p.dieOn != "" && p.dieOn != what {
		return p.dead.Load()
	}
	if n := p.steps.Add(1); n == p.dieAt {
		p.diedAt = what
		p.dead.Store(true)
	}
	return p.dead.Load()
}

// start begins a life of the rack that ends at a step, or goes on.
func (w *world) start(dieAt int64) *process {
	w.t.Helper()
	return w.startToDie(dieAt, "")
}

// startToDie begins a life that ends at one of the steps of a name.
func (w *world) startToDie(dieAt int64, dieOn string) *process {
	w.t.Helper()
	db, err := bolt.Open(w.path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	p := &process{w: w, db: db, dieAt: dieAt, dieOn: dieOn}
	w.p = p
	p.line = &line{p: p, handlers: map[wire.Type]link.Handler{}}
	p.runner = &runner{p: p, live: map[wire.AttemptRef]*work{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("fleet"))
		if err == nil {
			_, err = tx.CreateBucketIfNotExists([]byte("outbox"))
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	p.fleet, err = fleet.Open(fleet.Options{
		Link: p.line, Outbox: outbox{p}, Bucket: bucket{p, "fleet"}, Runner: p.runner, Generation: w.generation, Boot: w.boot, CommandTime: w.commandTime,
		SkillsVersion: func() string { return "7" }, Logger: slog.New(slog.DiscardHandler),
		Jitter: func(limit time.Duration) time.Duration { return limit / 2 },
	})
	if err != nil && !p.dead.Load() {
		w.t.Fatalf("open: %v", err)
	}
	if err == nil {
		p.wg.Go(func() {
			if err := p.fleet.Run(p.ctx); err != nil && !p.dead.Load() {
				w.t.Errorf("run: %v", err)
			}
		})
		p.wg.Go(p.sessions)
		p.wg.Go(p.drain)
	}
	return p
}

// end ends the life: what was committed stays.
func (p *process) end() {
	p.dead.Store(true)
	p.stop()
	p.wg.Wait()
	if err := p.db.Close(); err != nil {
		p.w.t.Errorf("%v", err)
	}
}

// sessions welcomes the rack each time it comes online.
func (p *process) sessions() {
	for p.line.WaitOnline(p.ctx) == nil {
		p.w.cloud.mu.Lock()
		changed, base := p.w.cloud.changed, p.w.cloud.base
		p.w.cloud.mu.Unlock()
		p.push(wire.TypeWelcome, wire.Welcome{Now: time.Now().UnixMilli(), CommandSeq: base})
		select {
		case <-changed:
		case <-p.ctx.Done():
			return
		}
	}
}

// drain brings what is in the outbox to the cloud, each entry until it is
// acknowledged.
func (p *process) drain() {
	for p.line.WaitOnline(p.ctx) == nil {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-p.ctx.Done():
			return
		}
		for _, e := range p.entries() {
			if p.dead.Load() || !p.w.cloud.isOnline() {
				break
			}
			p.w.cloud.mu.Lock()
			f := noFault
			if p.w.cloud.fault != nil {
				f = p.w.cloud.fault(link.Call{Type: e.Type})
			}
			p.w.cloud.mu.Unlock()
			if f == loseRequest {
				break
			}
			p.w.cloud.receive(e)
			if f == loseAnswer || p.step("ack of "+string(e.Type)) {
				break
			}
			err := p.db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("outbox")).Delete(e.key) })
			if err != nil {
				p.w.t.Errorf("%v", err)
			}
		}
	}
}

// bucket is a part of the process's database, which takes nothing from the dead.
type bucket struct {
	p    *process
	name string
}

var errDead = errors.New("the process is dead")

func (b bucket) In(tx *bolt.Tx) *bolt.Bucket { return tx.Bucket([]byte(b.name)) }

func (b bucket) View(fn func(*bolt.Bucket) error) error {
	return b.p.db.View(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

func (b bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.p.update(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

// update may die before the commit, with no effect, or right after it.
func (p *process) update(fn func(tx *bolt.Tx) error) error {
	err := p.db.Update(func(tx *bolt.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if p.step("before a commit") {
			return errDead
		}
		return nil
	})
	if err == nil {
		p.step("after a commit")
	}
	return err
}

// stored is an entry of the outbox.
type stored struct {
	ID          string
	Type        wire.Type
	Body        json.RawMessage
	Attachments int
	key         []byte
}

type outbox struct{ p *process }

func (o outbox) Put(e link.Entry) (id string, err error) {
	err = o.p.update(func(tx *bolt.Tx) error {
		id, err = o.PutTx(tx, e)
		return err
	})
	return id, err
}

// maxBody is the largest body that a frame carries in these tests.
const maxBody = 20_000

func (o outbox) PutTx(tx *bolt.Tx, e link.Entry) (string, error) {
	b := tx.Bucket([]byte("outbox"))
	body, err := json.Marshal(e.Body)
	if err != nil {
		return "", err
	}
	if len(body) > maxBody {
		return "", fmt.Errorf("%s: %w", e.Type, link.ErrTooLarge)
	}
	if e.ID == "" {
		e.ID = wire.NewID(time.Now())
	}
	held := false
	_ = b.ForEach(func(_, raw []byte) error {
		held = held || read[stored](raw).ID == e.ID
		return nil
	})
	if held {
		return e.ID, nil
	}
	n, _ := b.NextSequence()
	raw, err := json.Marshal(stored{ID: e.ID, Type: e.Type, Body: body, Attachments: len(e.Attachments)})
	if err != nil {
		return "", err
	}
	return e.ID, b.Put(binary.BigEndian.AppendUint64(nil, n), raw)
}

func (o outbox) Holds(id string) (bool, error) {
	return slices.ContainsFunc(o.p.entries(), func(e stored) bool { return e.ID == id }), nil
}

func (o outbox) Reserve() (func(), error) {
	if room := int64(o.p.w.room); room > 0 && o.p.reserved.Load() >= room {
		return nil, link.ErrFull
	}
	o.p.reserved.Add(1)
	return sync.OnceFunc(func() { o.p.reserved.Add(-1) }), nil
}

func (p *process) entries() (all []stored) {
	err := p.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("outbox")).ForEach(func(k, raw []byte) error {
			e := read[stored](raw)
			e.key = append([]byte(nil), k...)
			all = append(all, e)
			return nil
		})
	})
	if err != nil {
		p.w.t.Errorf("%v", err)
	}
	return all
}

// phones are what happened to the phones, over all lives.
type phones struct {
	mu       sync.Mutex
	slots    int
	busy     map[int]bool // not idle, for reasons of the rack
	serial   string
	think    time.Duration // before the write, and after it
	refuse   func(a fleet.Assignment) error
	prepare  func(ctx context.Context, a fleet.Assignment) error
	asleep   bool
	ask      string        // text of a question that each attempt asks
	hold     chan struct{} // commands wait for it
	fail     error         // of commands
	report   fleet.Report
	starts   map[wire.AttemptRef]int
	writes   map[wire.AttemptRef]int
	finishes map[wire.AttemptRef]int
	executed map[string]int
	order    []string
	cancels  map[wire.AttemptRef][]wire.Code
	extended map[wire.AttemptRef][]time.Duration
	answers  []string
	last     fleet.Assignment
}

func (f *phones) do(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// runner implements fleet.Runner for one process.
type runner struct {
	p    *process
	mu   sync.Mutex
	live map[wire.AttemptRef]*work
}

type work struct {
	a     fleet.Assignment
	stop  chan *wire.Refusal
	fence atomic.Int64
}

func (r *runner) Slots() (all []fleet.Slot) {
	f := r.p.w.phones
	r.mu.Lock()
	defer r.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := 1; n <= f.slots; n++ {
		s := fleet.Slot{Number: n, State: "ready", Phone: f.serial + fmt.Sprint(n), Model: "sim", Idle: !f.busy[n], Asleep: f.asleep, Apps: []string{"a.b"}}
		for _, w := range r.live {
			s.Idle = s.Idle && w.a.Slot != n
		}
		all = append(all, s)
	}
	return all
}

func (r *runner) Prepare(ctx context.Context, a fleet.Assignment) error {
	f := r.p.w.phones
	f.mu.Lock()
	prepare := f.prepare
	f.mu.Unlock()
	if prepare == nil {
		return nil
	}
	return prepare(ctx, a)
}

func (r *runner) Start(a fleet.Assignment) error {
	if r.p.dead.Load() {
		return wire.Refuse(wire.ShuttingDown, nil)
	}
	f := r.p.w.phones
	f.mu.Lock()
	f.starts[a.Ref()]++
	f.last = a
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil {
		if err := refuse(a); err != nil {
			return err
		}
	}
	w := &work{a: a, stop: make(chan *wire.Refusal, 8)}
	w.fence.Store(int64(a.Fence))
	r.mu.Lock()
	r.live[a.Ref()] = w
	r.mu.Unlock()
	r.p.wg.Go(func() { r.work(w) })
	return nil
}

// work thinks, writes once, thinks again and finishes.
func (r *runner) work(w *work) {
	f := r.p.w.phones
	result := wire.Result{Outcome: wire.Succeeded, Steps: 2}
	f.mu.Lock()
	ask := f.ask
	f.mu.Unlock()
	var err error
	if ask != "" {
		err = w.a.Ask(r.p.ctx, wire.Question{QuestionID: "q", Text: ask})
	}
	if err == nil {
		err = r.think(w)
	}
	if err == nil {
		err = w.a.Wrote()
	}
	if err == nil && r.p.w.boot() >= time.Duration(w.fence.Load()) {
		err = wire.Refuse(wire.NotLeased, nil)
	}
	if err == nil && !r.p.step("before a write") {
		f.do(func() { f.writes[w.a.Ref()]++ })
		w.a.Stepped(1)
		err = r.think(w)
	}
	if err != nil {
		result.Outcome, result.Error = wire.Failed, wire.From(err)
	}
	if r.p.ctx.Err() != nil {
		return
	}
	for !r.p.dead.Load() {
		if r.p.update(func(tx *bolt.Tx) error { return w.a.Finish(tx, result) }) == nil {
			f.do(func() { f.finishes[w.a.Ref()]++ })
			break
		}
		time.Sleep(time.Second)
	}
	r.mu.Lock()
	delete(r.live, w.a.Ref())
	r.mu.Unlock()
	w.a.Finished()
}

func (r *runner) think(w *work) error {
	f := r.p.w.phones
	f.mu.Lock()
	d := f.think
	f.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case why := <-w.stop:
		return why
	case <-r.p.ctx.Done():
		return r.p.ctx.Err()
	}
}

func (r *runner) find(ref wire.AttemptRef) *work {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[ref]
}

func (r *runner) Extend(ref wire.AttemptRef, fence time.Duration) {
	f := r.p.w.phones
	f.do(func() { f.extended[ref] = append(f.extended[ref], fence) })
	if w := r.find(ref); w != nil {
		w.fence.Store(int64(fence))
	}
}

func (r *runner) Cancel(ref wire.AttemptRef, why *wire.Refusal) {
	f := r.p.w.phones
	f.do(func() { f.cancels[ref] = append(f.cancels[ref], why.Code) })
	if w := r.find(ref); w != nil {
		w.stop <- why
	}
}

func (r *runner) Answer(ref wire.AttemptRef, questionID, text string) {
	f := r.p.w.phones
	f.do(func() {
		f.answers = append(f.answers, fmt.Sprint(ref.TaskID, "/", ref.Attempt, " ", questionID, " ", text))
	})
}

func (r *runner) Knows(name string) (known, idempotent bool) {
	return name == "once" || name == "ping", name == "ping"
}

func (r *runner) Execute(ctx context.Context, c wire.Command) (fleet.Report, error) {
	if r.p.step("before an execution") {
		return fleet.Report{}, errDead
	}
	f := r.p.w.phones
	f.mu.Lock()
	f.executed[c.CommandID]++
	f.order = append(f.order, c.CommandID)
	hold, fail, report := f.hold, f.fail, f.report
	f.mu.Unlock()
	wait := time.After(time.Second)
	if hold != nil {
		wait = nil
	}
	select {
	case <-wait:
	case <-hold:
	case <-ctx.Done():
		return fleet.Report{}, ctx.Err()
	}
	return report, fail
}

// pass lets time pass, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// check holds the world to what must never happen.
func (w *world) check() {
	w.t.Helper()
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	w.phones.mu.Lock()
	defer w.phones.mu.Unlock()
	for ref, n := range w.phones.starts {
		if n > 1 {
			w.t.Errorf("%v was started %d times", ref, n)
		}
	}
	for ref, all := range w.cloud.results {
		if len(all) != 1 {
			w.t.Errorf("%v has %d results: %v", ref, len(all), all)
		}
		for _, r := range all {
			if w.phones.writes[ref] > 0 && !r.Wrote {
				w.t.Errorf("%v wrote and its result denies it: %+v", ref, r)
			}
		}
	}
	for _, k := range w.cloud.tasks {
		writes := 0
		for n := 1; n <= k.attempt; n++ {
			writes += w.phones.writes[wire.AttemptRef{TaskID: k.TaskID, Attempt: n}]
		}
		if !k.Repeatable && writes > 1 {
			w.t.Errorf("task %s was written %d times", k.TaskID, writes)
		}
	}
	for _, k := range w.cloud.commands {
		if n := w.phones.executed[k.CommandID]; k.Name == "once" && n > 1 {
			w.t.Errorf("command %s ran %d times", k.CommandID, n)
		}
		version, terminal := 0, 0
		for _, s := range w.cloud.statuses[k.CommandID] {
			if s.Version < version {
				w.t.Errorf("command %s: version %d came after %d", k.CommandID, s.Version, version)
			}
			if s.Version > version && s.Status.Over() && s.Version < 1<<30 { // not the answer to a forgotten one
				terminal++
			}
			version = s.Version
		}
		if terminal > 1 {
			w.t.Errorf("command %s ended %d times: %v", k.CommandID, terminal, w.cloud.statuses[k.CommandID])
		}
	}
	for _, s := range w.cloud.strange {
		w.t.Errorf("%s", s)
	}
}

// settle waits until nothing is on its way any more, and holds the end to what
// must have happened.
func (w *world) settle(limit time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end) && w.unsettled() != ""; {
		pass(time.Second)
	}
	if why := w.unsettled(); why != "" {
		w.t.Errorf("after %v: %s", limit, why)
	}
	w.check()
}

func (w *world) unsettled() string {
	if n := len(w.p.entries()); n > 0 {
		return fmt.Sprint(n, " entries are in the outbox")
	}
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	w.cloud.expire()
	for _, k := range w.cloud.tasks {
		if !k.state.Over() {
			return fmt.Sprintf("task %s is %s", k.TaskID, k.state)
		}
	}
	for _, k := range w.cloud.commands {
		if !k.state.Over() && time.Now().UnixMilli() < k.Expires {
			return fmt.Sprintf("command %s is %s", k.CommandID, k.state)
		}
	}
	return ""
}
