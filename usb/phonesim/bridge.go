package phonesim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// bridgeLimit is the longest payload that passes a bridge: what the newest daemons agree to.
const bridgeLimit = 1 << 20

// bridge is a backend whose daemon is a real one, at the other end of a byte stream.
type bridge struct {
	ctx  context.Context
	link link
	nc   net.Conn
	out  *outbox
	work sync.WaitGroup
}

func newBridge(ctx context.Context, l link, dial func(context.Context) (net.Conn, error)) (*bridge, error) {
	nc, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("phonesim: reach the daemon: %w", err)
	}
	b := &bridge{ctx: ctx, link: l, nc: nc, out: newOutbox()}
	b.work.Go(func() { b.fail(b.out.run(ctx)) })
	b.work.Go(func() { b.fail(b.read()) })
	return b, nil
}

// fail ends the link when the daemon is gone, which is what a daemon that ends does to its USB function.
func (b *bridge) fail(err error) {
	if b.ctx.Err() == nil {
		b.link.end(fmt.Errorf("phonesim: the daemon left: %v", err))
	}
}

// read passes the daemon's messages on.
func (b *bridge) read() error {
	r := bufio.NewReaderSize(b.nc, 64<<10)
	var fixed [headerSize]byte
	for {
		if _, err := io.ReadFull(r, fixed[:]); err != nil {
			return err
		}
		m := message{header: parseHeader(fixed[:])}
		if err := m.check(bridgeLimit); err != nil {
			return fmt.Errorf("the daemon's message: %w", err)
		}
		m.payload = make([]byte, m.length)
		if _, err := io.ReadFull(r, m.payload); err != nil {
			return err
		}
		b.link.queue(m, nil)
	}
}

// receive implements backend.
func (b *bridge) receive(m message) error {
	b.out.put(func(context.Context) error {
		_, err := b.nc.Write(append(m.header.bytes(), m.payload...))
		return err
	})
	return nil
}

// limit implements backend.
func (b *bridge) limit() int { return bridgeLimit }

// wait implements backend.
func (b *bridge) wait() {
	<-b.ctx.Done()
	b.nc.Close()
	b.work.Wait()
}
