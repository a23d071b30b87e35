//go:build linux

package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bell is an event source that a test rings.
type bell struct {
	ring   chan struct{}
	closed chan struct{}
}

func newBell() *bell { return &bell{make(chan struct{}), make(chan struct{})} }

func (b *bell) wait() error {
	select {
	case <-b.ring:
		return nil
	case <-b.closed:
		return os.ErrClosed
	}
}

func (b *bell) close() error { close(b.closed); return nil }

type watch struct {
	t      *testing.T
	w      *Watcher
	cancel context.CancelFunc
}

func startWatch(t *testing.T, opts Options) watch {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := watch{t, Watch(ctx, opts), cancel}
	t.Cleanup(func() {
		cancel()
		for range w.w.Events() {
		}
	})
	return w
}

func (w watch) expect(kind Kind, path string, address int) {
	w.t.Helper()
	select {
	case e := <-w.w.Events():
		if e.Kind != kind || e.Device.Path != path || e.Device.Address != address {
			w.t.Errorf("got %v %v address %d, want %v %s address %d", e.Kind, e.Device, e.Device.Address, kind, path, address)
		}
	case <-time.After(5 * time.Second):
		w.t.Fatalf("no event; want %v %s", kind, path)
	}
}

func (w watch) quiet(d time.Duration) {
	w.t.Helper()
	select {
	case e := <-w.w.Events():
		w.t.Errorf("unexpected %v %v", e.Kind, e.Device)
	case <-time.After(d):
	}
}

func TestPlugAndUnplugByKernelEvent(t *testing.T) {
	tr, b := newTree(t), newBell()
	tr.plug("1-1", 2, 0, "A")
	w := startWatch(t, Options{Sysfs: tr.root, Reread: time.Hour, Settle: time.Millisecond, listen: func() (events, error) { return b, nil }})
	w.expect(Added, "1-1", 2)
	tr.plug("1-2", 3, 0, "B")
	b.ring <- struct{}{}
	w.expect(Added, "1-2", 3)
	tr.unplug("1-1")
	b.ring <- struct{}{}
	w.expect(Removed, "1-1", 2)
	b.ring <- struct{}{}
	w.quiet(50 * time.Millisecond)
}

func TestMissedEventIsMadeGood(t *testing.T) {
	tr := newTree(t)
	deaf := func() (events, error) { return nil, errors.New("no netlink here") }
	w := startWatch(t, Options{Sysfs: tr.root, Reread: 20 * time.Millisecond, listen: deaf})
	tr.plug("1-1", 2, 0, "A")
	w.expect(Added, "1-1", 2)
	// Unplugged and plugged between two looks: same port, new number.
	tr.write("1-1", map[string]string{"devnum": "9"})
	w.expect(Removed, "1-1", 2)
	w.expect(Added, "1-1", 9)
}

// TestEachReadingOfTheBusIsARound: a watchdog is fed by it, and must not be while nobody takes what was seen.
func TestEachReadingOfTheBusIsARound(t *testing.T) {
	tr := newTree(t)
	rounds := make(chan struct{}, 1)
	round := func() {
		select {
		case rounds <- struct{}{}:
		default:
		}
	}
	deaf := func() (events, error) { return nil, errors.New("no netlink here") }
	w := startWatch(t, Options{Sysfs: tr.root, Reread: 5 * time.Millisecond, Round: round, listen: deaf})
	for range 3 {
		<-rounds
	}
	tr.plug("1-1", 2, 0, "A")
	time.Sleep(50 * time.Millisecond) // the event waits for its reader
	select {
	case <-rounds:
	default:
	}
	time.Sleep(50 * time.Millisecond)
	if len(rounds) > 0 {
		t.Error("rounds go on although nobody takes the event")
	}
	w.expect(Added, "1-1", 2)
	<-rounds
}

func TestPhoneThatCannotBeReadIsNotTakenForGone(t *testing.T) {
	tr := newTree(t)
	w := startWatch(t, Options{Sysfs: tr.root, Reread: 10 * time.Millisecond})
	tr.plug("1-1", 2, 0, "A")
	w.expect(Added, "1-1", 2)
	tr.write("1-1", map[string]string{"devnum": "garbage"})
	w.quiet(100 * time.Millisecond)
	if err := os.Rename(tr.devices(), tr.devices()+".away"); err != nil {
		t.Fatal(err)
	}
	w.quiet(100 * time.Millisecond)
}

func TestKernelSocketOpensAndCloses(t *testing.T) {
	u, err := listenUevents()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- u.wait() }()
	time.Sleep(10 * time.Millisecond)
	if err := u.close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("wait returned without an event after close")
		}
	case <-time.After(5 * time.Second):
		t.Error("close did not end wait")
	}
}

func TestOnlyUSBEventsCount(t *testing.T) {
	usb := "add@/devices/pci/usb1/1-1\x00ACTION=add\x00SUBSYSTEM=usb\x00SEQNUM=1\x00"
	if !isUSB([]byte(usb)) {
		t.Error("a USB event was not seen")
	}
	for _, other := range []string{"", "add@/x\x00SUBSYSTEM=block\x00", "add@/SUBSYSTEM=usb", "x\x00SUBSYSTEM=usbmisc\x00"} {
		if isUSB([]byte(other)) {
			t.Errorf("%q taken for a USB event", other)
		}
	}
}

// TestAPhoneWhoseKernelLockIsHeldHidesNoOther: during a reset the kernel gives neither its strings nor its configuration, for as
// long as a minute. A pipe that nobody writes into keeps a reader waiting as well.
func TestAPhoneWhoseKernelLockIsHeldHidesNoOther(t *testing.T) {
	tr, b := newTree(t), newBell()
	tr.plug("1-1", 2, 0, "A")
	w := startWatch(t, Options{Sysfs: tr.root, Reread: time.Hour, Settle: time.Millisecond, listen: func() (events, error) { return b, nil }})
	w.expect(Added, "1-1", 2)
	var kept []string
	for _, name := range []string{"serial", "manufacturer", "product", "bConfigurationValue"} {
		path := filepath.Join(tr.devices(), "1-1", name)
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, path)
	}
	defer func() { // whoever waits there all the same is let go
		for _, path := range kept {
			if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				f.Close()
			}
		}
	}()
	tr.plug("1-2", 3, 0, "B")
	b.ring <- struct{}{}
	w.expect(Added, "1-2", 3)
	tr.unplug("1-1")
	b.ring <- struct{}{}
	w.expect(Removed, "1-1", 2)
}
