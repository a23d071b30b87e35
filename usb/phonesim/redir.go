package phonesim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"phonerack/usb/phonesim/usbredir"
)

// redirPort is a connection to whoever plays the host controller.
type redirPort struct {
	phone   *Phone
	conn    *usbredir.Conn
	out     *outbox
	packets chan usbredir.Packet // what the other side sends; never closed
}

// ServeRedir plugs the phone in: it speaks usbredir, as the side that has the device, on nc until the
// connection ends, and closes it. The end of the connection unplugs the phone. A phone that reboots
// leaves and comes back on the same connection.
//
// It returns nil if the other side closed the connection, ErrUnplugged, the *Violation for which the phone dropped
// the link, or the cause of ctx's end.
func (p *Phone) ServeRedir(ctx context.Context, nc net.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	port := &redirPort{phone: p, conn: usbredir.NewConn(nc), out: newOutbox(), packets: make(chan usbredir.Packet)}
	var reader, writer sync.WaitGroup
	reader.Go(func() { cancel(port.readPackets(ctx)) })
	writer.Go(func() {
		if err := port.out.run(ctx); err != nil {
			cancel(err)
		}
	})
	err := port.serve(ctx)
	port.out.end()
	nc.SetWriteDeadline(time.Now().Add(flushTime))
	late := time.AfterFunc(flushTime, func() { cancel(err) }) // packets that a slow link holds back have no deadline
	writer.Wait()
	late.Stop()
	cancel(err)
	nc.Close()
	reader.Wait()
	if hungUp(err) {
		return nil
	}
	return err
}

// flushTime is how long the other side has to take the last packets of a phone that leaves.
const flushTime = time.Second

// hungUp tells whether err is the other side's ordinary way to end a connection.
func hungUp(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// readPackets reads until the connection or ctx ends.
func (r *redirPort) readPackets(ctx context.Context) error {
	for {
		p, err := r.conn.Read()
		if err != nil {
			return err
		}
		select {
		case r.packets <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send queues a packet.
func (r *redirPort) send(id uint64, body usbredir.Body) {
	r.out.put(func(context.Context) error { return r.conn.Write(id, body) })
}

// serve greets the other side and plugs the phone in, again after each reboot.
func (r *redirPort) serve(ctx context.Context) error {
	r.send(0, &usbredir.Hello{Version: "phonesim", Capabilities: usbredir.Offered})
	select {
	case <-r.packets: // hello, as conn has checked
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		s, err := r.plugIn(ctx)
		if err != nil {
			return err
		}
		err = r.servePlug(ctx, s)
		r.phone.plugOut(s)
		if !errors.Is(err, ErrRebooting) {
			return err
		}
		r.send(0, &usbredir.DeviceDisconnect{})
	}
}

// plugIn waits until the phone is up; what the host still wants from the phone that left gets no answer.
func (r *redirPort) plugIn(ctx context.Context) (*plug, error) {
	type result struct {
		plug *plug
		err  error
	}
	up := make(chan result, 1)
	go func() {
		s, err := r.phone.plugIn(ctx)
		up <- result{s, err}
	}()
	for {
		select {
		case res := <-up:
			return res.plug, res.err
		case <-r.packets:
		}
	}
}

// servePlug is one stay of the phone on the bus.
func (r *redirPort) servePlug(ctx context.Context, s *plug) error {
	d := newUSBDevice(r.phone, s, r.completeRead)
	defer d.unplug()
	defer s.end(nil)
	r.sendLayout(d)
	r.send(0, d.connectInfo())
	for {
		select {
		case p := <-r.packets:
			if err := r.handle(d, p); err != nil {
				r.phone.recordError(err)
				return err
			}
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

func (r *redirPort) sendLayout(d *usbDevice) {
	r.send(0, d.interfaceInfo())
	r.send(0, d.endpointInfo())
}

// handle acts on one packet. The device's own requests are answered in order, by the outbox.
func (r *redirPort) handle(d *usbDevice, p usbredir.Packet) error {
	switch b := p.Body.(type) {
	case *usbredir.Reset:
		d.reset()
	case *usbredir.SetConfiguration:
		status, err := d.setConfiguration(b.Value)
		if err != nil {
			return err
		}
		r.sendLayout(d)
		r.send(p.ID, &usbredir.Configuration{Status: status, Value: d.configuration})
	case *usbredir.GetConfiguration:
		r.send(p.ID, &usbredir.Configuration{Value: d.configuration})
	case *usbredir.SetAlternate:
		r.phone.record(violationf(RuleSetInterface, "setting %d of interface %d", b.Setting, b.Interface))
		status := usbredir.StatusSuccess
		if b.Interface != 0 || b.Setting != 0 {
			status = usbredir.StatusStall
		}
		r.send(p.ID, &usbredir.Alternate{Status: status, Interface: b.Interface})
	case *usbredir.GetAlternate:
		r.send(p.ID, &usbredir.Alternate{Interface: b.Interface})
	case *usbredir.Cancel:
		d.in.cancel(p.ID)
	case *usbredir.Control:
		r.send(p.ID, controlReply(d, b))
	case *usbredir.Bulk:
		return r.handleBulk(d, p.ID, b)
	case *usbredir.DisconnectAck:
	default:
		return fmt.Errorf("phonesim: the host of a device does not send packet type %d", p.Body.Type())
	}
	return nil
}

// controlReply answers a control request. At most what was asked for goes back.
func controlReply(d *usbDevice, c *usbredir.Control) *usbredir.Control {
	reply := *c
	reply.Data = nil
	data, ok := d.control(c)
	if !ok {
		reply.Status, reply.Length = usbredir.StatusStall, 0
		return &reply
	}
	reply.Status = usbredir.StatusSuccess
	if c.RequestType&requestIn != 0 {
		reply.Data = data[:min(len(data), int(c.Length))]
		reply.Length = uint16(len(reply.Data))
	}
	return &reply
}

func (r *redirPort) handleBulk(d *usbDevice, id uint64, b *usbredir.Bulk) error {
	switch b.Endpoint {
	case endpointIn:
		if d.function == nil {
			r.send(id, &usbredir.Bulk{Endpoint: endpointIn, Status: usbredir.StatusStall})
			return nil
		}
		d.in.read(id, b.Length)
		return nil
	case endpointOut:
		if len(b.Data) != b.Length {
			return fmt.Errorf("phonesim: a bulk write of %d bytes came with %d", b.Length, len(b.Data))
		}
		return d.bulkOut(b.Data, func(status usbredir.Status) {
			reply := &usbredir.Bulk{Endpoint: endpointOut, Status: status}
			if status == usbredir.StatusSuccess {
				reply.Length = b.Length
			}
			r.send(id, reply)
		})
	}
	r.send(id, &usbredir.Bulk{Endpoint: b.Endpoint, Status: usbredir.StatusInvalid})
	return nil
}

// completeRead answers a bulk read, late on a slow link.
func (r *redirPort) completeRead(c inCompletion) {
	r.out.put(func(ctx context.Context) error {
		if err := sleep(ctx, r.phone.faults.pause(len(c.data))); err != nil {
			return err
		}
		return r.conn.Write(c.id, &usbredir.Bulk{Endpoint: endpointIn, Status: c.status, Length: len(c.data), Data: c.data})
	})
}
