package firmware_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/hal/power"
)

const (
	fortyHubs   = 10
	portsPerHub = 4
)

// fortyPorts are ten hubs of four ports that answer control transfers, in folders that stand for sysfs, without the attribute
// "disable".
type fortyPorts struct {
	t    *testing.T
	root string

	mu      sync.Mutex // guards all below
	devnum  int        // of the first hub; the others follow
	on      [fortyHubs][portsPerHub + 1]bool
	edges   []time.Time // of ports that were switched on
	refused int         // requests to a hub that has come anew since
}

func newFortyPorts(t *testing.T) *fortyPorts {
	f := &fortyPorts{t: t, root: t.TempDir(), devnum: 10}
	f.enumerate()
	return f
}

// enumerate has all hubs come anew with all ports off, as after a cut of their power.
func (f *fortyPorts) enumerate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.devnum += fortyHubs
	f.on = [fortyHubs][portsPerHub + 1]bool{}
	for h := range fortyHubs {
		dir := filepath.Join(f.root, "bus/usb/devices", fmt.Sprintf("1-%d", h+1))
		for name, text := range map[string]string{"busnum": "1", "devnum": fmt.Sprint(f.devnum + h), "speed": "480"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				f.t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
				f.t.Error(err)
			}
		}
	}
}

// control is a power.USB's Control.
func (f *fortyPorts) control(file string, s power.Setup, data []byte, _ time.Duration) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var dev int
	if _, err := fmt.Sscanf(file[strings.LastIndexByte(file, '/')+1:], "%d", &dev); err != nil || dev < f.devnum || dev >= f.devnum+fortyHubs {
		f.refused++
		return 0, syscall.ENODEV
	}
	port := &f.on[dev-f.devnum][s.Index]
	switch s {
	case power.Setup{Type: 0x23, Request: 3, Value: 8, Index: s.Index}:
		if !*port {
			f.edges = append(f.edges, time.Now())
		}
		*port = true
		return 0, nil
	case power.Setup{Type: 0xa3, Request: 0, Index: s.Index}:
		status := [4]byte{}
		if *port {
			status[1] = 1
		}
		return copy(data, status[:]), nil
	}
	return 0, syscall.EPIPE
}

// allOn waits until all ports have power, and gives the most whose inrush overlapped since the last call, and the least time
// between two.
func (f *fortyPorts) allOn(settle time.Duration) (most int, closest time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		n, edges := 0, f.edges
		for h := range f.on {
			for _, on := range f.on[h] {
				if on {
					n++
				}
			}
		}
		if n == fortyHubs*portsPerHub {
			f.edges = nil
			f.mu.Unlock()
			return overlap(edges, settle)
		}
		f.mu.Unlock()
		if time.Now().After(end) {
			f.t.Fatalf("%d ports have power after a minute", n)
		}
	}
}

func overlap(edges []time.Time, settle time.Duration) (most int, closest time.Duration) {
	closest = time.Hour
	for i, at := range edges {
		n := 1
		for _, other := range edges[:i] {
			if at.Sub(other) < settle {
				n++
			}
		}
		if most = max(most, n); i > 0 {
			closest = min(closest, at.Sub(edges[i-1]))
		}
	}
	return most, closest
}

// fortyBoard is its board file.
func fortyBoard(concurrent int, stagger, settle time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"forty\"\n[power]\nconcurrent = %d\nstagger = \"%v\"\n", concurrent, stagger)
	for h := range fortyHubs {
		fmt.Fprintf(&b, "[[hub]]\nname = \"%c\"\npath = \"1-%d\"\npower = \"ports\"\nsettle = \"%v\"\n", 'A'+h, h+1, settle)
	}
	for n := range fortyHubs * portsPerHub {
		fmt.Fprintf(&b, "[[slot]]\nnumber = %d\nhub = \"%c\"\nport = %d\n", n+1, 'A'+n/portsPerHub, n%portsPerHub+1)
	}
	return b.String()
}

// TestPowerUpOfFortyPorts: from the board file to the hubs' requests, no more ports take their inrush at once than the
// configuration allows; at the start, after all hubs have come anew, and after a maintenance.
func TestPowerUpOfFortyPorts(t *testing.T) {
	for _, c := range []struct {
		concurrent      int
		stagger, settle time.Duration
		most            int // that have to be seen, so that the test sees something, also on a busy machine: a hub has one at a time
		again           bool
	}{
		{1, 0, 50 * time.Millisecond, 1, false},
		{2, 30 * time.Millisecond, 150 * time.Millisecond, 2, true},
		{4, 10 * time.Millisecond, 200 * time.Millisecond, 2, false},
		{40, 0, 300 * time.Millisecond, 2, false},
	} {
		t.Run(fmt.Sprintf("%d at once, %v apart, %v each", c.concurrent, c.stagger, c.settle), func(t *testing.T) {
			t.Parallel()
			f := newFortyPorts(t)
			check := func(when string) {
				t.Helper()
				most, closest := f.allOn(c.settle)
				t.Logf("%s: %d at once, %v apart", when, most, closest)
				if most > c.concurrent || most < c.most {
					t.Errorf("%s: %d at once", when, most)
				}
			}
			b := newUSBBench(t, newCable(), hasty, onBoard(t, fortyBoard(c.concurrent, c.stagger, c.settle)), func(o *firmware.Options) {
				usb := &power.USB{Sysfs: f.root, Control: f.control}
				var err error
				if o.Outlets, err = power.Outlets(o.Config.Board, nil, usb); err != nil || len(o.Outlets) != fortyHubs*portsPerHub {
					t.Fatalf("%d outlets, %v", len(o.Outlets), err)
				}
				o.Hubs = usb
			})
			check("at the start")
			if !c.again {
				return
			}
			f.enumerate()
			check("after the hubs have come anew")
			if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{}, nil); err != nil {
				t.Fatal(err)
			}
			f.enumerate()
			time.Sleep(6 * time.Second) // a look, and a hub's silence
			f.mu.Lock()
			if n := len(f.edges); n > 0 {
				t.Errorf("%d ports were switched during maintenance", n)
			}
			f.mu.Unlock()
			if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{Off: true}, nil); err != nil {
				t.Fatal(err)
			}
			check("after maintenance")
		})
	}
}
