package status

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"phonerack/sync/wire"
)

// Bounds of guessing. With six digits and at most 10 tries a minute from everywhere together, half of all PINs take 34 days.
const (
	firstWait   = time.Second
	longestWait = 5 * time.Minute
	forgetAfter = time.Hour // without a wrong PIN from there
	maxGuessers = 256       // addresses that are remembered

	allTries = 10 // in a minute, from everywhere together
)

// gate compares PINs, and lets nobody guess fast.
type gate struct {
	pin string

	mu  sync.Mutex
	all *rate.Limiter                // tries from everywhere
	bad map[netip.Addr]*wrongGuesses // guarded by mu
}

// wrongGuesses are those of one address.
type wrongGuesses struct {
	count int
	until time.Time // nothing is compared before
	last  time.Time
}

func newGate(pin string) *gate {
	return &gate{pin: pin, all: rate.NewLimiter(rate.Every(time.Minute/allTries), allTries), bad: map[netip.Addr]*wrongGuesses{}}
}

// try lets a person in, or says why not. While somebody has to wait, the PIN is not even looked at: the right one does
// not tell itself by another answer.
func (g *gate) try(from netip.Addr, pin string) error {
	if g.pin == "" {
		return wire.Refuse(wire.PINUnset, nil)
	}
	from = network(from)
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	guesser := g.bad[from]
	if guesser != nil && now.Before(guesser.until) {
		return waitFor(guesser.until.Sub(now))
	}
	if r := g.all.ReserveN(now, 1); r.DelayFrom(now) > 0 {
		wait := r.DelayFrom(now)
		r.CancelAt(now)
		return waitFor(wait)
	}
	given, wanted := sha256.Sum256([]byte(strings.TrimSpace(pin))), sha256.Sum256([]byte(g.pin))
	if subtle.ConstantTimeCompare(given[:], wanted[:]) == 1 {
		delete(g.bad, from)
		return nil
	}
	if guesser == nil {
		guesser = &wrongGuesses{}
		g.bad[from] = guesser
	}
	guesser.until, guesser.last = now.Add(min(firstWait<<min(guesser.count, 20), longestWait)), now
	guesser.count++
	return wire.Refuse(wire.PINWrong, nil)
}

func waitFor(d time.Duration) error {
	return wire.Refuse(wire.PINWait, map[string]any{"seconds": int((d + time.Second - 1) / time.Second)}).After(d)
}

// sweep forgets old ones, and makes room. The bound of all tries holds for who was forgotten. g.mu is held.
func (g *gate) sweep(now time.Time) {
	var oldest netip.Addr
	for from, one := range g.bad {
		if now.Sub(one.last) >= forgetAfter {
			delete(g.bad, from)
		} else if o := g.bad[oldest]; o == nil || one.last.Before(o.last) {
			oldest = from
		}
	}
	if len(g.bad) >= maxGuessers {
		delete(g.bad, oldest)
	}
}

// network is what one person is known by: an address, of IPv6 the network, in which a host may take any address.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
