package phonesim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/phonesim/phonesimtest"
	"phonerack/usb/phonesim/usbredir"
)

// TestUnplugAtAnyByte: the link ends after exactly the bytes that the fault allows, in both directions, on both links.
func TestUnplugAtAnyByte(t *testing.T) {
	for _, n := range []int64{1, 23, 24, 25, 40, 64, 100, 131} {
		for _, usb := range []bool{false, true} {
			for _, out := range []bool{false, true} {
				t.Run(fmt.Sprintf("byte %d, usb %t, to the phone %t", n, usb, out), func(t *testing.T) {
					f := Faults{UnplugAfterIn: n}
					if out {
						f = Faults{UnplugAfterOut: n}
					}
					p := newPhoneT(t, Config{Faults: f})
					var h *host
					if usb {
						h, _ = dialUSB(t, p)
					} else {
						h = dialStream(t, p)
					}
					// 24 bytes of header and 107 of payload, and more than that come back.
					h.trySend(cmdCNXN, versionNoSums, 1<<20, "host::features="+strings.Repeat("x", 92))
					for err := error(nil); err == nil; {
						_, err = h.wire.read(h.ctx)
					}
					if err := h.expectServed(); !errors.Is(err, ErrUnplugged) {
						t.Errorf("ended with %v", err)
					}
					p.faults.mu.Lock()
					defer p.faults.mu.Unlock()
					moved := p.faults.in
					if out {
						moved = p.faults.out
					}
					if moved != n {
						t.Errorf("%d bytes were moved", moved)
					}
				})
			}
		}
	}
}

func TestFailingTransfers(t *testing.T) {
	for failure, status := range map[TransferError]usbredir.Status{
		Stall: usbredir.StatusStall, IOError: usbredir.StatusIOError, Timeout: usbredir.StatusTimeout, Babble: usbredir.StatusBabble,
	} {
		t.Run(failure.String(), func(t *testing.T) {
			p := newPhoneT(t, Config{})
			h, g := dialUSB(t, p)
			h.connect(hostFeatures)
			for _, f := range []Faults{{FailOut: failure, FailCount: 1}, {FailIn: failure, FailCount: 1}} {
				p.SetFaults(f)
				hello := newMessage(cmdCNXN, versionNoSums, 1<<20, []byte("host::"), true)
				endpoint := uint16(0x81)
				var r phonesimtest.Reply
				var err error
				if f.FailOut != NoError {
					endpoint = 0x01
					r, err = g.Out(h.ctx, hello.bytes())
				} else {
					if err := h.wire.write(h.ctx, hello); err != nil {
						t.Fatal(err)
					}
					r, err = g.In(h.ctx, 64)
				}
				if err != nil || r.Status != status {
					t.Errorf("%+v gave %v, %v", f, r.Status, err)
				}
				if failure == Stall {
					if r, err := g.Control(h.ctx, 0x82, getStatus, 0, endpoint, 2); err != nil || !bytes.Equal(r.Data, []byte{1, 0}) {
						t.Errorf("status of the endpoint % x, %v", r.Data, err)
					}
					if _, err := g.Control(h.ctx, 0x02, clearFeature, featureEndpointHalt, endpoint, 0); err != nil {
						t.Fatal(err)
					}
				}
				if f.FailOut != NoError {
					if err := h.wire.write(h.ctx, hello); err != nil {
						t.Fatal(err)
					}
				}
				h.online()
			}
			noViolations(t, p)
		})
	}
}

func TestFailingTransfersBreakAByteStream(t *testing.T) {
	for _, f := range []Faults{{FailOut: IOError}, {FailIn: IOError}} {
		p := newPhoneT(t, Config{Faults: f})
		h := dialStream(t, p)
		h.trySend(cmdCNXN, versionNoSums, 1<<20, "host::")
		if err := h.expectServed(); !errors.Is(err, errBrokenLink) {
			t.Errorf("%+v ended with %v", f, err)
		}
	}
}

func TestHangAnswersNothing(t *testing.T) {
	for _, usb := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPhoneT(t, Config{Faults: Faults{Hang: true}})
			var h *host
			if usb {
				h, _ = dialUSB(t, p)
			} else {
				h = dialStream(t, p)
			}
			for range 3 {
				h.send(cmdCNXN, versionNoSums, 1<<20, "host::")
			}
			ctx, cancel := context.WithTimeout(h.ctx, patience/2)
			defer cancel()
			if _, err := h.wire.read(ctx); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("usb %t: %v", usb, err)
			}
		})
	}
}

