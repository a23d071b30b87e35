package firmware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/thejerf/suture/v4"

	"phonerack/agent/mcp"
	"phonerack/agent/planner"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/control"
	"phonerack/firmware/keyring"
	"phonerack/firmware/lease"
	"phonerack/firmware/logbook"
	"phonerack/firmware/phonebook"
	"phonerack/firmware/skills"
	"phonerack/firmware/status"
	"phonerack/firmware/store"
	"phonerack/firmware/supervise"
	"phonerack/hal/gpio"
	"phonerack/hal/power"
	"phonerack/hal/watchdog"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// How long a stop may take: tasks, then everything else, then the database; five seconds in all.
const (
	stopTasks = 1500 * time.Millisecond
	stopPart  = 1500 * time.Millisecond // of one part in the tree
	stopTree  = 2 * time.Second
	stopPower = 5 * time.Second // on top, and only while power is being switched: a cycle gives it back after 2 s
	stopStore = 1400 * time.Millisecond

	sweepInterval = time.Second
	owedInterval  = 10 * time.Second
	copyInterval  = 6 * time.Hour

	databaseFile = "rackd.db" // in the state folder
)

// A Rack is the appliance. It implements action.Rack.
type Rack struct {
	config       *config.Config
	planner      planner.Planner
	decideWithin time.Duration // that the planner's answer may take; 0 is the runner's own
	log          *slog.Logger
	levels       *logLevel
	logBook      *logbook.Book // nil: the log cannot be read here
	reloads      reloads
	onReady      func()
	clock        func() time.Duration // of the leases
	cloud        *cloud               // nil for a rack on its own
	events       *events
	tally        *tally
	began        time.Time

	store       *store.Store
	taskLog     *taskLog
	inputs      *inputs
	documents   *documents // nil if documents cannot be read
	book        *phonebook.Book
	keys        *keyring.Ring
	starts      *store.Bucket
	skills      *skills.Skills   // nil if skills are not enabled
	catalog     *catalog.Catalog // of a subscription; nil if there is none, or nothing could be proved
	platform    *http.Transport  // that the catalog comes over; nil for the cloud's link
	leases      *lease.Table
	actions     *action.Registry
	mcp         *mcp.Server   // nil if MCP is switched off
	talks       chan struct{} // one for each MCP client over a byte stream
	slots       map[int]*slot
	bus         *busWatch
	power       *power.Supply // nil if nothing can be switched
	hubs        *power.USB    // its ports; nil without a board
	gauges      gauges        // of phones whose power is off, or was just now
	lines       *gpio.Lines   // nil without a board file
	pins        []*gpio.Pin   // that are given back at the end
	overcurrent *overcurrent  // watches for hubs that take too much
	care        *care
	way         way
	absent      absent          // addresses that the page and metrics wait for
	parts       *watchdog.Parts // that have to make progress; nil if no watchdog asks
	linked      *watchdog.Part  // of the link; nil as parts, and as cloud
	storeBound  time.Duration   // 0 is the usual
	room        int             // most bytes of the database
	tree        *suture.Supervisor
	watch       *supervise.Watch // over the tree
	source      *pageSource
	page        *status.Page
	logKept     *logbook.Folder // nil: nothing of the log is kept
	socket      net.Listener

	working sync.WaitGroup     // tasks
	halt    context.Context    // ends when the rack begins to stop
	end     context.CancelFunc // ends halt

	mu       sync.Mutex
	tasks    map[string]*task // guarded by mu, as is what follows
	owed     map[string]debt  // results that could not be written down yet
	stopping bool

	resetting bool          // guarded by mu: a factory reset was asked for
	reset     chan struct{} // closed when Run is to end for it
}

// New opens the database, the key and the control socket. Run must follow, and closes them.
func New(o Options) (*Rack, error) {
	r := &Rack{
		config: o.Config, planner: o.Planner, log: o.Logger, onReady: o.OnReady, began: time.Now(),
		reset:     make(chan struct{}),
		documents: newDocuments(o.Documents, o.Logger), tally: newTally(), slots: map[int]*slot{}, tasks: map[string]*task{}, owed: map[string]debt{},
	}
	r.logBook, r.logKept = o.Book, o.Kept
	r.levels = &logLevel{is: o.Level, own: o.Config.Log.Level}
	r.reloads = reloads{read: o.ReadConfig, maxHold: o.Config.Control.MaxHold, level: o.Config.Log.Level, health: o.Config.Health}
	r.halt, r.end = context.WithCancel(context.Background())
	state := o.Config.Rack.State
	if r.room = o.StoreSize; r.room == 0 {
		r.room = store.DefaultMaxSize
	}
	var err error
	if r.store, err = store.Open(store.Options{Path: filepath.Join(state, databaseFile), MaxSize: o.StoreSize, Logger: r.log}); err != nil {
		return nil, fmt.Errorf("open the database: %w", remedied(err, state))
	}
	if err := r.prepare(o); err != nil {
		r.closePins()
		r.store.Close()
		return nil, err
	}
	return r, nil
}

