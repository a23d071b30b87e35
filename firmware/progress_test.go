package firmware_test

import (
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/systemd"
	"phonerack/usb/phonesim"
)

// TestSystemdIsFedByProgressAlone: without a hardware watchdog too. A phone that answers nothing is no reason to end rackd, a
// database whose writer hangs is one.
func TestSystemdIsFedByProgressAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_PID", "")
	t.Setenv("WATCHDOG_USEC", "60000")
	heard := make(chan string, 1<<16)
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			heard <- string(buf[:n])
		}
	})
	defer reading.Wait()
	defer conn.Close()
	// expect waits for a message; only those that are named may come before it.
	expect := func(want string, before ...string) {
		t.Helper()
		late := time.After(20 * time.Second)
		for {
			select {
			case got := <-heard:
				if got == want {
					return
				}
				if !slices.Contains(before, got) {
					t.Fatalf("heard %q before %q", got, want)
				}
			case <-late:
				t.Fatalf("no %q", want)
			}
		}
	}
	b := newBench(t, 2)
	b.phones[1].SetFaults(phonesim.Faults{Hang: true})
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.change = func(o *firmware.Options) {
		o.Manager, o.StoreBound = systemd.FromEnvironment(), 2*time.Second
		o.ADB.HandshakeTimeout = 100 * time.Millisecond
	}
	b.start()
	b.await(2, "ready")
	for range 50 { // a second; the silent phone is tried meanwhile
		expect("WATCHDOG=1")
	}
	letGo := make(chan struct{})
	if err := firmware.BlockStore(b.rack, letGo); err != nil {
		t.Fatal(err)
	}
	expect("STATUS=no progress: store", "WATCHDOG=1")
	select {
	case got := <-heard:
		t.Errorf("heard %q while the store hangs", got)
	case <-time.After(200 * time.Millisecond):
	}
	close(letGo)
	expect("WATCHDOG=1\nSTATUS=every part makes progress again")
	expect("WATCHDOG=1")
}
