package sitetest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// balancer gives racks one address for the nodes of a cluster: each connection goes to the next node that takes it.
type balancer struct {
	l     net.Listener
	nodes []string
	work  sync.WaitGroup

	mu   sync.Mutex // guards open
	open map[net.Conn]bool
	over bool
}

func balance(nodes []string) (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{l: l, nodes: nodes, open: map[net.Conn]bool{}}
	b.work.Go(func() {
		for first := 0; ; first++ {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			b.work.Go(func() { b.forward(c, first) })
		}
	})
	return b, nil
}

// Addr is the address for racks.
func (b *balancer) Addr() string { return b.l.Addr().String() }

// Close ends all connections and waits for them.
func (b *balancer) Close() error {
	err := b.l.Close()
	b.mu.Lock()
	b.over = true
	for c := range b.open {
		c.Close()
	}
	b.mu.Unlock()
	b.work.Wait()
	return err
}

// hold keeps a connection among those that Close ends.
func (b *balancer) hold(c net.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		c.Close()
		return net.ErrClosed
	}
	b.open[c] = true
	return nil
}

func (b *balancer) release(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
	c.Close()
}

func (b *balancer) forward(c net.Conn, first int) {
	if b.hold(c) != nil {
		return
	}
	defer b.release(c)
	node, err := b.dial(first)
	if err != nil || b.hold(node) != nil {
		return
	}
	defer b.release(node)
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(c, node) // either end may hang up
		c.Close()
	}()
	_, _ = io.Copy(node, c)
	node.Close()
	<-back
}

func (b *balancer) dial(first int) (net.Conn, error) {
	var errs []error
	for i := range b.nodes {
		c, err := net.DialTimeout("tcp", b.nodes[(first+i)%len(b.nodes)], time.Second)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