func TestCorruptFrames(t *testing.T) {
	for _, test := range []struct {
		corruption Corruption
		spoilt     func(header) bool
	}{
		{Garbage, func(h header) bool { return !h.command.known() && h.magic != ^uint32(h.command) }},
		{WrongMagic, func(h header) bool { return h.command == cmdCLSE && h.magic != ^uint32(cmdCLSE) }},
		{Oversize, func(h header) bool { return h.command == cmdCLSE && h.length == 2<<30 }},
	} {
		p := newPhoneT(t, Config{Faults: Faults{Corrupt: test.corruption, CorruptAfter: 1}})
		h, g := dialUSB(t, p)
		h.connect(hostFeatures)
		h.send(cmdOPEN, 1, 0, "nonsense:\x00")
		r, err := g.In(h.ctx, 64)
		if err != nil || len(r.Data) != headerSize || !test.spoilt(parseHeader(r.Data)) {
			t.Errorf("corruption %d: % x, %v", test.corruption, r.Data, err)
		}
		h.connect(hostFeatures) // one frame only
	}
}

func TestSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPhoneT(t, Config{})
		h, _ := dialUSB(t, p)
		h.connect(hostFeatures)
		p.SetFaults(Faults{BytesPerSecond: 1000, Latency: 100 * time.Millisecond})
		start := time.Now()
		h.open("source:4976")
		h.expect(cmdWRTE)
		want := 5024*time.Millisecond + 3*100*time.Millisecond // three transfers: two headers and a payload
		if d := time.Since(start); d != want {
			t.Errorf("took %v, want %v", d, want)
		}
		p.SetFaults(Faults{})
	})
}

func TestSlowLinkIsUnpluggedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPhoneT(t, Config{})
		h, g := dialUSB(t, p)
		h.connect(hostFeatures)
		p.SetFaults(Faults{Latency: time.Hour})
		h.trySend(cmdOPEN, 1, 0, "nonsense:\x00")
		g.StartIn(64)
		synctest.Wait()
		start := time.Now()
		p.Unplug()
		if err := h.expectServed(); !errors.Is(err, ErrUnplugged) {
			t.Errorf("ended with %v", err)
		}
		if d := time.Since(start); d > flushTime {
			t.Errorf("took %v", d)
		}
	})
}

// bridged returns a phone whose daemon is that of another one, reached over a byte stream.
func bridged(t *testing.T, daemon *Phone) *Phone {
	t.Helper()
	p, err := NewBridge(Config{Serial: "BRIDGE"}, func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			daemon.ServeStream(context.Background(), far)
		}()
		t.Cleanup(func() {
			near.Close()
			<-done
		})
		return near, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBridge(t *testing.T) {
	daemon := newPhoneT(t, Config{Android: 9})
	p := bridged(t, daemon)
	for range 2 { // a daemon for each time that the phone is plugged in
		h, g := dialUSB(t, p)
		if r := descriptor(t, h, g, stringDescriptor, stringSerial, 255); !bytes.Contains(r.Data, []byte("B\x00R\x00I\x00")) {
			t.Errorf("serial % x", r.Data)
		}
		if m := h.connect(hostFeatures); !strings.Contains(string(m.payload), "features=shell_v2,cmd,stat_v2") {
			t.Errorf("banner %q", m.payload)
		}
		want := phonesimtest.Bytes(100000)
		if got := h.run("exec:bytes 100000"); got != string(want) {
			t.Errorf("%d other bytes", len(got))
		}
		g.Close()
		if err := h.expectServed(); err != nil {
			t.Error(err)
		}
	}
	noViolations(t, p)
	noViolations(t, daemon)

	h, _ := dialUSB(t, p)
	h.connect(hostFeatures)
	daemon.Unplug()
	if err := h.expectServed(); err == nil || !strings.Contains(err.Error(), "the daemon left") {
		t.Errorf("ended with %v", err)
	}
}

func TestBridgeWithoutDaemon(t *testing.T) {
	p, err := NewBridge(Config{}, func(context.Context) (net.Conn, error) { return nil, io.ErrNoProgress })
	if err != nil {
		t.Fatal(err)
	}
	h, g := plugInUSB(t, p)
	if err := g.SetConfiguration(h.ctx, 1); err == nil {
		t.Error("configured without a daemon")
	}
	if err := h.expectServed(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("ended with %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{
		{},
		{System: testSystem(), Android: 13},
		{System: testSystem(), Window: -1},
		{System: testSystem(), Auth: Auth{Keys: []string{"no key"}}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := NewBridge(Config{}, nil); err == nil {
		t.Error("a bridge without dial was accepted")
	}
}
