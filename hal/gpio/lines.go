package gpio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"periph.io/x/conn/v3/gpio"
)

// maxConsumer is the kernel's room for who holds a line, in bytes, less the zero.
const maxConsumer = 31

// Spec names a line: by Name, or by Chip, which is a chip's label, and Offset.
type Spec struct {
	Name      string
	Chip      string
	Offset    int
	ActiveLow bool
	// Consumer is what gpioinfo shows as the line's holder, at most 31 bytes. It must be unique: a
	// parked handle is recognised by it, and it is the name under which the handle is parked.
	Consumer string
}

// String names the line as gpioinfo shows it.
func (s Spec) String() string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprintf("%s %d", s.Chip, s.Offset)
}

// Errors that callers decide on.
var (
	ErrNotFound  = errors.New("there is no such GPIO line")
	ErrAmbiguous = errors.New("several GPIO lines are called so")
	ErrForeign   = errors.New("the parked handle is of another line")
	ErrRole      = errors.New("the pin has the other direction")
)

// BusyError says who holds a line.
type BusyError struct {
	Line     string
	Consumer string // "" when the kernel does not know
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Consumer == "" {
		return fmt.Sprintf("GPIO line %s is held by somebody who gave no name: gpioinfo and fuser /dev/gpiochip* may tell", e.Line)
	}
	return fmt.Sprintf("GPIO line %s is held by %q: end that first", e.Line, e.Consumer)
}

// Lines finds and requests lines. It is safe for use by several goroutines.
type Lines struct {
	kernel Kernel

	mu     sync.Mutex        // guards parked
	parked map[string]Parked // by consumer
}

// New takes the kernel, &Cdev{} outside tests, and the files of handles that an earlier process has
// parked, by their names; nil for none. The files that nobody asks for stay open and are in Leftover.
func New(kernel Kernel, parked map[string]Parked) *Lines {
	l := &Lines{kernel: kernel, parked: map[string]Parked{}}
	for name, p := range parked {
		l.parked[name] = p
	}
	return l
}

