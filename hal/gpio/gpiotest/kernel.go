// Package gpiotest doubles the GPIO character device for tests of what hangs on its lines.
//
// A Kernel has chips with lines. It behaves as Linux does where that hurts: a line is released when the
// last copy of its handle is closed, parked copies included, and a chip without Persist then turns an
// output into an input; what it tells of a line that nobody holds may be out of date; a second request
// of a line fails with EBUSY. Each change of what a line does electrically is an Edge with its time.
package gpiotest

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"phonerack/hal/gpio"
)

// State is what a line does electrically.
type State string

// States of a line.
const (
	In   State = "in" // drives nothing
	Low  State = "low"
	High State = "high"
)

// Edge is a change of a line's state.
type Edge struct {
	At       time.Time
	Line     string // the line's name, or label and offset
	From, To State
}

// String leaves the time out, so that edges can be compared.
func (e Edge) String() string { return fmt.Sprintf("%s: %s to %s", e.Line, e.From, e.To) }

// Chip says what a chip is made of.
type Chip struct {
	Label   string
	Lines   []string // their names; "" for none
	Persist bool     // an output stays one when its last handle is closed, as with persist_gpio_outputs
	Secret  bool     // handles do not tell which line they are of, as before Linux 6.1
}

// Kernel implements gpio.Kernel. Its methods may be called by several goroutines.
type Kernel struct {
	mu    sync.Mutex // guards all below, and what the handles point to
	chips []*chip
	edges []Edge
	open  map[*handle]bool // of the process
	fds   uintptr
}

type chip struct {
	Chip
	name  string
	lines []*line
}

type line struct {
	chip   *chip
	offset int
	out    bool // drives
	level  bool // that it drives, electrical
	wire   bool // level from outside, for an input
	stuck  *bool
	fault  error // of the next calls

	// What the kernel notes.
	request  *request
	notedOut bool // out of date while nobody holds the line
}

type request struct {
	line     *line
	consumer string
	copies   int
	config   gpio.Config
	events   chan struct{}
}

// New makes a kernel with chips, whose lines are inputs with a low level.
func New(chips ...Chip) *Kernel {
	k := &Kernel{open: map[*handle]bool{}, fds: 100}
	for i, c := range chips {
		made := &chip{Chip: c, name: fmt.Sprintf("gpiochip%d", i)}
		for offset := range c.Lines {
			made.lines = append(made.lines, &line{chip: made, offset: offset})
		}
		k.chips = append(k.chips, made)
	}
	return k
}

// Renumber gives the chips other numbers, as another kernel may.
func (k *Kernel) Renumber() {
	k.mu.Lock()
	defer k.mu.Unlock()
	slices.Reverse(k.chips)
	for i, c := range k.chips {
		c.name = fmt.Sprintf("gpiochip%d", i)
	}
}

// Edges gives what has changed since the beginning.
func (k *Kernel) Edges() []Edge {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.edges)
}

// State tells what the line of this name does. It panics when there is none.
func (k *Kernel) State(name string) State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.line(name).state()
}

// Holder is the consumer of the line's request, "" when nobody holds it.
func (k *Kernel) Holder(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.line(name).request; r != nil {
		return r.consumer
	}
	return ""
}

// Drive puts a level on the wire of an input.
func (k *Kernel) Drive(name string, high bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.line(name)
	if l.wire == high {
		return
	}
	l.wire = high
	if r := l.request; r != nil && !l.out {
		active := high != r.config.ActiveLow
		if active && r.config.Rising || !active && r.config.Falling {
			select {
			case r.events <- struct{}{}:
			default: // the kernel drops events that nobody fetches
			}
		}
	}
}

// Preset makes a line an output before anybody requests it, as a boot loader does.
func (k *Kernel) Preset(name string, high bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.line(name)
	l.out, l.level, l.notedOut = true, high, true
}

// Stick makes the line read as high or low whatever it drives, as a short does.
func (k *Kernel) Stick(name string, high bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.line(name).stuck = &high
}

// Fail makes the calls for a line fail; nil ends it.
func (k *Kernel) Fail(name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.line(name).fault = err
}

// Hold lets somebody else take the line as an output.
func (k *Kernel) Hold(name, consumer string) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.line(name)
	h := k.take(l, consumer, gpio.Config{Output: true})
	delete(k.open, h) // not of the process
	return func() { h.Close() }
}

// Kill closes all handles of the process, as its end does. Parked copies stay.
func (k *Kernel) Kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.open {
		h.close()
	}
}

func (k *Kernel) line(name string) *line {
	for _, c := range k.chips {
		for offset, n := range c.Lines {
			if n == name || name == fmt.Sprintf("%s %d", c.Label, offset) {
				return c.lines[offset]
			}
		}
	}
	panic("gpiotest: no line " + name)
}

func (l *line) name() string {
	if n := l.chip.Lines[l.offset]; n != "" {
		return n
	}
	return fmt.Sprintf("%s %d", l.chip.Label, l.offset)
}

func (l *line) state() State {
	switch {
	case !l.out:
		return In
	case l.level:
		return High
	}
	return Low
}

// change does something to a line and notes the edge, if it is one. The lock is held.
func (k *Kernel) change(l *line, what func()) {
	before := l.state()
	what()
	if after := l.state(); after != before {
		k.edges = append(k.edges, Edge{time.Now(), l.name(), before, after})
	}
}

// take makes a request. The lock is held.
func (k *Kernel) take(l *line, consumer string, c gpio.Config) *handle {
	l.request = &request{line: l, consumer: consumer, events: make(chan struct{}, 16)}
	l.notedOut = l.out // the kernel asks the chip when a line is requested
	h := k.copy(l.request)
	k.apply(l, c)
	return h
}

func (k *Kernel) copy(r *request) *handle {
	r.copies++
	h := &handle{kernel: k, request: r, gone: make(chan struct{})}
	k.open[h] = true
	return h
}

func (k *Kernel) apply(l *line, c gpio.Config) {
	l.request.config = c
	k.change(l, func() {
		switch {
		case c.Output:
			l.out, l.level = true, c.Active != c.ActiveLow
		case c.Input:
			l.out = false
		}
	})
	l.notedOut = l.out
}

// drop takes one copy of a request away. The lock is held.
func (k *Kernel) drop(r *request) {
	if r.copies--; r.copies > 0 {
		return
	}
	l := r.line
	l.request = nil
	if !l.chip.Persist {
		k.change(l, func() { l.out = false }) // and notedOut stays, as in Linux
	}
}

// Chips implements gpio.Kernel.
func (k *Kernel) Chips() ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, c := range k.chips {
		names = append(names, c.name)
	}
	return names, nil
}

// Open implements gpio.Kernel.
func (k *Kernel) Open(name string) (gpio.Chip, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.chips {
		if c.name == name {
			return &openChip{k, c, c.name}, nil
		}
	}
	return nil, os.ErrNotExist
}

// Adopt implements gpio.Kernel.
func (k *Kernel) Adopt(p gpio.Parked) (gpio.Handle, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	parked, ok := p.(*parked)
	if !ok || parked.closed {
		return nil, syscall.EBADF
	}
	return k.copy(parked.request), nil
}
