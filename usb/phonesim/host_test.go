package phonesim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"phonerack/usb/phonesim/phonesimtest"
	"phonerack/usb/phonesim/usbredir"
)

// patience bounds every wait of a test; a machine that is busy needs more of it than a test does.
const patience = 20 * time.Second

// host is a host in a test, message by message. It does what the protocol asks of a host and nothing by itself.
type host struct {
	t      *testing.T
	ctx    context.Context
	wire   wire
	served <-chan error // what the phone's Serve call returned
	sums   bool
	lastID uint32
}

// wire moves messages between a test and a phone.
type wire interface {
	write(ctx context.Context, m message) error
	read(ctx context.Context) (message, error)
}

// streamWire is a byte stream.
type streamWire struct{ nc net.Conn }

func (w streamWire) write(_ context.Context, m message) error {
	_, err := w.nc.Write(append(m.bytes(), m.payload...))
	return err
}

func (w streamWire) read(ctx context.Context) (message, error) {
	deadline, _ := ctx.Deadline()
	w.nc.SetReadDeadline(deadline)
	var b [headerSize]byte
	if _, err := io.ReadFull(w.nc, b[:]); err != nil {
		return message{}, err
	}
	m := message{header: parseHeader(b[:])}
	m.payload = make([]byte, min(m.length, 1<<20))
	_, err := io.ReadFull(w.nc, m.payload)
	return m, err
}

// usbWire is a USB device; urb is the longest piece that a long write is cut into.
type usbWire struct {
	guest       *phonesimtest.Guest
	packet, urb int
}

func (w usbWire) write(ctx context.Context, m message) error {
	pieces := [][]byte{m.bytes()}
	rest := m.payload
	for len(rest) > 0 {
		n := min(len(rest), w.urb)
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
	}
	if len(m.payload) > 0 && len(m.payload)%w.packet == 0 {
		pieces = append(pieces, nil)
	}
	for _, piece := range pieces {
		if err := w.out(ctx, piece); err != nil {
			return err
		}
	}
	return nil
}

func (w usbWire) out(ctx context.Context, piece []byte) error {
	r, err := w.guest.Out(ctx, piece)
	if err == nil && r.Status != usbredir.StatusSuccess {
		err = fmt.Errorf("bulk write: %v", r.Status)
	}
	return err
}

func (w usbWire) in(ctx context.Context, n int) ([]byte, error) {
	r, err := w.guest.In(ctx, (n+w.packet-1)/w.packet*w.packet)
	if err == nil && r.Status != usbredir.StatusSuccess {
		err = fmt.Errorf("bulk read: %v", r.Status)
	}
	return r.Data, err
}

func (w usbWire) read(ctx context.Context) (message, error) {
	b, err := w.in(ctx, headerSize)
	if err != nil {
		return message{}, err
	}
	if len(b) != headerSize {
		return message{}, fmt.Errorf("a header of %d bytes", len(b))
	}
	m := message{header: parseHeader(b)}
	if m.length > 0 {
		m.payload, err = w.in(ctx, int(m.length))
	}
	if err == nil && len(m.payload) != int(m.length) {
		err = fmt.Errorf("a payload of %d bytes where %d were announced", len(m.payload), m.length)
	}
	return m, err
}

// dialStream serves p over net.Pipe.
func dialStream(t *testing.T, p *Phone) *host {
	t.Helper()
	near, far := net.Pipe()
	h := newHost(t, streamWire{near}, func(ctx context.Context) error { return p.ServeStream(ctx, far) })
	t.Cleanup(func() { near.Close() })
	return h
}

// plugInUSB serves p to a guest, without configuring it.
func plugInUSB(t *testing.T, p *Phone) (*host, *phonesimtest.Guest) {
	t.Helper()
	near, far := net.Pipe()
	guest := phonesimtest.NewGuest(near)
	h := newHost(t, usbWire{guest, 64, 16 << 10}, func(ctx context.Context) error { return p.ServeRedir(ctx, far) })
	t.Cleanup(guest.Close)
	if p.config.HighSpeed {
		h.wire = usbWire{guest, 512, 16 << 10}
	}
	if _, err := guest.WaitDevice(h.ctx); err != nil {
		t.Fatal(err)
	}
	return h, guest
}

// dialUSB serves p to a guest and configures it.
func dialUSB(t *testing.T, p *Phone) (*host, *phonesimtest.Guest) {
	t.Helper()
	h, guest := plugInUSB(t, p)
	if err := guest.SetConfiguration(h.ctx, 1); err != nil {
		t.Fatal(err)
	}
	return h, guest
}