// remedied adds what to do about a state folder that cannot be written.
func remedied(err error, state string) error {
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space in the state folder %s", err, state)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: let rackd write to the state folder %s, or name another in rack.state", err, state)
	}
	return err
}

// logRecovery says how the database was found, as a warning if it had to be mended.
func logRecovery(log *slog.Logger, r store.Recovery) {
	level := slog.LevelInfo
	if r.Reason != "" {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "database", "outcome", string(r.Outcome), "reason", r.Reason, "aside", r.Aside)
}

// prepare opens what is in the state folder and puts the parts together, those first that others are made of.
func (r *Rack) prepare(o Options) error {
	r.log = r.log.With("boot", r.store.Boot())
	logRecovery(r.log, r.store.Recovery())
	state := r.config.Rack.State
	bucket, err := r.store.Bucket(tasksBucket)
	if err != nil {
		return err
	}
	r.taskLog = &taskLog{bucket: bucket, folder: filepath.Join(state, tasksFolder), log: r.log}
	if err := r.taskLog.endOpen(time.Now().UTC()); err != nil {
		return err
	}
	if r.inputs, err = newInputs(state, r.log); err != nil {
		return remedied(err, state)
	}
	if bucket, err = r.store.Bucket(phonebook.BucketName); err != nil {
		return err
	}
	r.book = phonebook.Open(bucket, time.Now)
	if err := r.openSkills(); err != nil {
		return err
	}
	if err := r.openKeys(); err != nil {
		return err
	}
	if r.clock = o.Clock; r.clock == nil {
		r.clock = lease.BootTime
	}
	r.leases = lease.NewTable(lease.Options{Now: r.clock, MaxHold: time.Duration(r.config.Control.MaxHold)})
	o.ADB.Comment = "rackd@" + r.config.Rack.ID
	if err := r.joinCloud(); err != nil {
		return err
	}
	if r.planner == nil {
		if r.planner, r.decideWithin, err = r.choosePlanner(); err != nil {
			return err
		}
	}
	r.actions = action.New(r, r.leases, r.log)
	r.openMCP()
	if err := r.openPower(o); err != nil {
		return err
	}
	r.furnish(o, o.ADB)
	if err := r.equip(o); err != nil {
		return err
	}
	if err := r.openWay(o); err != nil {
		return err
	}
	r.addPage()
	r.socket, err = control.Listen(r.config.Control.Socket, r.config.Control.Group)
	return err
}

// furnish makes the slots and the tree that supervises them.
func (r *Rack) furnish(o Options, hello adb.Options) {
	r.watch = supervise.New(supervise.Options{Logger: r.log, Clock: r.clock, Panicked: func(part string) { // its words are in the log alone: they may quote anything
		r.events.tell(told{kind: panickedEvent, detail: map[string]any{"part": cut(part, maxEventText)}})
	}})
	r.tree = r.watch.Tree("rack", stopPart)
	r.bus = &busWatch{watch: o.Watch, board: r.config.Board, sources: map[string]*usbSource{}, file: r.config.Rack.Board, strays: map[string]action.PhoneState{}, log: r.logOf(busPart)}
	if r.config.Board != nil {
		for _, b := range r.config.Board.Slots {
			source := newUSBSource(b.Path, o.Dialer)
			r.bus.sources[b.Path] = source
			r.slots[b.Number] = newSlot(b.Number, b.Label, source, r, r.greeting(hello, b.Number))
		}
		if r.bus.watch == nil {
			r.bus.watch = func(ctx context.Context) <-chan bus.Event {
				return bus.Watch(ctx, bus.Options{Sysfs: r.config.USB.Sysfs, Logger: r.logOf(busPart), Round: r.bus.round}).Events()
			}
		}
		r.watch.Add(r.tree, r.bus, stopPart)
	}
	for _, s := range r.config.Streams {
		r.slots[s.Slot] = newSlot(s.Slot, "", streamSource{s}, r, r.greeting(hello, s.Slot))
	}
	for _, s := range r.slots {
		s.patience = cmp.Or(o.Patience, probeTimeout)
		if s.keys, s.holder = r.keys, o.Holder; s.holder == nil {
			in := bus.Places{Sysfs: r.config.USB.Sysfs}
			s.holder = func(ctx context.Context, d bus.Device) string { return bus.Holder(ctx, in, d) }
		}
	}
	r.watch.Add(r.tree, service{"control socket", r.serveControl}, stopPart)
	if r.cloud != nil {
		r.watch.Add(r.tree, service{linkPart, r.cloud.link.Run}, stopPart)
		r.watch.Add(r.tree, service{fleetPart, r.cloud.fleet.Run}, stopPart)
	}
	r.watch.Add(r.tree, service{"events", r.events.Run}, stopPart)
	if r.catalog != nil {
		r.watch.Add(r.tree, service{"catalog of skills", r.runCatalog}, stopPart)
	}
	if r.skills != nil {
		r.watch.Add(r.tree, service{skillsPart, r.skills.Run}, stopPart)
	}
	if r.mcp != nil && r.config.MCP.Listen != "" {
		r.watch.Add(r.tree, service{mcpPart, r.serveMCP}, stopPart)
	}
	r.watch.Add(r.tree, service{"sweeper of leases", every(sweepInterval, func() { r.leases.Sweep() })}, stopPart)
	r.watch.Add(r.tree, service{"writer of owed results", every(owedInterval, r.payOwed)}, stopPart)
	r.watch.Add(r.tree, service{"copier of the database", every(copyInterval, r.copyStore)}, stopPart)
}

