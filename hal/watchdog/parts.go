package watchdog

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Parts are the critical parts of a program, whoever is fed while they make progress. They are safe for concurrent use.
type Parts struct {
	mu     sync.Mutex
	byName map[string]*Part // guarded by mu
}

// A Part is one critical part of the program.
type Part struct {
	parts *Parts
	name  string
	bound time.Duration
	seen  time.Time // guarded by parts.mu
}

// Lateness is a part that has not reported within its bound.
type Lateness struct {
	Part   string
	Bound  time.Duration
	Silent time.Duration // since its last report
}

// String is for logs.
func (l Lateness) String() string {
	return fmt.Sprintf("%s silent for %v, bound %v", l.Part, l.Silent.Round(time.Millisecond), l.Bound)
}

// NewParts returns no part yet.
func NewParts() *Parts { return &Parts{byName: map[string]*Part{}} }

// Part registers a critical part that reports at least every bound, counted from now. A second part of the same name
// replaces the first, as when its owner was restarted.
func (all *Parts) Part(name string, bound time.Duration) *Part {
	all.mu.Lock()
	defer all.mu.Unlock()
	p := &Part{parts: all, name: name, bound: bound, seen: time.Now()}
	all.byName[name] = p
	return p
}

// Progress reports that a round of the part's work is done.
func (p *Part) Progress() {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	p.seen = time.Now()
}

// End takes the part out: it has ended in an orderly way.
func (p *Part) End() {
	p.parts.mu.Lock()
	defer p.parts.mu.Unlock()
	if p.parts.byName[p.name] == p {
		delete(p.parts.byName, p.name)
	}
}

// Late lists the parts that are late now, by name.
func (all *Parts) Late() []Lateness {
	all.mu.Lock()
	defer all.mu.Unlock()
	var late []Lateness
	for _, p := range all.byName {
		if silent := time.Since(p.seen); silent > p.bound {
			late = append(late, Lateness{p.name, p.bound, silent})
		}
	}
	slices.SortFunc(late, func(a, b Lateness) int { return strings.Compare(a.Part, b.Part) })
	return late
}

// Idle says in a few words why a service manager is not to be fed: which parts are late, or that there is none yet, so that
// nothing has shown progress. It is "" while every part makes progress.
func (all *Parts) Idle() string {
	if all.none() {
		return "no part has begun"
	}
	late := all.Late()
	names := make([]string, len(late))
	for i, l := range late {
		names[i] = l.Part
	}
	return strings.Join(names, ", ")
}

func (all *Parts) none() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byName) == 0
}
