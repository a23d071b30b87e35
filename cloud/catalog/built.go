package catalog

import (
	"sync"
	"time"

	"phonerack/cloud/enroll"
)

// Bounds of the manifests that are kept for their next pages.
const (
	builtTime  = 5 * time.Minute
	builtBytes = 32 << 20
)

// built holds manifests of several pages for the racks that are fetching them, the oldest first.
type built struct {
	clock func() time.Time

	mu    sync.Mutex // guards what follows
	all   []kept
	bytes int
}

type kept struct {
	rack enroll.Caller
	m    *signed
	at   time.Time
}

func (b *built) get(rack enroll.Caller, first mark) *signed {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
	for _, k := range b.all {
		if k.rack == rack && k.m.mark == first {
			return k.m
		}
	}
	return nil
}

// put keeps a manifest in place of the rack's former one.
func (b *built) put(rack enroll.Caller, m *signed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := kept{rack, m, b.clock()}
	for i, k := range b.all {
		if k.rack == rack {
			b.drop(i)
			break
		}
	}
	b.all = append(b.all, kept)
	b.bytes += len(m.raw)
	b.sweep()
}

// sweep drops what is old, and the oldest while there is too much.
func (b *built) sweep() {
	for len(b.all) > 0 && (b.bytes > builtBytes || b.clock().Sub(b.all[0].at) > builtTime) {
		b.drop(0)
	}
}

func (b *built) drop(i int) {
	b.bytes -= len(b.all[i].m.raw)
	b.all = append(b.all[:i], b.all[i+1:]...)
}
