package phonesim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"phonerack/usb/phonesim/phonesimtest"
	"phonerack/usb/phonesim/usbredir"
)

// descriptor reads a descriptor as a driver does.
func descriptor(t *testing.T, h *host, g *phonesimtest.Guest, kind, index uint16, length uint16) phonesimtest.Reply {
	t.Helper()
	r, err := g.Control(h.ctx, 0x80, getDescriptor, kind<<8|index, 0, length)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDescriptors(t *testing.T) {
	for _, high := range []bool{false, true} {
		p := newPhoneT(t, Config{Serial: "ABC", HighSpeed: high})
		h, g := plugInUSB(t, p)
		packet := byte(64)
		size := []byte{64, 0}
		if high {
			size = []byte{0, 2}
		}
		want := []byte{18, 1, 0, 2, 0, 0, 0, packet, 0xd1, 0x18, 0xe7, 0x4e, 0x40, 4, 1, 2, 3, 1}
		if r := descriptor(t, h, g, deviceDescriptor, 0, 18); !bytes.Equal(r.Data, want) {
			t.Errorf("device descriptor % x, want % x", r.Data, want)
		}
		if r := descriptor(t, h, g, deviceDescriptor, 0, 8); !bytes.Equal(r.Data, want[:8]) {
			t.Errorf("first 8 bytes: % x", r.Data)
		}
		want = slices.Concat(
			[]byte{9, 2, 32, 0, 1, 1, 0, 0x80, 250},
			[]byte{9, 4, 0, 0, 2, 0xff, 0x42, 1, 4},
			[]byte{7, 5, 0x81, 2}, size, []byte{0},
			[]byte{7, 5, 0x01, 2}, size, []byte{0},
		)
		if r := descriptor(t, h, g, configDescriptor, 0, 255); !bytes.Equal(r.Data, want) {
			t.Errorf("configuration descriptor % x, want % x", r.Data, want)
		}
		qualifier := descriptor(t, h, g, qualifierDescriptor, 0, 10)
		if got := qualifier.Status == usbredir.StatusSuccess; got != high {
			t.Errorf("device qualifier: %v, high speed is %t", qualifier.Status, high)
		}
		if r := descriptor(t, h, g, 15, 0, 5); r.Status != usbredir.StatusStall {
			t.Errorf("a descriptor that does not exist: %v", r.Status)
		}
	}
}

func TestSerialNumbers(t *testing.T) {
	for _, test := range []struct {
		name   string
		serial string
		form   SerialForm
		index  byte // in the device descriptor
		status usbredir.Status
		text   []uint16
	}{
		{"ordinary", "R58M123", SerialString, 3, usbredir.StatusSuccess, utf16.Encode([]rune("R58M123"))},
		{"not ASCII", "号𝄞", SerialString, 3, usbredir.StatusSuccess, utf16.Encode([]rune("号𝄞"))},
		{"too long", strings.Repeat("x", 300), SerialString, 3, usbredir.StatusSuccess, utf16.Encode([]rune(strings.Repeat("x", 126)))},
		{"none", "", SerialString, 0, usbredir.StatusStall, nil},
		{"absent", "X", SerialAbsent, 0, usbredir.StatusStall, nil},
		{"empty", "X", SerialEmpty, 3, usbredir.StatusSuccess, nil},
		{"stalled", "X", SerialStalled, 3, usbredir.StatusStall, nil},
		{"garbage", "X", SerialGarbage, 3, usbredir.StatusSuccess, []uint16{1, '?', 0xd800, 0xffff, '\n', '/', 0xdc00, 0x202e, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPhoneT(t, Config{Serial: test.serial, USB: USB{Serial: test.form}})
			h, g := plugInUSB(t, p)
			if got := descriptor(t, h, g, deviceDescriptor, 0, 18).Data[16]; got != test.index {
				t.Errorf("serial string %d, want %d", got, test.index)
			}
			r := descriptor(t, h, g, stringDescriptor, stringSerial, 255)
			if r.Status != test.status {
				t.Fatalf("status %v, want %v", r.Status, test.status)
			}
			if test.status != usbredir.StatusSuccess {
				return
			}
			if want := encodeString(test.text); !bytes.Equal(r.Data, want) || int(want[0]) != len(want) {
				t.Errorf("string descriptor % x, want % x", r.Data, want)
			}
		})
	}
}

func TestLayoutIsAnnouncedBeforeTheDevice(t *testing.T) {
	near, far := net.Pipe()
	g := phonesimtest.NewGuest(near)
	defer g.Close()
	p := newPhoneT(t, Config{HighSpeed: true})
	newHost(t, nil, func(ctx context.Context) error { return p.ServeRedir(ctx, far) })
	d, err := g.WaitDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Speed != usbredir.SpeedHigh || d.Vendor != 0x18d1 || d.Product != 0x4ee7 {
		t.Errorf("device %+v", d.DeviceConnect)
	}
	if want := (usbredir.Interface{Number: 0, Class: 0xff, Subclass: 0x42, Protocol: 1}); len(d.Interfaces) != 1 || d.Interfaces[0] != want {
		t.Errorf("interfaces %+v", d.Interfaces)
	}
	for _, i := range []int{1, 17} {
		if e := d.Endpoints[i]; e.Type != usbredir.EndpointBulk || e.MaxPacket != 512 {
			t.Errorf("endpoint %d: %+v", i, e)
		}
	}
}

// TestTransfersOfAllLengths pushes and pulls around the lengths at which packets fill up.
func TestTransfersOfAllLengths(t *testing.T) {
	for _, high := range []bool{false, true} {
		for _, android := range []int{7, 14} {
			t.Run(fmt.Sprintf("high speed %t, Android %d", high, android), func(t *testing.T) {
				system := testSystem()
				p := newPhoneT(t, Config{Android: android, HighSpeed: high, System: system})
				h, _ := dialUSB(t, p)
				h.connect(hostFeatures)
				for _, n := range []int{1, 55, 56, 63, 64, 65, 128, 503, 504, 505, 507, 512, 1019, 1024, 1531, 16383, 16384, 16385, 32768, 65536, 200000} {
					want := string(phonesimtest.Bytes(n))
					ours, theirs := h.open("exec:cat")
					h.write(ours, theirs, want)
					m := h.expect(cmdWRTE)
					if string(m.payload) != want[:len(m.payload)] {
						t.Fatalf("%d bytes came back changed", n)
					}
					h.send(cmdCLSE, ours, theirs, "")
					for m.command != cmdCLSE {
						m = h.next()
					}
					if android == 7 {
						h.expect(cmdCLSE)
					}
					if got := h.run(fmt.Sprintf("exec:bytes %d", n)); got != want {
						t.Errorf("%d bytes from the phone: %d others came", n, len(got))
					}
					if android == 7 {
						h.expect(cmdCLSE)
					}
				}
				noViolations(t, p)
			})
		}
	}
}

// TestBrokenTransferRules: each dialogue breaks one rule after CNXN, at high speed.
func TestBrokenTransferRules(t *testing.T) {
	open := newMessage(cmdOPEN, 1, 0, append([]byte("shell:echo "), bytes.Repeat([]byte{'x'}, 501)...), false)
	open.payload[511] = 0
	okay := newMessage(cmdOKAY, 1, 1, nil, false).bytes()
	for _, test := range []struct {
		name   string
		rule   Rule
		zero   ZeroPackets
		pieces [][]byte
	}{
		{"header and payload in one transfer", RuleHeader, 0, [][]byte{append(open.bytes(), open.payload...)}},
		{"half a header", RuleHeader, 0, [][]byte{okay[:12]}},
		{"zero-length packet after a header", RuleStrayZLP, 0, [][]byte{okay, nil}},
		{"zero-length packet before a payload", RuleStrayZLP, 0, [][]byte{open.bytes(), nil}},
		{"payload in two transfers", RulePayload, 0, [][]byte{open.bytes(), open.payload[:100]}},
		{"payload that is too long", RulePayload, 0, [][]byte{open.bytes(), append(open.payload, 0)}},
		{"no zero-length packet, next header", RuleMissingZLP, 0, [][]byte{open.bytes(), open.payload, okay}},
		{"zero-length packet for an old recovery", RuleStrayZLP, ZeroPacketsForbidden, [][]byte{open.bytes(), open.payload, nil}},
		{"wrong magic", RuleMagic, 0, [][]byte{append(okay[:20:20], 1, 2, 3, 4)}},
		{"payload beyond the limit", RuleLength, 0, [][]byte{header{cmdWRTE, 1, 1, 1<<20 + 1, 0, ^uint32(cmdWRTE)}.bytes()}},
		{"TLS over USB", RuleCommand, 0, [][]byte{header{cmdSTLS, 0x01000000, 0, 0, 0, ^uint32(cmdSTLS)}.bytes()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPhoneT(t, Config{HighSpeed: true, ZeroPackets: test.zero})
			h, _ := dialUSB(t, p)
			h.connect(hostFeatures)
			for _, piece := range test.pieces {
				h.wire.(usbWire).out(h.ctx, piece) // the last of them may find the phone gone
			}
			h.expectViolation(p, test.rule)
		})
	}
}

// TestMissingZeroPacketHangs: the phone waits for the end of the payload, answers nothing, and the record tells why
// when the phone is unplugged.
func TestMissingZeroPacketHangs(t *testing.T) {
	p := newPhoneT(t, Config{})
	h, g := dialUSB(t, p)
	h.connect(hostFeatures)
	open := newMessage(cmdOPEN, 1, 0, []byte("exec:echo "+strings.Repeat("x", 53)+"\x00"), false)
	w := h.wire.(usbWire)
	if err := errors.Join(w.out(h.ctx, open.bytes()), w.out(h.ctx, open.payload)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.ctx, 100*time.Millisecond)
	defer cancel()
	if m, err := w.read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the phone answered: %v %v", m.command, err)
	}
	g.Close()
	if err := h.expectServed(); err != nil {
		t.Error(err)
	}
	expectRecorded(t, p, RuleMissingZLP)
}