// Leftover names the parked handles that no line has asked for, in order: their store should drop them.
func (l *Lines) Leftover() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.parked {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Initial is the value that an output begins with.
type Initial struct {
	Active bool
	// Keep leaves a line that is an output already, or whose handle was parked, at the level that it
	// has. Active then is for a line that drives nothing yet.
	Keep bool
}

// Output takes a line as an output. No edge is caused but the one, if any, from the line's level to the
// initial one. A line that somebody else holds gives a BusyError.
func (l *Lines) Output(s Spec, initial Initial) (*Pin, error) {
	chip, offset, err := l.find(s)
	if err != nil {
		return nil, err
	}
	defer chip.Close()
	p := &Pin{spec: s, chip: chip.Label(), offset: offset, output: true}
	if p.handle, err = l.adopt(chip, offset, s); err != nil {
		return nil, err
	}
	p.adopted = p.handle != nil
	if !p.adopted {
		c := Config{Output: true, Active: initial.Active, ActiveLow: s.ActiveLow}
		if initial.Keep {
			c = Config{ActiveLow: s.ActiveLow} // as it is: the level is asked for before it is driven
		}
		if p.handle, err = request(chip, offset, s, c); err != nil {
			return nil, err
		}
	}
	if p.wanted = initial.Active; p.adopted || initial.Keep {
		if err := p.takeOver(chip, initial); err != nil {
			return nil, errors.Join(fmt.Errorf("take GPIO line %s over: %w", s, err), p.handle.Close())
		}
	}
	return p, nil
}

// takeOver makes a line that was there before us an output with the wanted value. The kernel's word on its
// direction is good only while it is requested: afterwards it remembers outputs that the chip has let go.
func (p *Pin) takeOver(chip Chip, initial Initial) error {
	info, err := chip.Info(p.offset)
	if err != nil {
		return err
	}
	if info.Output && initial.Keep {
		if p.wanted, err = p.handle.Value(); err != nil {
			return err
		}
		// The value was read under the polarity of whoever requested the line.
		p.wanted = p.wanted != (info.ActiveLow != p.spec.ActiveLow)
	}
	return p.handle.Configure(Config{Output: true, Active: p.wanted, ActiveLow: p.spec.ActiveLow})
}

// Input takes a line as an input without edges; In asks for those.
func (l *Lines) Input(s Spec, pull gpio.Pull) (*Pin, error) {
	chip, offset, err := l.find(s)
	if err != nil {
		return nil, err
	}
	defer chip.Close()
	p := &Pin{spec: s, chip: chip.Label(), offset: offset, pull: pull}
	p.handle, err = request(chip, offset, s, Config{Input: true, ActiveLow: s.ActiveLow, Pull: biases[pull]})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func request(chip Chip, offset int, s Spec, c Config) (Handle, error) {
	h, err := chip.Request(offset, consumer(s), c)
	if errors.Is(err, syscall.EBUSY) {
		busy := &BusyError{Line: s.String()}
		if info, err := chip.Info(offset); err == nil {
			busy.Consumer = info.Consumer
		}
		return nil, busy
	}
	if err != nil {
		return nil, fmt.Errorf("request GPIO line %s: %w", s, err)
	}
	return h, nil
}

// consumer is who the kernel says holds the line.
func consumer(s Spec) string {
	c := s.Consumer
	if c == "" {
		c = "phonerack"
	}
	return c[:min(len(c), maxConsumer)]
}

// adopt gives the parked handle of the line, nil when there is none. A handle of that name that is not
// of this line is closed and reported: its store has to drop it before the line can be taken.
func (l *Lines) adopt(chip Chip, offset int, s Spec) (Handle, error) {
	l.mu.Lock()
	p, ok := l.parked[consumer(s)]
	delete(l.parked, consumer(s))
	l.mu.Unlock()
	if !ok {
		return nil, nil
	}
	defer p.Close() // the handle is a copy
	h, err := l.kernel.Adopt(p)
	if err != nil {
		return nil, fmt.Errorf("adopt the parked handle of GPIO line %s: %w", s, err)
	}
	if err := confirm(chip, offset, s, h); err != nil {
		return nil, errors.Join(fmt.Errorf("adopt the parked handle of GPIO line %s: %w", s, err), h.Close())
	}
	return h, nil
}

// confirm asks the kernel whether a handle is of this line, and ours. A kernel that does not tell which
// line a handle is of (before Linux 6.1) still tells who holds the line: the name is ours alone.
func confirm(chip Chip, offset int, s Spec, h Handle) error {
	info, err := chip.Info(offset)
	if err != nil {
		return err
	}
	if !info.Used || info.Consumer != consumer(s) {
		return fmt.Errorf("%w: line %s is held by %q", ErrForeign, s, info.Consumer)
	}
	place, told, err := h.Place()
	if err != nil {
		return err
	}
	if told && place != (Place{chip.Name(), offset}) {
		return fmt.Errorf("%w: it is of line %d of %s", ErrForeign, place.Offset, place.Chip)
	}
	if !info.Output {
		return fmt.Errorf("%w: line %s is an input", ErrForeign, s)
	}
	_, err = h.Value()
	return err
}

// find opens the chip that has the line; the caller closes it.
func (l *Lines) find(s Spec) (found Chip, offset int, err error) {
	names, err := l.kernel.Chips()
	if err != nil {
		return nil, 0, fmt.Errorf("list GPIO chips: %w", err)
	}
	var labels, hits []string
	for _, name := range names {
		chip, err := l.kernel.Open(name)
		if err != nil {
			continue // gone, or not ours to open: the line is then not found, which says more
		}
		labels = append(labels, chip.Label())
		o, ok := holds(chip, s)
		if ok {
			hits = append(hits, chip.Label())
		}
		if !ok || found != nil {
			chip.Close()
			continue
		}
		found, offset = chip, o
	}
	switch {
	case len(hits) == 1:
		return found, offset, nil
	case len(hits) > 1:
		found.Close()
		return nil, 0, fmt.Errorf("%w: %s is on chips %s; name it by a chip's label and an offset", ErrAmbiguous, s, strings.Join(hits, ", "))
	case len(labels) == 0:
		return nil, 0, fmt.Errorf("%w: %s; this board has no GPIO chip that can be opened", ErrNotFound, s)
	}
	return nil, 0, fmt.Errorf("%w: %s; the chips are %s, and gpioinfo lists their lines", ErrNotFound, s, strings.Join(labels, ", "))
}

// holds looks for the line on a chip. Two lines of one name on one chip: the first is meant, as with gpiofind.
func holds(chip Chip, s Spec) (offset int, ok bool) {
	if s.Name == "" {
		return s.Offset, chip.Label() == s.Chip && s.Offset >= 0 && s.Offset < chip.Lines()
	}
	for o := range chip.Lines() {
		if info, err := chip.Info(o); err == nil && info.Name == s.Name {
			return o, true
		}
	}
	return 0, false
}
