package phonesimtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"phonerack/usb/phonesim/usbredir"
)

// ErrGone is returned for requests that the device did not answer before it was unplugged.
var ErrGone = errors.New("phonesimtest: the device is gone")

// Guest is the other end of usbredir: a host controller with one port, driven by a test. Each request is
// one URB; several may be pending.
type Guest struct {
	conn    *usbredir.Conn
	nc      net.Conn
	work    sync.WaitGroup
	plugged chan *Plugged // a device each time that one connects; closed at the end

	mu      sync.Mutex // guards what follows
	nextID  uint64
	pending map[uint64]chan usbredir.Body
	ended   bool
}

// Plugged is what a device says of itself when it connects.
type Plugged struct {
	usbredir.DeviceConnect
	usbredir.InterfaceInfo
	usbredir.EndpointInfo
}

// Reply is how a request ended.
type Reply struct {
	Status usbredir.Status
	Data   []byte
}

// NewGuest greets the device's side at the other end of nc and waits for devices.
func NewGuest(nc net.Conn) *Guest {
	g := &Guest{
		conn: usbredir.NewConn(nc), nc: nc, plugged: make(chan *Plugged, 8), pending: map[uint64]chan usbredir.Body{}, nextID: 1,
	}
	g.work.Go(func() {
		if err := g.conn.Write(0, &usbredir.Hello{Version: "guest", Capabilities: usbredir.Offered}); err != nil {
			nc.Close()
		}
	})
	g.work.Go(g.read)
	return g
}

// Close cuts the connection.
func (g *Guest) Close() {
	g.nc.Close()
	g.work.Wait()
}

// WaitDevice waits until a device connects.
func (g *Guest) WaitDevice(ctx context.Context) (*Plugged, error) {
	select {
	case p, ok := <-g.plugged:
		if !ok {
			return nil, ErrGone
		}
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *Guest) read() {
	defer close(g.plugged)
	defer g.endPending(true)
	var device Plugged
	for {
		p, err := g.conn.Read()
		if err != nil {
			return
		}
		switch b := p.Body.(type) {
		case *usbredir.InterfaceInfo:
			device.InterfaceInfo = *b
		case *usbredir.EndpointInfo:
			device.EndpointInfo = *b
		case *usbredir.DeviceConnect:
			device.DeviceConnect = *b
			d := device
			g.plugged <- &d
		case *usbredir.DeviceDisconnect:
			g.endPending(false)
			if g.conn.Write(0, &usbredir.DisconnectAck{}) != nil {
				return
			}
		default:
			g.mu.Lock()
			if reply := g.pending[p.ID]; reply != nil {
				delete(g.pending, p.ID)
				reply <- p.Body
			}
			g.mu.Unlock()
		}
	}
}

// endPending gives up what is pending; last says that nothing new can start.
func (g *Guest) endPending(last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, reply := range g.pending {
		delete(g.pending, id)
		close(reply)
	}
	g.ended = g.ended || last
}

// start sends a request whose reply comes through the channel, which is closed if none does.
func (g *Guest) start(body usbredir.Body) (uint64, <-chan usbredir.Body) {
	reply := make(chan usbredir.Body, 1)
	g.mu.Lock()
	id := g.nextID
	g.nextID++
	if g.ended {
		close(reply)
	} else {
		g.pending[id] = reply
	}
	g.mu.Unlock()
	if err := g.conn.Write(id, body); err != nil {
		g.nc.Close()
	}
	return id, reply
}

func (g *Guest) request(ctx context.Context, body usbredir.Body) (usbredir.Body, error) {
	_, reply := g.start(body)
	select {
	case b, ok := <-reply:
		if !ok {
			return nil, ErrGone
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Reset resets the port.
func (g *Guest) Reset() error { return g.conn.Write(0, &usbredir.Reset{}) }

// SetConfiguration selects a configuration.
func (g *Guest) SetConfiguration(ctx context.Context, value uint8) error {
	b, err := g.request(ctx, &usbredir.SetConfiguration{Value: value})
	if err != nil {
		return err
	}
	c, ok := b.(*usbredir.Configuration)
	if !ok || c.Status != usbredir.StatusSuccess || c.Value != value {
		return fmt.Errorf("phonesimtest: set configuration %d: %+v", value, b)
	}
	return nil
}

// SetAlternate selects an alternate setting.
func (g *Guest) SetAlternate(ctx context.Context, number, setting uint8) error {
	_, err := g.request(ctx, &usbredir.SetAlternate{Interface: number, Setting: setting})
	return err
}

// Control makes a control transfer without data to the device; length is what is asked for.
func (g *Guest) Control(ctx context.Context, requestType, request uint8, value, index, length uint16) (Reply, error) {
	b, err := g.request(ctx, &usbredir.Control{
		Endpoint: requestType & 0x80, RequestType: requestType, Request: request, Value: value, Index: index, Length: length,
	})
	if err != nil {
		return Reply{}, err
	}
	c, ok := b.(*usbredir.Control)
	if !ok {
		return Reply{}, fmt.Errorf("phonesimtest: control transfer: %+v", b)
	}
	return Reply{c.Status, c.Data}, nil
}

// Out writes one URB to bulk endpoint 1.
func (g *Guest) Out(ctx context.Context, data []byte) (Reply, error) {
	b, err := g.request(ctx, &usbredir.Bulk{Endpoint: 0x01, Length: len(data), Data: data})
	if err != nil {
		return Reply{}, err
	}
	return bulkReply(b)
}

// In reads one URB of at most n bytes from bulk endpoint 1.
func (g *Guest) In(ctx context.Context, n int) (Reply, error) { return g.StartIn(n).Wait(ctx) }

// Read is a pending read.
type Read struct {
	guest *Guest
	id    uint64
	reply <-chan usbredir.Body
}

// StartIn starts to read one URB.
func (g *Guest) StartIn(n int) *Read {
	id, reply := g.start(&usbredir.Bulk{Endpoint: 0x81, Length: n})
	return &Read{g, id, reply}
}

// Wait waits for the end of the read.
func (r *Read) Wait(ctx context.Context) (Reply, error) {
	select {
	case b, ok := <-r.reply:
		if !ok {
			return Reply{}, ErrGone
		}
		return bulkReply(b)
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// Cancel asks to end the read early; Wait tells how it ended.
func (r *Read) Cancel() error { return r.guest.conn.Write(r.id, &usbredir.Cancel{}) }

func bulkReply(b usbredir.Body) (Reply, error) {
	p, ok := b.(*usbredir.Bulk)
	if !ok {
		return Reply{}, fmt.Errorf("phonesimtest: bulk transfer: %+v", b)
	}
	return Reply{p.Status, p.Data}, nil
}