func newHost(t *testing.T, w wire, serve func(context.Context) error) *host {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	served := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		served <- serve(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return &host{t: t, ctx: ctx, wire: w, served: served, sums: true}
}

func (h *host) send(c command, arg0, arg1 uint32, payload string) {
	h.t.Helper()
	if err := h.trySend(c, arg0, arg1, payload); err != nil {
		h.t.Fatalf("send %s: %v", c, err)
	}
}

func (h *host) trySend(c command, arg0, arg1 uint32, payload string) error {
	return h.wire.write(h.ctx, newMessage(c, arg0, arg1, []byte(payload), h.sums || c == cmdAUTH || c == cmdCNXN))
}

// next returns the phone's next message.
func (h *host) next() message {
	h.t.Helper()
	m, err := h.wire.read(h.ctx)
	if err != nil {
		h.t.Fatalf("wait for a message: %v", err)
	}
	if m.sum != 0 && m.sum != sum(m.payload) {
		h.t.Errorf("%s comes with a wrong sum", m.command)
	}
	return m
}

func (h *host) expect(c command) message {
	h.t.Helper()
	m := h.next()
	if m.command != c {
		h.t.Fatalf("got %s(%d, %d, %q), want %s", m.command, m.arg0, m.arg1, m.payload, c)
	}
	return m
}

// expectServed waits for the phone's Serve call to return.
func (h *host) expectServed() error {
	h.t.Helper()
	select {
	case err := <-h.served:
		return err
	case <-time.After(patience):
		h.t.Fatal("the phone still serves")
		return nil
	}
}

// expectViolation waits until the phone drops the link for a broken rule.
func (h *host) expectViolation(p *Phone, rule Rule) {
	h.t.Helper()
	err := h.expectServed()
	v, ok := errors.AsType[*Violation](err)
	if !ok || v.Rule != rule {
		h.t.Errorf("the phone ended with %v, want rule %q", err, rule)
	}
	expectRecorded(h.t, p, rule)
}

// expectRecorded wants exactly the rules to be broken.
func expectRecorded(t *testing.T, p *Phone, rules ...Rule) {
	t.Helper()
	var got []Rule
	for _, v := range p.Violations() {
		got = append(got, v.Rule)
	}
	if fmt.Sprint(got) != fmt.Sprint(rules) {
		t.Errorf("recorded %q, want %q", got, rules)
	}
}

const hostFeatures = "shell_v2,cmd,stat_v2,ls_v2,sendrecv_v2"

// connect greets the phone, which lets everybody in.
func (h *host) connect(features string) message {
	h.t.Helper()
	h.send(cmdCNXN, versionNoSums, 1<<20, "host::features="+features)
	return h.online()
}

func (h *host) online() message {
	h.t.Helper()
	m := h.expect(cmdCNXN)
	h.sums = m.arg0 < versionNoSums
	return m
}

// open opens a stream and returns both its ids.
func (h *host) open(service string) (ours, theirs uint32) {
	h.t.Helper()
	h.lastID++
	h.send(cmdOPEN, h.lastID, 0, service+"\x00")
	m := h.expect(cmdOKAY)
	if m.arg1 != h.lastID {
		h.t.Fatalf("OKAY for stream %d, want %d", m.arg1, h.lastID)
	}
	return h.lastID, m.arg0
}

// write writes to a stream and waits for its OKAY.
func (h *host) write(ours, theirs uint32, data string) {
	h.t.Helper()
	h.send(cmdWRTE, ours, theirs, data)
	h.expect(cmdOKAY)
}

// readStream reads a stream to its end, which it answers.
func (h *host) readStream(ours, theirs uint32) string {
	h.t.Helper()
	var all []byte
	for {
		m := h.next()
		switch m.command {
		case cmdWRTE:
			all = append(all, m.payload...)
			h.send(cmdOKAY, ours, theirs, "")
		case cmdCLSE:
			h.send(cmdCLSE, ours, theirs, "")
			return string(all)
		default:
			h.t.Fatalf("got %s in the middle of a stream", m.command)
		}
	}
}

func (h *host) run(service string) string {
	h.t.Helper()
	return h.readStream(h.open(service))
}

// shellPacket is a packet of the shell protocol.
func shellPacket(id byte, data string) string {
	return string(binary.LittleEndian.AppendUint32([]byte{id}, uint32(len(data)))) + data
}