func TestForgivingDaemonTakesBothWays(t *testing.T) {
	p := newPhoneT(t, Config{ZeroPackets: ZeroPacketsOptional})
	h, _ := dialUSB(t, p)
	h.connect(hostFeatures)
	w := h.wire.(usbWire)
	for i, zero := range []bool{false, true} {
		open := newMessage(cmdOPEN, uint32(i+1), 0, []byte("exec:echo "+strings.Repeat("x", 53)+"\x00"), false)
		if err := errors.Join(w.out(h.ctx, open.bytes()), w.out(h.ctx, open.payload)); err != nil {
			t.Fatal(err)
		}
		if zero {
			if err := w.out(h.ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		m := h.expect(cmdOKAY)
		h.readStream(m.arg1, m.arg0)
	}
	noViolations(t, p)
}

// transferred is what one read gave.
func transferred(t *testing.T, ctx context.Context, r *phonesimtest.Read) (usbredir.Status, []byte) {
	t.Helper()
	reply, err := r.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Status, reply.Data
}

// The reads of these tests ask a phone for "source:1024", whose WRTE has a payload of two full packets at high speed.
func openSource(t *testing.T) (*host, *phonesimtest.Guest, *Phone) {
	p := newPhoneT(t, Config{HighSpeed: true})
	h, g := dialUSB(t, p)
	h.connect(hostFeatures)
	h.open("source:1024")
	return h, g, p
}

func TestReadThatIsTooSmallBabbles(t *testing.T) {
	h, g, p := openSource(t)
	if status, b := transferred(t, h.ctx, g.StartIn(24)); status != usbredir.StatusSuccess || len(b) != 24 {
		t.Fatalf("header: %v, %d bytes", status, len(b))
	}
	if status, b := transferred(t, h.ctx, g.StartIn(600)); status != usbredir.StatusBabble || len(b) != 512 {
		t.Errorf("600 bytes of 1024: %v, %d bytes", status, len(b))
	}
	expectRecorded(t, p, RuleReadSize)
}

func TestLongTransferGoesOnInTheNextRead(t *testing.T) {
	h, g, p := openSource(t)
	reads := []*phonesimtest.Read{g.StartIn(512), g.StartIn(512), g.StartIn(512)}
	for i, want := range []int{24, 512, 512} {
		if status, b := transferred(t, h.ctx, reads[i]); status != usbredir.StatusSuccess || len(b) != want {
			t.Errorf("read %d: %v, %d bytes, want %d", i, status, len(b), want)
		}
	}
	noViolations(t, p)
}

// TestFullPacketsDoNotEndAReadThatAsksForMore: there is no zero-length packet from the phone, so such a read waits, and
// the next header runs into it.
func TestFullPacketsDoNotEndAReadThatAsksForMore(t *testing.T) {
	h, g, _ := openSource(t)
	transferred(t, h.ctx, g.StartIn(512))
	read := g.StartIn(4096)
	ctx, cancel := context.WithTimeout(h.ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := read.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the read has ended")
	}
	h.send(cmdOKAY, 1, 1, "") // CLSE follows
	if status, b := transferred(t, h.ctx, read); status != usbredir.StatusSuccess || len(b) != 1024+24 {
		t.Errorf("%v, %d bytes", status, len(b))
	}
}

func TestCancelledReadKeepsWhatCame(t *testing.T) {
	h, g, _ := openSource(t)
	transferred(t, h.ctx, g.StartIn(512))
	read := g.StartIn(4096)
	idle := g.StartIn(64)
	for _, r := range []*phonesimtest.Read{read, idle} {
		if err := r.Cancel(); err != nil {
			t.Fatal(err)
		}
	}
	if status, b := transferred(t, h.ctx, read); status != usbredir.StatusCancelled || len(b) != 1024 {
		t.Errorf("%v, %d bytes", status, len(b))
	}
	if status, b := transferred(t, h.ctx, idle); status != usbredir.StatusCancelled || len(b) != 0 {
		t.Errorf("%v, %d bytes", status, len(b))
	}
}

func TestRequestsThatSomePhonesDoNotSurvive(t *testing.T) {
	p := newPhoneT(t, Config{})
	h, g := dialUSB(t, p)
	if _, err := g.Control(h.ctx, 0x02, clearFeature, featureEndpointHalt, 0x81, 0); err != nil {
		t.Fatal(err)
	}
	if err := g.SetAlternate(h.ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	expectRecorded(t, p, RuleClearHalt, RuleSetInterface)
}

func TestUnconfiguredDeviceStalls(t *testing.T) {
	p := newPhoneT(t, Config{})
	h, g := plugInUSB(t, p)
	if r, err := g.Out(h.ctx, make([]byte, 24)); err != nil || r.Status != usbredir.StatusStall {
		t.Errorf("write: %v, %v", r.Status, err)
	}
	if r, err := g.In(h.ctx, 64); err != nil || r.Status != usbredir.StatusStall {
		t.Errorf("read: %v, %v", r.Status, err)
	}
	if err := g.SetConfiguration(h.ctx, 2); err == nil {
		t.Error("configuration 2 was accepted")
	}
}

func TestResetStartsTheDaemonAnew(t *testing.T) {
	system := testSystem()
	p := newPhoneT(t, Config{System: system})
	h, g := dialUSB(t, p)
	h.connect(hostFeatures)
	h.open("shell:sleep 1000")
	h.send(cmdOPEN, 2, 0, "exec:bytes 100000\x00") // replies are left in the endpoint
	h.wire.(usbWire).out(h.ctx, newMessage(cmdWRTE, 2, 2, make([]byte, 100), false).bytes())
	if err := g.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := g.SetConfiguration(h.ctx, 1); err != nil {
		t.Fatal(err)
	}
	h.connect(hostFeatures)
	if out := h.run("exec:echo alive"); out != "alive\n" {
		t.Errorf("got %q", out)
	}
	noViolations(t, p)
}

func TestRebootLeavesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := make(chan string, 1)
		p := newPhoneT(t, Config{RebootDelay: 5 * time.Second, OnReboot: func(s string) { targets <- s }})
		h, g := dialUSB(t, p)
		h.connect(hostFeatures)
		h.send(cmdOPEN, 1, 0, "reboot:recovery\x00")
		start := time.Now()
		if _, err := g.WaitDevice(h.ctx); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("back after %v", d)
		}
		if got := <-targets; got != "recovery" {
			t.Errorf("target %q", got)
		}
		if err := g.SetConfiguration(h.ctx, 1); err != nil {
			t.Fatal(err)
		}
		h.connect(hostFeatures)
		noViolations(t, p)
	})
}

