package frame

import (
	"context"
	"fmt"
	"runtime"
)

// sets are the buffer sets of the process: one for each processor, and one
// more, so that a processor finds work while another stream waits for its phone.
var sets = newPool(runtime.GOMAXPROCS(0) + 1)

// pool bounds how many pictures are made at once.
type pool struct {
	free   chan *set // nil until first used
	pixels int       // of a screen at most
}

// maxPixels bounds a screen, so that its bytes are bounded: 128 MiB. A screen of
// 7680x4320 is smaller.
const maxPixels = 32 << 20

func newPool(n int) *pool {
	p := &pool{free: make(chan *set, n), pixels: maxPixels}
	for range n {
		p.free <- nil
	}
	return p
}

// take waits for a set until ctx ends, then fails with ErrBusy.
func (p *pool) take(ctx context.Context) (*set, error) {
	select {
	case s := <-p.free:
		if s == nil {
			s = new(set)
		}
		return s, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a buffer: %w: %w", ErrBusy, ctx.Err())
	}
}

// give gives a set back. It does not block.
func (p *pool) give(s *set) {
	s.trim()
	p.free <- s
}
