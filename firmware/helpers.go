package firmware

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/phone/appium"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/firmware/remembered"
	"phonerack/sync/wire"
)

// Bounds of work with the helper apps.
const (
	helpersLease = 3 * time.Minute         // that a start when the phone comes may take
	helpersStop  = 1200 * time.Millisecond // less than stopPart: whoever stops a slot waits for it
)

// helperPackages are the apps that a clean-up leaves alone, because a person wanted them there.
func (l *live) helperPackages() []string {
	if !l.wantsHelpers() {
		return nil
	}
	var ids []string
	for _, p := range appium.Packages() {
		for _, a := range p.Apps {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func (l *live) wantsHelpers() bool { return l.entry != nil && l.entry.Record().Helpers }

// startHelpers brings the helper server up where a person has installed it. Without it everything works, only slower and
// in plain ASCII; so a failure is logged.
func (l *live) startHelpers(ctx context.Context, fence phone.Fence) error {
	return l.phone.Still(ctx, func(ctx context.Context) error {
		if err := l.helper.Recover(ctx, fence); err != nil {
			return err
		}
		return l.helper.Start(ctx, fence)
	})
}

// helpersOnArrival starts the helpers of a phone that comes, under a lease of its own. Somebody who has the slot already
// starts them with his task. It returns at once when ctx ends, before within: a start that is cut takes down what it began,
// which may take longer than a slot has to stop. stopHelpers waits for it.
func (s *slot) helpersOnArrival(ctx, within context.Context, l *live) {
	if !l.wantsHelpers() {
		return
	}
	held, err := s.leases.Acquire(s.number, lease.Holder{Kind: lease.Recovery, Who: "helpers"}, helpersLease)
	if err != nil {
		s.log.Info("the helpers are not started now", "phone", l.serial, "err", err)
		return
	}
	started := make(chan struct{})
	l.starting = started
	go func() {
		defer close(started)
		defer held.Release()
		defer s.survive("the start of the helpers")
		if err := l.startHelpers(within, held); err != nil {
			s.log.Warn("the helpers do not run; the phone is used without them", "phone", l.serial, "err", err)
		}
	}()
	select {
	case <-started:
	case <-ctx.Done():
	}
}

// survive keeps a panic beside the owner from being more than this phone's.
func (s *slot) survive(what string) {
	if p := recover(); p != nil {
		s.log.Error(what+" panicked", "panic", p, "stack", string(debug.Stack()))
	}
}

// stopHelpers ends the server, or waits for a start that is being cut, while the connection is still there. What takes too
// long ends with the connection, which the caller closes next.
func (s *slot) stopHelpers(l *live) {
	if l.helper == nil || l.conn.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), helpersStop)
	defer cancel()
	if l.starting != nil {
		select {
		case <-l.starting:
		case <-ctx.Done():
		}
	}
	if !l.helper.Running() && ctx.Err() == nil {
		return
	}
	stopped := make(chan error, 1)
	go func() { stopped <- l.helper.Stop(ctx) }() // it has a bound of its own, which ctx does not shorten
	var err error
	select {
	case err = <-stopped:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.log.Info("the helpers were not stopped; the next connection does it", "phone", l.serial, "err", err)
	}
}

// HelperStatus implements action.Phone.
func (p readyPhone) HelperStatus(ctx context.Context) (action.HelperStatus, error) {
	status, err := p.helper.Status(ctx)
	if err != nil {
		return action.HelperStatus{}, p.explain(ctx, "read the helper apps", "", err)
	}
	told := action.HelperStatus{Wanted: p.wantsHelpers(), Supported: status.Supported, Running: status.Running}
	for _, a := range status.Apps {
		told.Apps = append(told.Apps, action.HelperApp{Package: a.ID, Installed: a.Present, Version: a.Version, Current: a.Pinned})
	}
	return told, nil
}

// InstallHelpers implements action.Phone: it installs the apps and starts the server.
func (p readyPhone) InstallHelpers(ctx context.Context, fence action.Fence) error {
	if p.helpers == "" {
		return wire.Refuse(wire.HelperFile, map[string]any{
			"file": appium.Packages()[0].Apps[0].File, "reason": "helpers.folder is not set in the configuration of this rack",
		})
	}
	if p.entry == nil {
		return wire.Refuse(wire.RackFull, nil)
	}
	// Wanted first: a crash in between leaves apps that a clean-up would else take for a task's.
	if err := p.entry.Update(func(r *remembered.Phone) { r.Helpers = true }); err != nil {
		return fullOr(err)
	}
	err := p.phone.Still(ctx, func(ctx context.Context) error {
		if err := p.helper.Install(ctx, fence, os.DirFS(p.helpers)); err != nil {
			return err
		}
		return p.helper.Start(ctx, fence)
	})
	if err != nil {
		p.forgetHelpers(ctx)
	}
	return p.explainHelpers(ctx, "install the helper apps", err)
}

// forgetHelpers takes back that the helpers are wanted if nothing of them is on the phone.
func (p readyPhone) forgetHelpers(ctx context.Context) {
	status, err := p.helper.Status(ctx)
	if err != nil || slices.ContainsFunc(status.Apps, func(a appium.Installed) bool { return a.Present }) {
		return
	}
	p.entry.Note(func(r *remembered.Phone) { r.Helpers = false })
}

// RemoveHelpers implements action.Phone.
func (p readyPhone) RemoveHelpers(ctx context.Context, fence action.Fence) error {
	err := p.phone.Still(ctx, func(ctx context.Context) error { return p.helper.Remove(ctx, fence) })
	if err == nil && p.entry != nil {
		err = p.entry.Update(func(r *remembered.Phone) { r.Helpers = false })
	}
	return p.explainHelpers(ctx, "remove the helper apps", err)
}

// explainHelpers names the helpers as what failed, unless the error says more.
func (p readyPhone) explainHelpers(ctx context.Context, what string, err error) error {
	err = p.explain(ctx, what, "", err)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*wire.Refusal](err); ok {
		return err
	}
	return wire.Refuse(wire.HelperFailed, map[string]any{"slot": p.slot, "serial": p.serial, "reason": err.Error()}).Because(err)
}
