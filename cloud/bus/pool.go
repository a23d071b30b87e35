package bus

import (
	"context"
	"sync"
)

// perRack bounds what waits of one rack in one pool, so that a rack gone mad costs the others nothing.
const perRack = 64

// pool runs a handler for the frames of one kind. Racks take turns. Taking a frame in never blocks: the goroutines that
// do it also answer the broker's pings.
type pool struct {
	handle   Handler
	ctx      context.Context // what handlers get
	workers  int
	perRack  int
	parallel bool // frames of one rack may run side by side

	mu      sync.Mutex // guards what follows
	room    int        // frames that may still wait
	bytes   int        // their bytes
	lanes   map[string]*lane
	ready   []*lane // lanes with a frame that may run, in turn
	running int
	shut    bool
	idle    chan struct{} // closed when shut and nothing waits or runs
}

// lane is what waits of one rack.
type lane struct {
	rack   string
	frames []waiting
	queued bool // it stands in ready
	busy   bool // a handler runs a frame of it; parallel lanes are never busy
}

type waiting struct {
	frame Frame
	taken func() // tells the broker that the frame has left the queue; nil where it does not care
}

func newPool(ctx context.Context, h Handler, workers, queue, bytes int, parallel bool) *pool {
	return &pool{
		handle: h, ctx: ctx, workers: workers, perRack: perRack, parallel: parallel,
		room: queue, bytes: bytes, lanes: make(map[string]*lane), idle: make(chan struct{}),
	}
}

// push takes a frame in; false means that there is no room for it, or that the pool is shut.
func (p *pool) push(f Frame, taken func()) bool {
	key := f.Topic.Tenant + "/" + f.Topic.Rack
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[key]
	if p.shut || p.room == 0 || p.bytes < len(f.Data) || l != nil && len(l.frames) >= p.perRack {
		return false
	}
	if l == nil {
		l = &lane{rack: key}
		p.lanes[key] = l
	}
	p.room--
	p.bytes -= len(f.Data)
	l.frames = append(l.frames, waiting{f, taken})
	p.enqueue(l)
	if p.running < p.workers && len(p.ready) > 0 {
		p.running++
		go p.work()
	}
	return true
}

// enqueue puts a lane in the row if it has something that may run. The caller holds mu.
func (p *pool) enqueue(l *lane) {
	if l.queued || l.busy || len(l.frames) == 0 {
		return
	}
	l.queued = true
	p.ready = append(p.ready, l)
}

// work runs frames until none is ready.
func (p *pool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready) > 0 {
		l := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		w := l.frames[0]
		l.frames[0] = waiting{}
		l.frames = l.frames[1:]
		l.queued, l.busy = false, !p.parallel
		p.room++
		p.bytes += len(w.frame.Data)
		p.enqueue(l)
		p.forget(l)

		p.mu.Unlock()
		if w.taken != nil {
			w.taken()
		}
		p.handle(p.ctx, w.frame)
		p.mu.Lock()

		l.busy = false
		p.enqueue(l)
		p.forget(l)
	}
	p.running--
	p.settle()
}

// forget drops a lane that is empty, so that the map holds only racks that speak. The caller holds mu.
func (p *pool) forget(l *lane) {
	if len(l.frames) == 0 && !l.busy && p.lanes[l.rack] == l {
		delete(p.lanes, l.rack)
	}
}

// settle closes idle when all is done. The caller holds mu.
func (p *pool) settle() {
	if p.shut && p.running == 0 && len(p.ready) == 0 {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

// shutdown takes nothing more in; idle is closed when what is there has been handled.
func (p *pool) shutdown() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	p.settle()
	return p.idle
}
