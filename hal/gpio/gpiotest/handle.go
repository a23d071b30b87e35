package gpiotest

import (
	"os"
	"sync"
	"syscall"
	"time"

	"phonerack/hal/gpio"
)

type openChip struct {
	kernel *Kernel
	chip   *chip
	name   string // when it was opened
}

func (c *openChip) Name() string  { return c.name }
func (c *openChip) Label() string { return c.chip.Label }
func (c *openChip) Lines() int    { return len(c.chip.lines) }
func (c *openChip) Close() error  { return nil }

func (c *openChip) Info(offset int) (gpio.Info, error) {
	c.kernel.mu.Lock()
	defer c.kernel.mu.Unlock()
	if offset < 0 || offset >= len(c.chip.lines) {
		return gpio.Info{}, syscall.EINVAL
	}
	l := c.chip.lines[offset]
	info := gpio.Info{Name: c.chip.Chip.Lines[offset], Output: l.notedOut}
	if l.request != nil {
		info.Used, info.Consumer, info.ActiveLow = true, l.request.consumer, l.request.config.ActiveLow
	}
	return info, nil
}

func (c *openChip) Request(offset int, consumer string, config gpio.Config) (gpio.Handle, error) {
	c.kernel.mu.Lock()
	defer c.kernel.mu.Unlock()
	if offset < 0 || offset >= len(c.chip.lines) || len(consumer) > 31 || config.Output && config.Input {
		return nil, syscall.EINVAL
	}
	l := c.chip.lines[offset]
	switch {
	case l.fault != nil:
		return nil, l.fault
	case l.request != nil:
		return nil, syscall.EBUSY
	}
	return c.kernel.take(l, consumer, config), nil
}

// handle is one copy of a request.
type handle struct {
	kernel  *Kernel
	request *request
	closed  bool          // guarded by kernel.mu
	gone    chan struct{} // closed by close
}

// with runs f with the lock, unless the handle is closed or the line is made to fail.
func (h *handle) with(f func(l *line) error) error {
	h.kernel.mu.Lock()
	defer h.kernel.mu.Unlock()
	switch {
	case h.closed:
		return os.ErrClosed
	case h.request.line.fault != nil:
		return h.request.line.fault
	}
	return f(h.request.line)
}

func (h *handle) Value() (active bool, err error) {
	err = h.with(func(l *line) error {
		level := l.wire
		if l.out {
			level = l.level
		}
		if l.stuck != nil {
			level = *l.stuck
		}
		active = level != h.request.config.ActiveLow
		return nil
	})
	return active, err
}

func (h *handle) Set(active bool) error {
	return h.with(func(l *line) error {
		if !h.request.config.Output {
			return syscall.EPERM
		}
		h.kernel.change(l, func() { l.level = active != h.request.config.ActiveLow })
		return nil
	})
}

func (h *handle) Configure(c gpio.Config) error {
	return h.with(func(l *line) error {
		if c.Output && c.Input || (c.Rising || c.Falling) && !c.Input {
			return syscall.EINVAL
		}
		h.kernel.apply(l, c)
		for c.Input && len(h.request.events) > 0 {
			<-h.request.events
		}
		return nil
	})
}

func (h *handle) Event(timeout time.Duration) error {
	var late <-chan time.Time
	if timeout >= 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-h.request.events:
		return nil
	case <-h.gone:
		return os.ErrClosed
	case <-late:
		return os.ErrDeadlineExceeded
	}
}

func (h *handle) Place() (p gpio.Place, ok bool, err error) {
	err = h.with(func(l *line) error {
		p, ok = gpio.Place{Chip: l.chip.name, Offset: l.offset}, !l.chip.Secret
		return nil
	})
	if !ok {
		p = gpio.Place{}
	}
	return p, ok, err
}

func (h *handle) Park() (p gpio.Parked, err error) {
	err = h.with(func(*line) error {
		h.request.copies++
		h.kernel.fds++
		p = &parked{kernel: h.kernel, request: h.request, fd: h.kernel.fds}
		return nil
	})
	return p, err
}

func (h *handle) Close() error {
	h.kernel.mu.Lock()
	defer h.kernel.mu.Unlock()
	h.close()
	return nil
}

// close is Close with the lock held.
func (h *handle) close() {
	if !h.closed {
		h.closed = true
		close(h.gone)
		delete(h.kernel.open, h)
		h.kernel.drop(h.request)
	}
}

// parked is a copy that Kill leaves open.
type parked struct {
	kernel  *Kernel
	request *request
	fd      uintptr
	closed  bool // guarded by kernel.mu
}

func (p *parked) Fd() uintptr { return p.fd }

func (p *parked) Close() error {
	p.kernel.mu.Lock()
	defer p.kernel.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.kernel.drop(p.request)
	}
	return nil
}

// Store keeps parked handles over the end of a process, as systemd's descriptor store does.
type Store struct {
	mu   sync.Mutex
	kept map[string]gpio.Parked
}

// Put keeps a handle; one of the same name is dropped.
func (s *Store) Put(name string, p gpio.Parked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]gpio.Parked{}
	}
	if old := s.kept[name]; old != nil {
		old.Close()
	}
	s.kept[name] = p
}

// Hand gives copies of what is kept, as a new process gets them.
func (s *Store) Hand() map[string]gpio.Parked {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]gpio.Parked{}
	for name, p := range s.kept {
		if p, ok := p.(*parked); ok {
			p.kernel.mu.Lock()
			p.request.copies++
			p.kernel.fds++
			out[name] = &parked{kernel: p.kernel, request: p.request, fd: p.kernel.fds}
			p.kernel.mu.Unlock()
		}
	}
	return out
}

// Drop forgets a handle, as FDSTOREREMOVE=1 does.
func (s *Store) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.kept[name]; p != nil {
		p.Close()
		delete(s.kept, name)
	}
}
