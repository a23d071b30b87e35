package firmware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// How long an address that this machine does not have is waited for, between two tries: a DHCP server may answer late, or never.
const (
	firstListen   = time.Second
	longestListen = 30 * time.Second
)

// absent are the addresses that something is to be served at, and that this machine does not have now.
type absent struct {
	open func(ctx context.Context, address string) (net.Listener, error) // nil: the kernel

	mu  sync.Mutex
	all map[string]bool // those that are missing; guarded by mu
}

// listen opens an address for what is to be served. One that this machine does not have yet is waited for until ctx ends, which is no failure of what is to be
// served there. One that cannot be had for another reason is tried again by the supervisor.
func (a *absent) listen(ctx context.Context, log *slog.Logger, what, address string) (net.Listener, error) {
	open := a.open
	if open == nil {
		open = func(ctx context.Context, address string) (net.Listener, error) {
			var lc net.ListenConfig
			return lc.Listen(ctx, "tcp", address)
		}
	}
	defer a.note(address, false)
	for wait := firstListen; ; wait = min(2*wait, longestListen) {
		l, err := open(ctx, address)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("%s cannot be served because another program has the address %s: end that program, or choose another address: %w", what, address, err)
		case errors.Is(err, syscall.EACCES):
			return nil, fmt.Errorf("%s cannot be served because %s needs root or CAP_NET_BIND_SERVICE: give rackd that, or choose a port from 1024 on: %w", what, address, err)
		case !errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, fmt.Errorf("%s cannot be served: %w", what, err)
		}
		if a.note(address, true) {
			log.Warn("what is to be served waits: this machine does not have the address now; wait for the network, or correct the address", "what", what, "address", address)
		}
		pause(ctx, wait)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// note notes whether an address is missing, and tells whether that is new.
func (a *absent) note(address string, is bool) (anew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string]bool{}
	}
	anew = a.all[address] != is
	if a.all[address] = is; !is {
		delete(a.all, address)
	}
	return anew
}

func (a *absent) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.all))
}
