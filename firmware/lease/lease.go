package lease

import (
	"time"

	"phonerack/sync/wire"
)

// Check returns nil while the lease is the slot's valid one, else not_leased. It implements phone.Fence.
func (l *Lease) Check() error {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.table.sweepSlot(l.slot)
	if l.ended || l.table.current(l.slot) != l {
		return wire.Refuse(wire.NotLeased, map[string]any{"slot": l.slot})
	}
	return nil
}

// Renew moves the end of a lease that has not ended to d from now. A covered hold may be renewed too.
func (l *Lease) Renew(d time.Duration) error {
	if err := l.table.checkTerm(l.holder, d); err != nil {
		return err
	}
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.table.sweepSlot(l.slot)
	if l.ended {
		return wire.Refuse(wire.NotLeased, map[string]any{"slot": l.slot})
	}
	l.until = l.table.options.Now() + d
	l.table.notify(l.slot)
	return nil
}

// Release ends the lease. Releasing twice does nothing.
func (l *Lease) Release() {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.table.end(l)
}

// Done is closed when the lease was released or found expired.
func (l *Lease) Done() <-chan struct{} { return l.done }

// State is the lease as others see it.
func (l *Lease) State() State {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	return l.table.state(l)
}