func TestUnplug(t *testing.T) {
	p := newPhoneT(t, Config{})
	h, g := dialUSB(t, p)
	h.connect(hostFeatures)
	h.open("shell:sleep 1000")
	p.Unplug()
	if err := h.expectServed(); !errors.Is(err, ErrUnplugged) {
		t.Errorf("ended with %v", err)
	}
	if _, err := g.In(h.ctx, 64); !errors.Is(err, phonesimtest.ErrGone) {
		t.Errorf("read: %v", err)
	}
}

func TestStringsAndFeatures(t *testing.T) {
	p := newPhoneT(t, Config{USB: USB{Manufacturer: "Maker"}})
	h, g := dialUSB(t, p)
	for index, want := range map[uint16]string{stringManufacturer: "Maker", stringProduct: "Sim 1", stringInterface: "ADB Interface"} {
		if r := descriptor(t, h, g, stringDescriptor, index, 255); !bytes.Equal(r.Data, encodeString(utf16.Encode([]rune(want)))) {
			t.Errorf("string %d: % x, want %q", index, r.Data, want)
		}
	}
	if r := descriptor(t, h, g, stringDescriptor, stringLanguages, 255); !bytes.Equal(r.Data, []byte{4, 3, 9, 4}) {
		t.Errorf("languages % x", r.Data)
	}
	if r, err := g.Control(h.ctx, 0x80, getConfiguration, 0, 0, 1); err != nil || !bytes.Equal(r.Data, []byte{1}) {
		t.Errorf("configuration % x, %v", r.Data, err)
	}
	if r, err := g.Control(h.ctx, 0xc0, 0x51, 0, 0, 2); err != nil || r.Status != usbredir.StatusStall {
		t.Errorf("a vendor's request: %v, %v", r.Status, err)
	}
	for _, endpoint := range []uint16{0x01, 0x81} { // a host may halt an endpoint, too
		if _, err := g.Control(h.ctx, 0x02, setFeature, featureEndpointHalt, endpoint, 0); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := g.In(h.ctx, 64); err != nil || r.Status != usbredir.StatusStall {
		t.Errorf("read: %v, %v", r.Status, err)
	}
	if r, err := g.Out(h.ctx, make([]byte, 24)); err != nil || r.Status != usbredir.StatusStall {
		t.Errorf("write: %v, %v", r.Status, err)
	}
	noViolations(t, p)
}
