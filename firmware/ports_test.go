package firmware

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/health"
	"phonerack/hal/power"
	"phonerack/usb/bus"
)

// records are a kernel's log of a test: err comes when all are read.
type records struct {
	all []string
	err error
}

func (r *records) Record() ([]byte, error) {
	if len(r.all) == 0 {
		return nil, r.err
	}
	defer func() { r.all = r.all[1:] }()
	return []byte(r.all[0]), nil
}

const (
	gaveUp = "3,1,1,-;usb 1-1-port2: unable to enumerate USB device"
	noRoom = "3,2,1,-;usb 1-1-port2: couldn't allocate usb_device"
	above  = "3,3,1,-;usb 2-1-port2: unable to enumerate USB device" // on the SuperSpeed half of the hub
)

func TestAPortWithoutAPhoneShowsWhatTheKernelSaid(t *testing.T) {
	for _, test := range []struct {
		name    string
		said    []string
		sysfs   []string // files below bus/usb/devices, with their text after a space
		plugged map[string]power.Answer
		outlets []power.State
		want    health.Bus
	}{
		{"nothing", nil, nil, nil, nil, health.BusEmpty},
		{"the kernel gave up", []string{gaveUp}, nil, nil, nil, health.BusFailed},
		{"the same on the other half of the hub", []string{above}, nil, nil, nil, health.BusFailed},
		{"no room", []string{noRoom}, nil, nil, nil, health.BusFull},
		{"no room for its interfaces", []string{noRoom}, []string{"1-1.2/busnum 1"}, nil, nil, health.BusFull},
		{"it came without ADB after all", []string{gaveUp}, []string{"1-1.2/busnum 1"}, nil, nil, health.BusOther},
		{"it came as fastboot after all", []string{noRoom}, []string{"1-1.2/busnum 1", "1-1.2:1.0/bInterfaceClass ff", "1-1.2:1.0/bInterfaceSubClass 42", "1-1.2:1.0/bInterfaceProtocol 03"}, nil, nil, health.BusFastboot},
		{"pulled out since", []string{gaveUp}, nil, map[string]power.Answer{"1-1.2": power.No, "2-1.2": power.No}, nil, health.BusEmpty},
		{"there on the other half", []string{above}, nil, map[string]power.Answer{"1-1.2": power.No, "2-1.2": power.Yes}, nil, health.BusFailed},
		{"its hub does not answer", []string{gaveUp}, nil, map[string]power.Answer{"1-1.2": power.No}, nil, health.BusFailed},
		{"its power was off since", []string{gaveUp}, nil, nil, []power.State{{Name: "port", Slots: []int{2}}}, health.BusEmpty},
		{"its power is being cycled", []string{gaveUp, above}, nil, nil, []power.State{{Name: "port", Slots: []int{2}, Wanted: true, Busy: "cycling"}}, health.BusEmpty},
		{"its power is on", []string{gaveUp}, nil, nil, []power.State{{Name: "port", Slots: []int{2}, Wanted: true}}, health.BusFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			sysfs := t.TempDir()
			for _, f := range test.sysfs {
				name, text, _ := strings.Cut(f, " ")
				name = filepath.Join(sysfs, "bus/usb/devices", name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text+"\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			p := &ports{
				sysfs: sysfs, records: &records{test.said, io.EOF}, log: slog.New(slog.DiscardHandler), dark: map[string]bool{}, twins: map[string]string{"1-1.2": "2-1.2"},
				connected: func(path string) power.Answer { return test.plugged[path] },
			}
			p.round(test.outlets, func(slot int) string { return fmt.Sprintf("1-1.%d", slot) })
			if l, ok := p.look("1-1.2"); !ok || l.Bus != test.want {
				t.Errorf("it shows %+v, want %s", l, test.want)
			}
			clear(test.plugged) // a plug that was pulled out is forgotten, although the hub says no more
			if l, _ := p.look("1-1.2"); l.Bus != test.want {
				t.Errorf("then it shows %+v, want %s", l, test.want)
			}
		})
	}
}

