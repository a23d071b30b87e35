package adbtest

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"phonerack/usb/adb"
)

// Peer is the phone's side of a dialogue. A step that does not go as written
// fails the test and ends the script.
type Peer struct {
	// Link is the phone's end.
	Link adb.Link
	// Timeout bounds each step.
	Timeout time.Duration

	t testing.TB
}

// Dial runs script against the returned link, a byte stream. The test waits
// for the script's end.
func Dial(t testing.TB, script func(*Peer)) adb.Link {
	host, phone := net.Pipe()
	run(t, adb.NewStreamLink(phone), script)
	return adb.NewStreamLink(host)
}

// DialUSB runs script against a link over cable.
func DialUSB(t testing.TB, cable *Cable, script func(*Peer)) adb.Link {
	link, err := adb.NewBulkLink(cable.Host(), adb.BulkOptions{MaxPacket: cable.maxPacket})
	if err != nil {
		t.Fatal(err)
	}
	run(t, cable.Phone(), script)
	return link
}

func run(t testing.TB, link adb.Link, script func(*Peer)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer link.Close()
		script(&Peer{Link: link, Timeout: 10 * time.Second, t: t})
	}()
	t.Cleanup(func() { <-done })
}

func (p *Peer) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("phone: "+format, args...)
	runtime.Goexit()
}

// Read returns the host's next packet.
func (p *Peer) Read() adb.Packet {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), p.Timeout)
	defer cancel()
	packet, err := p.Link.ReadPacket(ctx, adb.Expect{MaxPayload: adb.MaxPayload})
	if err != nil {
		p.fail("reading: %v", err)
	}
	return packet
}

// Quiet checks that the host sends nothing for d.
func (p *Peer) Quiet(d time.Duration) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if packet, err := p.Link.ReadPacket(ctx, adb.Expect{MaxPayload: adb.MaxPayload}); err == nil {
		p.fail("unexpected %v", packet)
	}
}

// UntilClosed reads on until the host closes the link.
func (p *Peer) UntilClosed() {
	for {
		if _, err := p.Link.ReadPacket(context.Background(), adb.Expect{MaxPayload: adb.MaxPayload}); err != nil {
			return
		}
	}
}

// Expect reads a packet and checks its command.
func (p *Peer) Expect(command adb.Command) adb.Packet {
	p.t.Helper()
	packet := p.Read()
	if packet.Command != command {
		p.fail("got %v, want %v", packet, command)
	}
	return packet
}

// ExpectArgs reads a packet and checks its command and arguments.
func (p *Peer) ExpectArgs(command adb.Command, arg0, arg1 uint32) adb.Packet {
	p.t.Helper()
	packet := p.Expect(command)
	if packet.Arg0 != arg0 || packet.Arg1 != arg1 {
		p.fail("got %v, want arguments %d, %d", packet, arg0, arg1)
	}
	return packet
}

// ExpectData reads a WRTE and checks its payload.
func (p *Peer) ExpectData(data string) adb.Packet {
	p.t.Helper()
	packet := p.Expect(adb.CommandWrite)
	if string(packet.Payload) != data {
		p.fail("got WRTE of %q, want %q", packet.Payload, data)
	}
	return packet
}

// ExpectOpen reads an OPEN, checks that its service ends with a NUL and is the
// one given, and returns the host's stream id.
func (p *Peer) ExpectOpen(service string) uint32 {
	p.t.Helper()
	packet := p.Expect(adb.CommandOpen)
	name, ended := bytes.CutSuffix(packet.Payload, []byte{0})
	if !ended || string(name) != service {
		p.fail("got OPEN of %q, want %q and a NUL", packet.Payload, service)
	}
	return packet.Arg0
}

// Send writes a packet without a payload.
func (p *Peer) Send(command adb.Command, arg0, arg1 uint32) {
	p.t.Helper()
	p.SendData(command, arg0, arg1, nil)
}

// SendData writes a packet.
func (p *Peer) SendData(command adb.Command, arg0, arg1 uint32, payload []byte) {
	p.t.Helper()
	packet := adb.Packet{Command: command, Arg0: arg0, Arg1: arg1, Payload: payload}
	packet.Check = packet.Sum()
	ctx, cancel := context.WithTimeout(context.Background(), p.Timeout)
	defer cancel()
	if err := p.Link.WritePacket(ctx, packet); err != nil {
		p.fail("writing: %v", err)
	}
}

// Accept answers CNXN without asking for a key.
func (p *Peer) Accept(features ...string) adb.Packet {
	p.t.Helper()
	hello := p.Expect(adb.CommandConnect)
	p.Online(features...)
	return hello
}

// Online sends CNXN.
func (p *Peer) Online(features ...string) {
	p.t.Helper()
	p.SendData(adb.CommandConnect, adb.VersionSkipChecksum, adb.MaxPayload, []byte(DeviceBanner(features...)))
}

// DeviceBanner is a banner as phones write it.
func DeviceBanner(features ...string) string {
	return "device::ro.product.name=x1sxx;ro.product.model=SM-G980F;ro.product.device=x1s;features=" + strings.Join(features, ",")
}
