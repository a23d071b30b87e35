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
	lanFree  = 16 // wrong PINs of a LAN's IPv6 before all its hosts wait together
)

// gate compares PINs, and lets nobody guess fast.
type gate struct {
	pin string

	mu  sync.Mutex
	all *rate.Limiter                  // tries from everywhere
	bad map[netip.Prefix]*wrongGuesses // guarded by mu
}

// wrongGuesses are those of one guesser.
type wrongGuesses struct {
	count int
	until time.Time // nothing is compared before
	last  time.Time
}

func newGate(pin string) *gate {
	return &gate{pin: pin, all: rate.NewLimiter(rate.Every(time.Minute/allTries), allTries), bad: map[netip.Prefix]*wrongGuesses{}}
}

// try lets a person in, or says why not. While somebody has to wait, the PIN is not even looked at: the right one does
// not tell itself by another answer. Who has a pass waits for the wrong PINs of that pass alone, and for nobody else's.
func (g *gate) try(from netip.Addr, held *pass, pin string) error {
	if g.pin == "" {
		return wire.Refuse(wire.PINUnset, nil)
	}
	who := guessers(from)
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(now)
	if wait := g.wait(now, who, held); wait > 0 {
		return waitFor(wait)
	}
	given, wanted := sha256.Sum256([]byte(strings.TrimSpace(pin))), sha256.Sum256([]byte(g.pin))
	if subtle.ConstantTimeCompare(given[:], wanted[:]) == 1 {
		for _, one := range who {
			delete(g.bad, one.from)
		}
		if held != nil {
			held.wrong = wrongGuesses{}
		}
		return nil
	}
	if held != nil {
		held.wrong.add(now, 0)
		return wire.Refuse(wire.PINWrong, nil)
	}
	for _, one := range who {
		known := g.bad[one.from]
		if known == nil {
			known = &wrongGuesses{}
			g.bad[one.from] = known
		}
		known.add(now, one.free)
	}
	return wire.Refuse(wire.PINWrong, nil)
}

// wait is how long a try has to wait; if it has not, it is taken from those of all. g.mu is held.
func (g *gate) wait(now time.Time, who []guesser, held *pass) time.Duration {
	if held != nil {
		return held.wrong.until.Sub(now)
	}
	for _, one := range who {
		if known := g.bad[one.from]; known != nil && now.Before(known.until) {
			return known.until.Sub(now)
		}
	}
	r := g.all.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// add counts a wrong PIN. The first ones make nobody wait.
func (g *wrongGuesses) add(now time.Time, free int) {
	if g.last = now; g.count >= free {
		g.until = now.Add(min(firstWait<<min(g.count-free, 20), longestWait))
	}
	g.count++
}

func waitFor(d time.Duration) error {
	return wire.Refuse(wire.PINWait, map[string]any{"seconds": int((d + time.Second - 1) / time.Second)}).After(d)
}

// sweep forgets old ones, and makes room. The bound of all tries holds for who was forgotten. g.mu is held.
func (g *gate) sweep(now time.Time) {
	var oldest netip.Prefix
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

// guesser is whose wrong PINs are counted together, and how many of them make nobody wait.
type guesser struct {
	from netip.Prefix
	free int
}

// lan stands for all hosts with link-local and unique local addresses of IPv6 together.
var lan = netip.MustParsePrefix("fe80::/10")

// guessers are those that a try is counted for. Of IPv4 that is the address: there are few, and a host that takes many is held by the
// bound of all tries. Of IPv6 it is the network, in which a host may take any address. But all technicians of a rack's LAN are in one
// network with their link-local (fe80::/10) and unique local (fc00::/7) addresses, and one of them must not lock out the others. So there
// each address waits for its own wrong PINs, and from the 17th within an hour all of the LAN wait together as one address does: who takes
// a new address for each guess has gained these few. A right PIN ends both. Networks of global addresses are somebody's own.
func guessers(a netip.Addr) []guesser {
	a = a.Unmap().WithZone("")
	own := guesser{from: netip.PrefixFrom(a, a.BitLen())}
	switch {
	case a.Is4(), !a.IsValid():
		return []guesser{own}
	case a.IsLinkLocalUnicast(), a.IsPrivate():
		return []guesser{own, {from: lan, free: lanFree}}
	}
	return []guesser{{from: netip.PrefixFrom(network(a), 64)}}
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
