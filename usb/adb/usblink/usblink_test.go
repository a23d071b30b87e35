package usblink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/gousb"
	"go.uber.org/goleak"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMapError(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"bare code", gousb.ErrorAccess, ErrAccess},
		{"wrapped code", fmt.Errorf("x: %w", gousb.ErrorNoDevice), ErrGone},
		{"gone is disconnected", gousb.ErrorNoDevice, adb.ErrDisconnected},
		// gousb v1.1.3 formats these with %v.
		{"claim", fmt.Errorf("failed to claim interface %d on %s: %v", 1, "x", gousb.ErrorBusy), ErrBusy},
		{"claim, gone", fmt.Errorf("failed to claim interface %d on %s: %v", 1, "x", gousb.ErrorNotFound), ErrGone},
		{"config", fmt.Errorf("failed to query active config of the device %s: %v", "x", gousb.ErrorNoDevice), ErrGone},
		{"submit without memory", gousb.ErrorNoMem, adb.ErrNoMemory},
		{"malloc", errors.New("gousb_alloc_transfer_and_buffer(1048576, 0) failed"), adb.ErrNoMemory},
		{"stall", gousb.TransferStall, adb.ErrStall},
		{"unplugged", gousb.TransferNoDevice, ErrGone},
		{"overflow", gousb.TransferOverflow, adb.ErrOverflow},
		{"timeout", gousb.TransferTimedOut, adb.ErrTimeout},
		{"unknown status", gousb.TransferError, gousb.TransferError},
		{"unknown code", gousb.ErrorOther, gousb.ErrorOther},
		{"another error", io.ErrClosedPipe, io.ErrClosedPipe},
		{"none", nil, nil},
	} {
		if got := mapError(test.err); !errors.Is(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestErrorNamesThePort(t *testing.T) {
	err := error(&Error{"1-1.2", "opening", mapError(gousb.ErrorBusy)})
	if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), "usb 1-1.2: opening: the ADB interface is held") {
		t.Error(err)
	}
}

func TestRetry(t *testing.T) {
	for _, test := range []struct {
		name     string
		errs     []error
		want     error
		attempts int
		pause    time.Duration
	}{
		{"at once", []error{nil}, nil, 1, 0},
		{"udev is late", []error{ErrAccess, ErrAccess, nil}, nil, 3, 400 * time.Millisecond},
		{"held for good", []error{ErrBusy, ErrBusy, ErrBusy, ErrBusy}, ErrBusy, 4, 600 * time.Millisecond},
		{"gone", []error{ErrGone}, ErrGone, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, start := 0, time.Now()
				_, err := retry(t.Context(), bus.Device{Path: "1-1"}, "opening", func() (int, error) {
					attempts++
					return 1, test.errs[attempts-1]
				}, func(int) { t.Error("undone") })
				if !errors.Is(err, test.want) || attempts != test.attempts || time.Since(start) != test.pause {
					t.Errorf("%v after %d attempts and %v", err, attempts, time.Since(start))
				}
			})
		})
	}
}

func TestRetryGivesUpAStuckAttemptAndUndoesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var undone atomic.Bool
		slow := func() (int, error) {
			time.Sleep(time.Minute)
			return 7, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := retry(ctx, bus.Device{}, "opening", slow, func(v int) { undone.Store(v == 7) }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		if _, err := retry(t.Context(), bus.Device{}, "opening", slow, func(int) {}); !errors.Is(err, adb.ErrTimeout) || time.Since(start) != openPatience {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(2 * time.Minute)
		if !undone.Load() {
			t.Error("a late success was not undone")
		}
	})
}

// transfer is a fake endpoint: it waits, then reports n bytes and err; when
// cancelled it takes late to come back.
type transfer struct {
	wait, late time.Duration
	n          int
	err        error
}

func (f transfer) do(ctx context.Context, _ []byte) (int, error) {
	select {
	case <-time.After(f.wait):
		return f.n, f.err
	case <-ctx.Done():
		time.Sleep(f.late)
		return f.n, gousb.TransferCancelled
	}
}
func (f transfer) ReadContext(ctx context.Context, b []byte) (int, error)  { return f.do(ctx, b) }
func (f transfer) WriteContext(ctx context.Context, b []byte) (int, error) { return f.do(ctx, b) }

func TestTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := false
		e := newEndpoints(transfer{n: 24}, transfer{wait: time.Hour, n: 5}, func() error { released = true; return nil })
		if n, err := e.Read(t.Context(), nil); n != 24 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// Bytes of a cancelled transfer are kept.
		if n, err := e.Write(ctx, nil); n != 5 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := e.Write(ctx, nil); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := e.Write(context.Background(), nil)
			done <- err
		}()
		synctest.Wait()
		if err := e.Close(); err != nil || !released {
			t.Errorf("%v, released %v", err, released)
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) || !errors.Is(err, adb.ErrDisconnected) {
			t.Errorf("pending at Close: %v", err)
		}
		if _, err := e.Read(t.Context(), nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestStuckTransferIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released atomic.Bool
		e := newEndpoints(transfer{wait: time.Hour, late: time.Minute}, transfer{}, func() error { released.Store(true); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := e.Read(ctx, nil); !errors.Is(err, ErrStuck) || time.Since(start) != time.Second+cancelPatience {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		start = time.Now()
		if err := e.Close(); !errors.Is(err, ErrStuck) || time.Since(start) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if released.Load() {
			t.Error("the handle was released under a pending transfer")
		}
		time.Sleep(2 * time.Minute)
		if !released.Load() {
			t.Error("never released")
		}
	})
}

// A connection over a link whose transfers get stuck still closes.
func TestConnOverStuckTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoints(transfer{wait: time.Hour, late: time.Hour}, transfer{wait: time.Hour, late: time.Hour}, func() error { return nil })
		l, err := adb.NewBulkLink(e, adb.BulkOptions{MaxPacket: 512})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := adb.Connect(t.Context(), l, adb.Options{WriteTimeout: time.Second}); err == nil || time.Since(start) > 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(3 * time.Hour)
	})
}

func setting(number, alternate int, class gousb.Class) gousb.InterfaceSetting {
	return gousb.InterfaceSetting{
		Number: number, Alternate: alternate, Class: class, SubClass: 0x42, Protocol: 1,
		Endpoints: map[gousb.EndpointAddress]gousb.EndpointDesc{
			0x81: {Address: 0x81, Number: 1, Direction: gousb.EndpointDirectionIn, TransferType: gousb.TransferTypeBulk, MaxPacketSize: 512},
			0x01: {Address: 0x01, Number: 1, Direction: gousb.EndpointDirectionOut, TransferType: gousb.TransferTypeBulk, MaxPacketSize: 512},
		},
	}
}

func TestReshape(t *testing.T) {
	d := bus.Device{Interface: 3, In: 0x81, Out: 0x01}
	other := gousb.InterfaceDesc{Number: 0, AltSettings: []gousb.InterfaceSetting{setting(0, 0, 6)}}
	adbAt := func(settings ...gousb.InterfaceSetting) []gousb.InterfaceDesc {
		return []gousb.InterfaceDesc{other, {Number: 3, AltSettings: settings}}
	}
	for _, test := range []struct {
		name      string
		in        []gousb.InterfaceDesc
		alternate int
		settings  int // more than one makes gousb send SET_INTERFACE
		want      error
	}{
		{"only setting", adbAt(setting(3, 0, 0xff)), 0, 1, nil},
		{"first of two settings", adbAt(setting(3, 0, 0xff), setting(3, 1, 0xff)), 0, 1, nil},
		{"alternate setting", adbAt(setting(3, 0, 0x08), setting(3, 2, 0xff)), 2, 2, nil},
		{"not ADB", adbAt(setting(3, 0, 0x08)), 0, 0, ErrDescriptor},
		{"no such interface", []gousb.InterfaceDesc{other}, 0, 0, ErrDescriptor},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, alternate, err := reshape(test.in, d)
			if !errors.Is(err, test.want) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if alternate != test.alternate || got[3].Number != 3 || len(got[3].AltSettings) != test.settings {
				t.Errorf("alternate %d of %+v", alternate, got)
			}
			if len(test.in[1].AltSettings) == 2 && test.in[1].AltSettings[1].Alternate == 0 {
				t.Error("the caller's descriptors were changed")
			}
		})
	}
	d.Out = 0x02
	if _, _, err := reshape(adbAt(setting(3, 0, 0xff)), d); !errors.Is(err, ErrDescriptor) {
		t.Errorf("other endpoint: %v", err)
	}
}

func TestSamePath(t *testing.T) {
	desc := &gousb.DeviceDesc{Bus: 1, Path: []int{1, 12}}
	for path, want := range map[string]bool{"1-1.12": true, "": true, "1-1.1": false, "2-1.12": false, "1-1.12.3": false} {
		if samePath(desc, path) != want {
			t.Errorf("%q", path)
		}
	}
}

// Without USB on this machine libusb must still start, or fail with a sentence.
func TestHostWithoutDevices(t *testing.T) {
	h, err := New()
	if err != nil {
		if !strings.Contains(err.Error(), "libusb does not start") {
			t.Error(err)
		}
		return
	}
	d := bus.Device{Path: "99-9", Bus: 99, Address: 9, Config: 1, MaxPacket: 512, In: 0x81, Out: 1}
	if _, err := h.Open(t.Context(), d); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "usb 99-9") {
		t.Errorf("open: %v", err)
	}
	if err := h.Reset(t.Context(), d); !errors.Is(err, ErrGone) {
		t.Errorf("reset: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Open(t.Context(), d); !errors.Is(err, net.ErrClosed) {
		t.Errorf("open after Close: %v", err)
	}
}
