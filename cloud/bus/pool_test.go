package bus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"phonerack/sync/wire"
)

func frameOf(rack, data string) Frame {
	return Frame{Topic: wire.Topic{Tenant: "t1", Rack: rack, Direction: wire.Up, Kind: wire.KindTask}, Data: []byte(data)}
}

// gate is a handler that waits for a word before it ends each frame.
type gate struct {
	mu      sync.Mutex
	started []string
	word    chan struct{}
}

func (g *gate) handle(_ context.Context, f Frame) {
	g.mu.Lock()
	g.started = append(g.started, string(f.Data))
	g.mu.Unlock()
	<-g.word
}

func (g *gate) seen() []string {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.started)
}

func TestRacksTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{word: make(chan struct{})}
		p := newPool(t.Context(), g.handle, 1, 100, 1<<20, false)
		for _, f := range []string{"a1", "a2", "a3", "b1", "c1"} {
			p.push(frameOf(f[:1], f), nil)
		}
		for range 5 {
			g.seen()
			g.word <- struct{}{}
		}
		if got, want := g.seen(), []string{"a1", "b1", "c1", "a2", "a3"}; !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
		<-p.shutdown()
	})
}

func TestOneRackHasOneWorkerUnlessParallel(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := &gate{word: make(chan struct{})}
			p := newPool(t.Context(), g.handle, 2, 100, 1<<20, parallel)
			for _, f := range []string{"a1", "a2", "a3"} {
				p.push(frameOf("a", f), nil)
			}
			want := 1
			if parallel {
				want = 2 // the workers
			}
			if got := g.seen(); len(got) != want {
				t.Errorf("parallel %t: %v run", parallel, got)
			}
			close(g.word)
			<-p.shutdown()
			if got := g.seen(); !slices.Equal(got, []string{"a1", "a2", "a3"}) && !parallel || len(got) != 3 {
				t.Errorf("parallel %t: handled %v", parallel, got)
			}
		})
	}
}

func TestPoolIsBounded(t *testing.T) {
	for _, c := range []struct {
		name         string
		queue, bytes int
		racks, each  int
		want         int // frames that get in, the running one too
	}{
		{"frames", 5, 1 << 20, 10, 1, 6},
		{"bytes", 100, 10, 10, 1, 5 + 1},
		{"of one rack", 1000, 1 << 20, 1, 200, perRack + 1},
		{"of one rack, and another's", 1000, 1 << 20, 2, 200, 2*perRack + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{word: make(chan struct{})}
				p := newPool(t.Context(), g.handle, 1, c.queue, c.bytes, false)
				p.push(frameOf("r0", "ab"), nil)
				g.seen() // it has left the queue
				in := 1
				for r := range c.racks {
					for range c.each {
						if p.push(frameOf(fmt.Sprint("r", r), "ab"), nil) {
							in++
						}
					}
				}
				if in != c.want {
					t.Errorf("%d frames got in, want %d", in, c.want)
				}
				close(g.word)
				<-p.shutdown()
				if n := len(g.seen()); n != in {
					t.Errorf("%d handled of %d", n, in)
				}
				if p.room != c.queue || p.bytes != c.bytes || len(p.lanes) != 0 {
					t.Errorf("left: room %d, bytes %d, %d lanes", p.room, p.bytes, len(p.lanes))
				}
			})
		})
	}
}

func TestFrameIsAcknowledgedWhenAWorkerTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{word: make(chan struct{})}
		p := newPool(t.Context(), g.handle, 1, 100, 1<<20, false)
		var acked []string
		for _, f := range []string{"a", "b"} {
			p.push(frameOf(f, f), func() { acked = append(acked, f) })
		}
		g.seen()
		if !slices.Equal(acked, []string{"a"}) {
			t.Errorf("acknowledged %v while a runs", acked)
		}
		close(g.word)
		<-p.shutdown()
		if p.push(frameOf("a", "late"), nil) {
			t.Error("a pool that is shut takes frames")
		}
	})
}
