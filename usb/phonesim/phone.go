package phonesim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Reasons for ServeStream and ServeRedir to return that are no failure of the host.
var (
	// ErrUnplugged: Phone.Unplug was called or a fault pulled the cable.
	ErrUnplugged = errors.New("phonesim: unplugged")
	// ErrRebooting: the phone was told to reboot. ServeRedir does not return it but waits and plugs in again.
	ErrRebooting = errors.New("phonesim: rebooting")
)

// Phone is a simulated phone. It may serve several connections; all of them reach the same daemon, as
// if it had a USB socket and a network.
type Phone struct {
	config  Config
	release release
	log     *slog.Logger
	backend func(context.Context, link) (backend, error)
	faults  faultState
	keys    keyring

	mu         sync.Mutex // guards what follows
	violations []Violation
	plugs      map[*plug]struct{}
	running    []*daemon // of links that are up
	upAt       time.Time // when the last reboot is over
}

// link carries messages to the host.
type link interface {
	// queue hands over a message and does not block. If sent is set it runs just before the first byte leaves;
	// it must not block or take locks.
	queue(m message, sent func())
	// dropQueued forgets the messages that the host has not begun to fetch, where the link can.
	dropQueued()
	// end ends the link with an error.
	end(err error)
}

// backend takes the messages of one host from the time that a link is there until it ends.
type backend interface {
	// receive takes a message; it does not block. An error ends the link.
	receive(m message) error
	// limit is the longest payload that it takes now, in bytes.
	limit() int
	// wait returns when everything has ended that the backend started. The context given to its constructor ends it.
	wait()
}

// plug is one stay of the phone on a link.
type plug struct {
	ctx context.Context
	end context.CancelCauseFunc
}

// plugIn registers a stay. It waits for the end of a reboot.
func (p *Phone) plugIn(ctx context.Context) (*plug, error) {
	p.mu.Lock()
	wait := time.Until(p.upAt)
	p.mu.Unlock()
	if err := sleep(ctx, wait); err != nil {
		return nil, err
	}
	s := &plug{}
	s.ctx, s.end = context.WithCancelCause(ctx)
	p.mu.Lock()
	p.plugs[s] = struct{}{}
	p.mu.Unlock()
	return s, nil
}

// plugOut ends a stay and forgets it.
func (p *Phone) plugOut(s *plug) {
	s.end(nil)
	p.mu.Lock()
	delete(p.plugs, s)
	p.mu.Unlock()
}

// endPlugs ends all stays.
func (p *Phone) endPlugs(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.plugs {
		s.end(err)
	}
}

// Unplug ends all connections of the phone: ServeStream and ServeRedir return ErrUnplugged.
func (p *Phone) Unplug() { p.endPlugs(ErrUnplugged) }

// Reboot takes the phone away and brings it back after Config.RebootDelay, as the commands do that reboot a phone.
// target is what it boots into, "" for Android.
func (p *Phone) Reboot(target string) {
	p.log.Info("rebooting", "target", target)
	p.mu.Lock()
	p.upAt = time.Now().Add(p.config.RebootDelay)
	p.mu.Unlock()
	if p.config.OnReboot != nil {
		p.config.OnReboot(target)
	}
	p.endPlugs(ErrRebooting)
}

// daemons are those of links that are up.
func (p *Phone) daemons() []*daemon {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.running)
}

// started and ended keep the list of daemons.
func (p *Phone) started(d *daemon) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, d)
}

func (p *Phone) ended(d *daemon) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(o *daemon) bool { return o == d })
}

// SetFaults replaces what is wrong with the phone and starts the counts anew.
func (p *Phone) SetFaults(f Faults) { p.faults.set(f) }

// Faults returns what is wrong with the phone.
func (p *Phone) Faults() Faults { return p.faults.get() }

// Violations returns the rules that hosts have broken so far, oldest first.
func (p *Phone) Violations() []Violation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.violations)
}

// maxViolations bounds the record: a host that breaks a rule with each transfer has made its point.
const maxViolations = 1000

// record notes a rule that was broken.
func (p *Phone) record(v *Violation) {
	p.log.Warn("host broke a rule", "rule", v.Rule, "detail", v.Detail)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.violations) < maxViolations {
		p.violations = append(p.violations, *v)
	}
}

// recordError notes err if it is a broken rule.
func (p *Phone) recordError(err error) {
	var v *Violation
	if errors.As(err, &v) {
		p.record(v)
	}
}
