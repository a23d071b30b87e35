package usbredir

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bodies has one body of each type.
var bodies = []Body{
	&DeviceConnect{Speed: SpeedHigh, Vendor: 0x18d1, Product: 0x4ee7, Version: 0x0440},
	&DeviceDisconnect{},
	&DisconnectAck{},
	&Reset{},
	&InterfaceInfo{Interfaces: []Interface{{0, 0xff, 0x42, 1}, {1, 8, 6, 80}}},
	&EndpointInfo{Endpoints: [32]Endpoint{0: {MaxPacket: 64}, 17: {EndpointBulk, 1, 2, 512}}},
	&SetConfiguration{Value: 1},
	&GetConfiguration{},
	&Configuration{Status: StatusStall, Value: 1},
	&SetAlternate{Interface: 1, Setting: 2},
	&GetAlternate{Interface: 1},
	&Alternate{Status: StatusSuccess, Interface: 1, Setting: 2},
	&Cancel{},
	&Control{Endpoint: 0x80, Request: 6, RequestType: 0x80, Value: 0x100, Index: 0x409, Length: 3, Data: []byte{1, 2, 3}},
	&Bulk{Endpoint: 0x81, Status: StatusSuccess, Length: 70000, Data: bytes.Repeat([]byte{7}, 70000)},
	&Bulk{Endpoint: 0x81, Length: 1 << 20},
	&Bulk{Endpoint: 0x01},
}

// pair returns two connections that have greeted each other, with all capabilities.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	x, y := net.Pipe()
	t.Cleanup(func() { x.Close(); y.Close() })
	a, b = NewConn(x), NewConn(y)
	go a.Write(0, &Hello{Version: "a", Capabilities: Offered})
	if _, err := b.Read(); err != nil {
		t.Fatal(err)
	}
	go b.Write(0, &Hello{Version: "b", Capabilities: Offered})
	if _, err := a.Read(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestPacketsArriveAsSent(t *testing.T) {
	a, b := pair(t)
	for _, body := range bodies {
		want := Packet{ID: 1 << 40, Body: body}
		go a.Write(want.ID, want.Body)
		got, err := b.Read()
		if err != nil {
			t.Fatalf("%T: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T: %s", body, diff)
		}
	}
}

// TestHeadersGrowAfterHello: the first packet has a header of 12 bytes, all after the other side's hello have 16.
func TestHeadersGrowAfterHello(t *testing.T) {
	var out bytes.Buffer
	in := appendPacket(nil, Packet{Body: &Hello{Version: "peer", Capabilities: Offered}}, 4, 0)
	c := NewConn(struct {
		io.Reader
		io.Writer
	}{bytes.NewReader(in), &out})
	c.Write(0, &Hello{Version: "us", Capabilities: Offered})
	if n := out.Len(); n != 12+64+4 {
		t.Errorf("hello has %d bytes, want 80", n)
	}
	p, err := c.Read()
	if hello, ok := p.Body.(*Hello); err != nil || !ok || hello.Version != "peer" || c.Capabilities() != Offered {
		t.Fatalf("read %+v, %v", p.Body, err)
	}
	out.Reset()
	c.Write(5, &Reset{})
	if want := []byte{3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}; !bytes.Equal(out.Bytes(), want) {
		t.Errorf("reset is % x, want % x", out.Bytes(), want)
	}
}

// TestOldPeer: without the capabilities the old, shorter forms are read and written.
func TestOldPeer(t *testing.T) {
	for _, body := range []Body{
		&DeviceConnect{Speed: SpeedFull, Vendor: 1, Product: 2},
		&EndpointInfo{Endpoints: [32]Endpoint{1: {Type: EndpointBulk}}},
		&Bulk{Endpoint: 1, Length: 5, Data: []byte("hello")},
	} {
		b := appendPacket(nil, Packet{ID: 9, Body: body}, 4, 0)
		got, err := readPacket(bytes.NewReader(b), 4, 0)
		if diff := cmp.Diff(Packet{ID: 9, Body: body}, got); err != nil || diff != "" {
			t.Errorf("%T: %v %s", body, err, diff)
		}
	}
}

func TestBadPacketsAreRefused(t *testing.T) {
	good := func(body Body) []byte { return appendPacket(nil, Packet{Body: body}, 8, Offered) }
	edit := func(b []byte, offset int, value ...byte) []byte {
		return append(append(b[:offset:offset], value...), b[offset+len(value):]...)
	}
	hello := good(&Hello{Version: "x"})
	for name, b := range map[string][]byte{
		"type that was not offered":   {102, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"huge length":                 {101, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0},
		"body that is too short":      edit(good(&SetConfiguration{}), 4, 0),
		"version without end":         edit(hello, 16, bytes.Repeat([]byte{'x'}, 64)...),
		"33 interfaces":               edit(good(&InterfaceInfo{}), 16, 33),
		"control in two directions":   edit(good(&Control{Endpoint: 0x80, RequestType: 0x80}), 16, 0),
		"control data of other size":  edit(good(&Control{Length: 2, Data: []byte{1, 2}}), 24, 3),
		"bulk data of another length": edit(good(&Bulk{Length: 2, Data: []byte{1, 2}}), 18, 1),
		"bulk length beyond limit":    edit(good(&Bulk{}), 24, 0xff, 0xff),
		"bulk stream":                 edit(good(&Bulk{}), 20, 1),
	} {
		if _, err := readPacket(bytes.NewReader(b), 8, Offered); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v, want a protocol error", name, err)
		}
	}
	if _, err := readPacket(bytes.NewReader(hello[:40]), 8, Offered); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a packet that is cut off: %v", err)
	}
}

func TestHelloComesFirstAndOnce(t *testing.T) {
	reset := appendPacket(nil, Packet{Body: &Reset{}}, 4, 0)
	hello := appendPacket(nil, Packet{Body: &Hello{}}, 4, 0)
	for _, in := range [][]byte{reset, append(hello[:len(hello):len(hello)], hello...)} {
		c := NewConn(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(in), io.Discard})
		var err error
		for err == nil {
			_, err = c.Read()
		}
		if !strings.Contains(err.Error(), "hello") {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzReadPacket(f *testing.F) {
	f.Add(appendPacket(nil, Packet{Body: &Hello{Version: "x", Capabilities: Offered}}, 8, Offered), true)
	for _, body := range bodies {
		if b, ok := body.(*Bulk); ok && len(b.Data) > 1000 {
			continue
		}
		f.Add(appendPacket(nil, Packet{ID: 3, Body: body}, 8, Offered), true)
		f.Add(appendPacket(nil, Packet{ID: 3, Body: body}, 4, 0), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, modern bool) {
		idSize, caps := 4, Capabilities(0)
		if modern {
			idSize, caps = 8, Offered
		}
		p, err := readPacket(bytes.NewReader(b), idSize, caps)
		if err != nil {
			return
		}
		again, err := readPacket(bytes.NewReader(appendPacket(nil, p, idSize, caps)), idSize, caps)
		if err != nil {
			t.Fatalf("%+v was written so that it cannot be read: %v", p.Body, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