// Run works until ctx ends and then stops within five seconds. What does not stop in time is abandoned and logged.
func (r *Rack) Run(ctx context.Context) error {
	if r.config.Board != nil {
		reportUSBMemory(r.config.USB.Sysfs, len(r.slots), r.log)
	}
	treeCtx, stopTreeNow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTreeNow()
	ended := r.tree.ServeBackground(treeCtx)
	r.log.Info("rack runs", "rack", r.config.Rack.ID, "slots", len(r.slots), "socket", r.config.Control.Socket)
	if r.onReady != nil {
		r.onReady()
	}
	var err error
	select {
	case <-ctx.Done():
	case <-r.reset:
		err = ErrFactoryReset
	case err = <-ended:
		err = fmt.Errorf("the supervisor ended: %w", err)
		ended = nil
	}
	r.log.Info("rack stops")
	if r.mcp != nil {
		r.mcp.Close()
	}
	r.stopTasks()
	stopTreeNow()
	if ended != nil && !within(stopTree, func() { <-ended }) {
		r.log.Error("not everything stopped in time; the rest is abandoned")
	}
	if !within(stopPower, r.care.finish) {
		r.log.Error("a hub is still being switched; what is wanted of it is applied at the next start")
	}
	r.closePins()
	r.payOwed()
	r.writeNotes()
	if err := noteStop(r.starts); err != nil {
		r.log.Warn("the stop was not noted", "err", err)
	}
	if err := r.noteOrigin(); err != nil {
		r.log.Warn("the state of the database was not noted", "err", err)
	}
	var closeErr error
	if !within(stopStore, func() { closeErr = r.store.Close() }) {
		r.log.Error("the database did not close in time and is abandoned; nothing committed is lost")
		return err
	}
	return errors.Join(err, closeErr)
}

func (r *Rack) stopTasks() {
	r.mu.Lock()
	r.stopping = true
	for _, t := range r.tasks {
		t.cancel(wire.Refuse(wire.ShuttingDown, nil))
	}
	r.mu.Unlock()
	r.end()
	if !within(stopTasks, r.working.Wait) {
		r.log.Error("a task does not stop and is abandoned; it is marked as lost at the next start")
	}
}

func (r *Rack) serveControl(ctx context.Context) error {
	l := r.socket
	if l == nil { // an earlier Serve failed and closed it
		var err error
		if l, err = control.Listen(r.config.Control.Socket, r.config.Control.Group); err != nil {
			return err
		}
	}
	r.socket = nil
	return control.NewServer(r.actions, r.log).Serve(ctx, l)
}

func (r *Rack) copyStore() {
	r.writeNotes()
	if err := r.store.Copy(); err != nil {
		r.log.Warn("no copy of the database", "err", err)
	}
}

// writeNotes writes what was noted of phones. It is not worth much: a failure is logged.
func (r *Rack) writeNotes() {
	if err := r.book.Flush(); err != nil {
		r.log.Warn("the phones' records could not be written", "err", err)
	}
}
