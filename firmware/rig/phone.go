package rig

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Redirector is what can be plugged into a port: the device side of the usbredir protocol, as phonesim.Phone has it.
type Redirector interface {
	// ServeRedir serves one connection and returns when it ends, or soon after ctx does.
	ServeRedir(ctx context.Context, conn net.Conn) error
}

// unplugLimit is how long a Redirector may take to return once its connection is closed.
const unplugLimit = 15 * time.Second

// Plugged is a device in a port. Its methods may be called by several goroutines.
type Plugged struct {
	board  *Board
	port   string
	device Redirector

	changing sync.Mutex // held during Unplug and Replug

	mu  sync.Mutex // guards now
	now *session   // the last; nil before the first
}

// session is one stay in the port.
type session struct {
	cancel context.CancelFunc
	conn   net.Conn
	done   chan struct{} // closed when ServeRedir has returned
	err    error         // what it returned; valid once done is closed
}

// Plug puts a device into a port of BoardConfig.Ports. It returns when QEMU has the connection; the guest's kernel sees
// the device a second or so later ([Board.WaitPlugged]). ctx limits the connecting only.
func (b *Board) Plug(ctx context.Context, port string, device Redirector) (*Plugged, error) {
	if b.sockets[port] == "" {
		return nil, fmt.Errorf("plug: the board has no port %s for a phone", port)
	}
	p := &Plugged{board: b, port: port, device: device}
	if err := b.claim(p); err != nil {
		return nil, err
	}
	if err := p.connect(ctx); err != nil {
		b.mu.Lock()
		delete(b.plugged, port)
		b.mu.Unlock()
		return nil, err
	}
	return p, nil
}

// claim makes p the one device of its port.
func (b *Board) claim(p *Plugged) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("plug into %s: %w", p.port, ErrEnded)
	}
	if other := b.plugged[p.port]; other != nil && other != p && other.running() {
		return fmt.Errorf("plug: port %s is taken", p.port)
	}
	b.plugged[p.port] = p
	return nil
}

// connect begins a session.
func (p *Plugged) connect(ctx context.Context) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	conn, err := p.board.dial(ctx, p.board.sockets[p.port])
	if err != nil {
		return fmt.Errorf("plug into %s: %w", p.port, err)
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{cancel: cancel, conn: conn, done: make(chan struct{})}
	p.mu.Lock()
	p.now = s
	p.mu.Unlock()
	go func() {
		defer close(s.done)
		defer conn.Close()
		defer cancel()
		s.err = p.device.ServeRedir(serving, conn)
	}()
	return nil
}

// Port is where the device is.
func (p *Plugged) Port() string { return p.port }

// Done is closed when the device's ServeRedir has returned: after Unplug, or by itself. After Replug it is another one.
func (p *Plugged) Done() <-chan struct{} { return p.session().done }

// Err is what ServeRedir returned; nil as long as it runs.
func (p *Plugged) Err() error {
	s := p.session()
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

func (p *Plugged) session() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// running tells whether the device is in the port, or is about to be.
func (p *Plugged) running() bool {
	s := p.session()
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// Unplug pulls the device out and waits until its ServeRedir has returned, 15 s at most. Unplugging again does nothing.
func (p *Plugged) Unplug() error {
	p.changing.Lock()
	defer p.changing.Unlock()
	s := p.session()
	if s == nil {
		return nil
	}
	s.cancel()
	s.conn.Close()
	select {
	case <-s.done:
		return nil
	case <-time.After(unplugLimit):
		return fmt.Errorf("unplug from %s: ServeRedir does not return", p.port)
	}
}

// Replug pulls the device out, if it is in, and puts it into the same port again. The guest sees a new device there.
func (p *Plugged) Replug(ctx context.Context) error {
	if err := p.Unplug(); err != nil {
		return err
	}
	if err := p.board.claim(p); err != nil {
		return err
	}
	return p.connect(ctx)
}