// TestAMessageAfterACycleBeganCounts: the kernel tries anew when the power is back, while the cycle still waits for the phone.
func TestAMessageAfterACycleBeganCounts(t *testing.T) {
	log := &records{[]string{gaveUp}, io.EOF}
	p := &ports{sysfs: t.TempDir(), records: log, log: slog.New(slog.DiscardHandler), dark: map[string]bool{}, connected: func(string) power.Answer { return power.Unknown }}
	outlets := []power.State{{Name: "port", Slots: []int{2}, Wanted: true, Busy: "cycling"}}
	path := func(int) string { return "1-1.2" }
	p.round(outlets, path)
	log.all = []string{noRoom}
	p.round(outlets, path)
	if l, _ := p.look("1-1.2"); l.Bus != health.BusFull {
		t.Errorf("it shows %+v", l)
	}
}

// TestAHubThatKeepsWhoAsksWaitingHoldsNobodyUp: the kernel is busy there with a phone that does not answer.
func TestAHubThatKeepsWhoAsksWaitingHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		busy := make(chan struct{})
		p := &ports{
			sysfs: t.TempDir(), log: slog.New(slog.DiscardHandler), dark: map[string]bool{},
			connected: func(string) power.Answer { asked.Add(1); <-busy; return power.No },
		}
		var all []string
		for n := range 60 {
			all = append(all, fmt.Sprintf("3,%d,1,-;usb 1-1-port%d: unable to enumerate USB device", n, n+1))
		}
		p.records = &records{all, io.EOF}
		began := time.Now()
		for range 3 { // rounds
			p.round(nil, nil)
			for n := range 60 {
				if l, _ := p.look(fmt.Sprintf("1-1.%d", n+1)); l.Bus != health.BusFailed {
					t.Fatalf("port %d shows %+v", n+1, l)
				}
			}
		}
		if took := time.Since(began); took > 3*(portsAnswer+portAnswer) || asked.Load() > 18 {
			t.Errorf("three rounds took %v, and asked %d times", took, asked.Load())
		}
		close(busy)
		synctest.Wait()
		before := asked.Load()
		p.round(nil, nil)
		if l, _ := p.look("1-1.1"); l.Bus != health.BusEmpty || asked.Load() != before+1 {
			t.Errorf("a plug that was pulled out shows %+v, asked %d times more", l, asked.Load()-before)
		}
	})
}

func TestAControllerThatIsFullIsAFindingOfTheRack(t *testing.T) {
	plugged := power.Unknown
	p := &ports{
		sysfs: t.TempDir(), log: slog.New(slog.DiscardHandler), dark: map[string]bool{}, connected: func(string) power.Answer { return plugged },
		records: &records{[]string{"3,1,1,-;xhci_hcd 0000:01:00.0: Max number of devices this xHCI host supports is 32.", noRoom, "3,2,1,-;usb 1-1-port3: couldn't allocate usb_device"}, io.EOF},
	}
	if found := p.full(); found != nil {
		t.Errorf("before: %v", found)
	}
	p.round(nil, nil)
	found := p.full()
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	if _, why, _ := found[0].Say("en"); !strings.Contains(why, "1-1.2, 1-1.3") || !strings.Contains(why, "2 of") || !strings.Contains(why, "32") {
		t.Error(why)
	}
	plugged = power.No
	if found := p.full(); found != nil {
		t.Errorf("after all were pulled out: %v", found)
	}
}

func TestAKernelsLogThatCannotBeReadIsSaidOnce(t *testing.T) {
	var said strings.Builder
	p := &ports{records: &records{[]string{gaveUp}, errors.New("broken")}, log: slog.New(slog.NewTextHandler(&said, nil)), dark: map[string]bool{}}
	for range 3 {
		p.round(nil, nil)
		p.open()()
	}
	if n := strings.Count(said.String(), "cannot be read"); n != 1 {
		t.Errorf("said %d times: %s", n, &said)
	}
}

func TestUpstream(t *testing.T) {
	for path, want := range map[string]string{"1-1.2": "1-1 2", "1-1.2.3": "1-1.2 3", "2-4": "usb2 4", "": " 0", "x": " 0"} {
		if hub, port := upstream(path); fmt.Sprint(hub, " ", port) != want {
			t.Errorf("%q: %s %d, want %s", path, hub, port, want)
		}
	}
	var _ bus.Records = (*records)(nil)
}
