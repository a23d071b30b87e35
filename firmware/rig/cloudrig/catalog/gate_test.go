package catalog_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate stands between the rack and its broker. What goes either way can be held up, and connections cut together with
// what is held. It reads nothing: the two speak TLS.
type gate struct {
	l    net.Listener
	work sync.WaitGroup

	mu      sync.Mutex // guards what follows
	moved   *sync.Cond // on mu: something below has changed
	to      string     // address of the broker
	held    [2]bool    // by direction
	down    int64      // bytes that went to the rack
	conns   map[net.Conn]bool
	closing bool
}

// Directions.
const (
	up = iota
	down
)

func newGate(t *testing.T) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{l: l, conns: map[net.Conn]bool{}}
	g.moved = sync.NewCond(&g.mu)
	g.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			g.work.Go(func() { g.forward(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		g.cut()
		g.work.Wait()
	})
	return g
}

func (g *gate) forward(rack net.Conn) {
	g.mu.Lock()
	to := g.to
	g.mu.Unlock()
	broker, err := net.Dial("tcp", to)
	if err != nil {
		rack.Close()
		return
	}
	g.mu.Lock()
	g.conns[rack], g.conns[broker] = true, true
	over := g.closing
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.conns, rack)
		delete(g.conns, broker)
		g.mu.Unlock()
		rack.Close()
		broker.Close()
	}()
	if over {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.pass(broker, rack, up) })
	both.Go(func() { g.pass(rack, broker, down) })
	both.Wait()
}

// pass copies until an end hangs up or the connections are cut.
func (g *gate) pass(to, from net.Conn, direction int) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		for g.held[direction] && g.conns[from] {
			g.moved.Wait()
		}
		open := g.conns[from]
		if direction == down && open {
			g.down += int64(n)
		}
		g.mu.Unlock()
		if !open {
			return
		}
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil && err != io.EOF {
			return
		}
		if err == io.EOF {
			return
		}
	}
}

// hold holds up what goes in a direction, or lets it go.
func (g *gate) hold(direction int, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[direction] = on
	g.moved.Broadcast()
}

// cut ends all connections. What was held is lost.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.Close()
		delete(g.conns, c)
	}
	g.moved.Broadcast()
}

// received is how many bytes have gone to the rack.
func (g *gate) received() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.down
}

func (g *gate) lead(to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
}
