package fleet

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// Bounds of the pictures in memory.
const (
	pictureTime  = 10 * time.Minute
	maxPictures  = 64
	pictureBytes = 32 << 20 // of all
)

// Pictures holds what screenshot commands have brought, for who asked: in memory alone, each for ten minutes, the
// newest 64 and 32 MiB at most. Of several replicas the one has it to which the rack's status came.
type Pictures struct {
	clock func() time.Time

	mu   sync.Mutex // guards kept
	kept []picture  // oldest first
}

type picture struct {
	tenant, command string
	until           time.Time
	data            []byte
}

func newPictures(clock func() time.Time) *Pictures { return &Pictures{clock: clock} }

// put keeps the picture of a command, in the place of an earlier one.
func (p *Pictures) put(tenant, command string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k picture) bool { return k.tenant == tenant && k.command == command })
	p.kept = append(p.kept, picture{tenant: tenant, command: command, until: p.clock().Add(pictureTime), data: bytes.Clone(data)})
	p.trim()
}

func (p *Pictures) get(tenant, command string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim()
	for i := range p.kept {
		if k := &p.kept[i]; k.tenant == tenant && k.command == command {
			return k.data, true
		}
	}
	return nil, false
}

// sweep forgets what is too old, also when nobody asks.
func (p *Pictures) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim()
}

// trim holds the bounds. mu is held.
func (p *Pictures) trim() {
	now, size, n := p.clock(), 0, len(p.kept)
	for n > 0 { // from the newest on
		k := p.kept[n-1]
		size += len(k.data)
		if size > pictureBytes || len(p.kept)-n >= maxPictures {
			break
		}
		n--
	}
	kept := make([]picture, 0, len(p.kept)-n)
	for _, k := range p.kept[n:] {
		if now.Before(k.until) {
			kept = append(kept, k)
		}
	}
	p.kept = kept
}
