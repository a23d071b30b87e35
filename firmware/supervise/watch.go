package supervise

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/thejerf/suture/v4"
)

const (
	maxParts  = 500 // whose ends are counted; others are "other"
	maxStacks = 200 // that are remembered as logged
	maxKept   = 200 // ends that nobody has taken
	maxWords  = 300 // bytes of what a panic or an error says

	other  = "other"
	treeOf = "tree of " // begins the name of a part's own tree
)

// Options of a Watch.
type Options struct {
	Logger *slog.Logger
	Clock  func() time.Duration // time since the board's start
	// Panicked is called when a part has panicked; may be nil. It must not block.
	Panicked func(part string)
}

// End is the end of a part that should have gone on.
type End struct {
	Part string
	At   time.Duration // since the board's start
}

// State says how a part is.
type State string

// States of a part.
const (
	Running State = "running"
	Waiting State = "waiting" // it failed again and again, and waits before it is started anew
	Stuck   State = "stuck"   // it did not stop when it was told to, and was abandoned
)

// Part is something under supervision.
type Part struct {
	Name  string
	State State
	Since time.Duration // since the board's start: of the state, and for one that runs of its last start
	Ends  int64         // times that it failed
}

// A Watch hears of every end. It is safe for concurrent use.
type Watch struct {
	options Options

	mu     sync.Mutex
	counts map[string]int64 // guarded by mu, as is what follows
	kept   []End            // the oldest first
	stacks map[uint64]bool
	parts  []Part // as they were added
}

// New returns a watch.
func New(o Options) *Watch {
	return &Watch{options: o, counts: map[string]int64{}, stacks: map[uint64]bool{}}
}

// Tree returns a supervisor that waits so long for each part at the end.
func (w *Watch) Tree(name string, stop time.Duration) *suture.Supervisor {
	return suture.New(name, suture.Spec{Timeout: stop, EventHook: w.hear})
}

// Add puts a part under a supervisor, in a tree of its own: it fails and waits alone.
func (w *Watch) Add(tree *suture.Supervisor, part suture.Service, stop time.Duration) {
	own := w.Tree(treeOf+fmt.Sprint(part), stop)
	own.Add(part)
	w.mu.Lock()
	if len(w.parts) < maxParts {
		w.parts = append(w.parts, Part{Name: fmt.Sprint(part), State: Running, Since: w.options.Clock()})
	}
	w.mu.Unlock()
	tree.Add(own)
}

// Restarts are the ends of each part since the start.
func (w *Watch) Restarts() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

// Parts are those that were added, in that order, 500 at most.
func (w *Watch) Parts() []Part {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.parts)
	for i := range all {
		all[i].Ends = w.counts[all[i].Name]
	}
	return all
}

// enter notes the state of a part.
func (w *Watch) enter(part string, s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.parts {
		if p := &w.parts[i]; p.Name == part {
			p.State, p.Since = s, w.options.Clock()
		}
	}
}

// Take returns the ends since the last Take, the newest 200 at most.
func (w *Watch) Take() []End {
	w.mu.Lock()
	defer w.mu.Unlock()
	ends := w.kept
	w.kept = nil
	return ends
}

// hear is suture's event hook.
func (w *Watch) hear(event suture.Event) {
	log := w.options.Logger
	switch e := event.(type) {
	case suture.EventServicePanic:
		w.count(e.ServiceName)
		w.enter(e.ServiceName, stateOf(e.Restarting))
		attrs := []any{"part", e.ServiceName, "panic", cut(e.PanicMsg)}
		if w.fresh(e.ServiceName, e.Stacktrace) {
			attrs = append(attrs, "stack", e.Stacktrace)
		}
		log.Error("a part panicked and is started again", attrs...)
		if w.options.Panicked != nil {
			w.options.Panicked(e.ServiceName)
		}
	case suture.EventServiceTerminate:
		err, _ := e.Err.(error)
		if errors.Is(err, context.Canceled) {
			return // it was told to
		}
		w.count(e.ServiceName)
		w.enter(e.ServiceName, stateOf(e.Restarting))
		log.Warn("a part ended and is started again", "part", e.ServiceName, "err", cut(fmt.Sprint(e.Err)))
	case suture.EventStopTimeout:
		w.enter(e.ServiceName, Stuck)
		log.Error("a part does not stop and is abandoned", "part", e.ServiceName)
	case suture.EventBackoff:
		log.Warn("a part fails again and again and waits before it is started anew", "tree", e.SupervisorName)
	case suture.EventResume:
		w.enter(strings.TrimPrefix(e.SupervisorName, treeOf), Running)
		log.Info("a part is started anew after its wait", "tree", e.SupervisorName)
	}
}

func stateOf(restarting bool) State {
	if restarting {
		return Running
	}
	return Waiting
}

func (w *Watch) count(part string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.counts[part]; !known && len(w.counts) >= maxParts {
		part = other
	}
	w.counts[part]++
	w.kept = append(w.kept, End{part, w.options.Clock()})
	if extra := len(w.kept) - maxKept; extra > 0 {
		w.kept = append([]End(nil), w.kept[extra:]...)
	}
}

// fresh tells whether a stack of the part was not logged yet. Addresses in it differ from time to time, where the code is
// the same: the part and the lines with files count.
func (w *Watch) fresh(part, stack string) bool {
	h := fnv.New64a()
	fmt.Fprintln(h, part)
	for line := range places(stack) {
		fmt.Fprintln(h, line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stacks[h.Sum64()] {
		return false
	}
	if len(w.stacks) >= maxStacks {
		clear(w.stacks)
	}
	w.stacks[h.Sum64()] = true
	return true
}

func cut(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return text[:maxWords] + "…"
}
