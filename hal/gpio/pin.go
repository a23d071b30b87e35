package gpio

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/pin"
)

var biases = map[gpio.Pull]Pull{gpio.Float: PullNone, gpio.PullUp: PullUp, gpio.PullDown: PullDown} // PullNoChange: PullKeep

// Pin is a line that was requested; it implements gpio.PinIO and pin.PinFunc. gpio.High means active.
// What was requested as an output stays one: In refuses, as Out does for an input.
type Pin struct {
	spec    Spec
	chip    string // label
	offset  int
	output  bool
	adopted bool

	mu     sync.Mutex // guards the following, not the waiting for edges
	handle Handle
	wanted bool // last value that was set
	pull   gpio.Pull
	closed bool
	setups int // calls of In and Halt: they end a WaitForEdge
}

var (
	_ gpio.PinIO  = (*Pin)(nil)
	_ pin.PinFunc = (*Pin)(nil)
)

// String implements conn.Resource.
func (p *Pin) String() string { return p.spec.String() }

// Name implements pin.Pin: the line's name, or its chip's label and offset.
func (p *Pin) Name() string { return p.spec.String() }

// Number implements pin.Pin: the line's offset in its chip.
func (p *Pin) Number() int { return p.offset }

// Adopted reports whether the line came from a parked handle.
func (p *Pin) Adopted() bool { return p.adopted }

// Function implements pin.Pin.
func (p *Pin) Function() string { return string(p.Func()) }

// Func implements pin.PinFunc. It asks the kernel for nothing but the value.
func (p *Pin) Func() pin.Func {
	switch level := p.Read(); {
	case p.output && level == gpio.High:
		return gpio.OUT_HIGH
	case p.output:
		return gpio.OUT_LOW
	case level == gpio.High:
		return gpio.IN_HIGH
	}
	return gpio.IN_LOW
}

// SupportedFuncs implements pin.PinFunc.
func (p *Pin) SupportedFuncs() []pin.Func {
	if p.output {
		return []pin.Func{gpio.OUT}
	}
	return []pin.Func{gpio.IN}
}

// SetFunc implements pin.PinFunc: the function is chosen when the line is requested.
func (p *Pin) SetFunc(f pin.Func) error {
	for _, have := range p.SupportedFuncs() {
		if f == have {
			return nil
		}
	}
	return fmt.Errorf("make GPIO line %s %s: %w", p, f, ErrRole)
}

// Out implements gpio.PinOut. It sets the value and nothing else: the line is an output already.
func (p *Pin) Out(level gpio.Level) error {
	if !p.output {
		return fmt.Errorf("drive GPIO line %s: %w", p, ErrRole)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("drive GPIO line %s: %w", p, os.ErrClosed)
	}
	if err := p.handle.Set(bool(level)); err != nil {
		return fmt.Errorf("drive GPIO line %s: %w", p, err)
	}
	p.wanted = bool(level)
	return nil
}

// PWM implements gpio.PinOut; the character device has none.
func (p *Pin) PWM(gpio.Duty, physic.Frequency) error {
	return fmt.Errorf("GPIO line %s has no PWM", p)
}

// Level asks the kernel for the line's value, which on most chips is that of the wire and not what was
// set: an output that is held by something stronger shows here.
func (p *Pin) Level() (gpio.Level, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return gpio.Level(p.wanted), fmt.Errorf("read GPIO line %s: %w", p, os.ErrClosed)
	}
	active, err := p.handle.Value()
	if err != nil {
		return gpio.Level(p.wanted), fmt.Errorf("read GPIO line %s: %w", p, err)
	}
	return gpio.Level(active), nil
}

// Read implements gpio.PinIn. It never changes the direction. Where the kernel does not answer it is the
// value that was set last; Level tells the two apart.
func (p *Pin) Read() gpio.Level {
	level, _ := p.Level()
	return level
}

// Wanted is the value that was set last, without a question to the kernel.
func (p *Pin) Wanted() gpio.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	return gpio.Level(p.wanted)
}

// In implements gpio.PinIn for a line that was requested as an input. Edges that came before are forgotten.
func (p *Pin) In(pull gpio.Pull, edge gpio.Edge) error {
	if p.output {
		return fmt.Errorf("make GPIO line %s an input: %w", p, ErrRole)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("set GPIO line %s up: %w", p, os.ErrClosed)
	}
	err := p.handle.Configure(Config{
		Input: true, ActiveLow: p.spec.ActiveLow, Pull: biases[pull],
		Rising: edge == gpio.RisingEdge || edge == gpio.BothEdges, Falling: edge == gpio.FallingEdge || edge == gpio.BothEdges,
	})
	if err != nil {
		return fmt.Errorf("set GPIO line %s up: %w", p, err)
	}
	p.pull = pull
	p.setups++
	return nil
}

// waitSlice bounds how long WaitForEdge does not notice that In or Halt was called.
const waitSlice = time.Second

// WaitForEdge implements gpio.PinIn; a negative timeout waits until an edge, In, Halt or Close. One
// goroutine at a time may wait.
func (p *Pin) WaitForEdge(timeout time.Duration) bool {
	p.mu.Lock()
	h, setups, closed := p.handle, p.setups, p.closed
	p.mu.Unlock()
	end := time.Now().Add(timeout)
	for !closed && !p.output {
		slice := waitSlice
		if timeout >= 0 {
			slice = min(slice, max(time.Until(end), 0))
		}
		err := h.Event(slice)
		if err == nil {
			return true
		}
		p.mu.Lock()
		changed := p.setups != setups || p.closed
		p.mu.Unlock()
		if changed || !errors.Is(err, os.ErrDeadlineExceeded) || timeout >= 0 && !time.Now().Before(end) {
			return false
		}
	}
	return false
}

// Pull implements gpio.PinIn.
func (p *Pin) Pull() gpio.Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pull
}

// DefaultPull implements gpio.PinIn; the character device does not tell.
func (p *Pin) DefaultPull() gpio.Pull { return gpio.PullNoChange }

// Halt implements conn.Resource. It ends a WaitForEdge and leaves the line as it is.
func (p *Pin) Halt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setups++
	return nil
}

// Park copies the line's handle for a store that outlives this process, under the name by which
// New takes it back. The caller closes the copy when the store has its own.
func (p *Pin) Park() (name string, copied Parked, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", nil, fmt.Errorf("park GPIO line %s: %w", p, os.ErrClosed)
	}
	copied, err = p.handle.Park()
	if err != nil {
		return "", nil, fmt.Errorf("park GPIO line %s: %w", p, err)
	}
	return consumer(p.spec), copied, nil
}

// Close gives the handle back and leaves the value. What the chip's driver does with a line that nobody
// holds is its own affair (package comment); a parked copy keeps the line held.
func (p *Pin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.handle.Close()
}
