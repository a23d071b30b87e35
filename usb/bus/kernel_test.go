package bus

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestWhatTheKernelSaysOfPorts(t *testing.T) {
	for _, test := range []struct {
		name, record string
		want         message
		is           bool
	}{
		{"a port whose device was given up", "3,801,1200000,-;usb 1-1-port2: unable to enumerate USB device", message{Path: "1-1.2", Trouble: Unreadable}, true},
		{"a port of a root hub", "3,801,1200000,-;usb usb2-port4: unable to enumerate USB device", message{Path: "2-4", Trouble: Unreadable}, true},
		{"an attempt that failed", "3,77,5,-;usb 1-1.4.3: device descriptor read/64, error -71\n SUBSYSTEM=usb\n DEVICE=c189:9", message{Path: "1-1.4.3", Trouble: Unreadable}, true},
		{"no answer", "3,77,5,-;usb 1-1.4: device descriptor read/all, error -110", message{Path: "1-1.4", Trouble: Unreadable}, true},
		{"no address", "3,77,5,-;usb 1-1.4: device not accepting address 17, error -71", message{Path: "1-1.4", Trouble: Unreadable}, true},
		{"no configuration", "3,77,5,-;usb 1-1.4: can't read configurations, error -71", message{Path: "1-1.4", Trouble: Unreadable}, true},
		{"no number is left", "3,9,5,-;usb 1-1-port6: couldn't allocate usb_device", message{Path: "1-1.6", Trouble: Full}, true},
		{"no resources are left", "4,9,5,-;usb 1-1.5: Not enough host controller resources for new device state.", message{Path: "1-1.5", Trouble: Full}, true},
		{"no bandwidth is left", "4,9,5,-;usb 1-1.5: Not enough bandwidth for new device state.", message{Path: "1-1.5", Trouble: Full}, true},
		{"no memory for a configuration", "3,9,5,-;usb 1-1.5: can't set config #1, error -12", message{Path: "1-1.5", Trouble: Full}, true},
		{"a configuration that the phone refused", "3,9,5,-;usb 1-1.5: can't set config #1, error -32", message{}, false},
		{"the controller's bound", "3,9,5,-;xhci_hcd 0000:01:00.0: Max number of devices this xHCI host supports is 32.", message{Most: 32}, true},
		{"of a platform's controller", "3,9,5,-;xhci-hcd xhci-hcd.0: Max number of devices this xHCI host supports is 64.", message{Most: 64}, true},
		{"a device that came", "6,9,5,-;usb 1-1.5: New USB device found, idVendor=18d1, idProduct=4ee7, bcdDevice= 4.04", message{Path: "1-1.5"}, true},
		{"a device that left", "6,9,5,-;usb 1-1.5: USB disconnect, device number 4", message{Path: "1-1.5"}, true},
		{"something else", "6,9,5,-;usb 1-1.5: new high-speed USB device number 5 using xhci_hcd", message{}, false},
		{"words of a phone", "6,9,5,-;usb 1-1.5: Product: 1-1-port2: unable to enumerate USB device", message{}, false},
		{"words of a phone at the end", "6,9,5,-;usb 1-1.5: Product: x USB disconnect, device number 4", message{}, false},
		{"words of a process", "11,9,5,-;usb 1-1-port2: unable to enumerate USB device", message{}, false},
		{"no record", "usb 1-1-port2: unable to enumerate USB device", message{}, false},
		{"nothing", "", message{}, false},
		{"too long", "3,9,5,-;usb 1-1-port2: unable to enumerate USB device\n" + strings.Repeat("x", maxRecord), message{}, false},
		{"no port path", "3,9,5,-;usb 1-1.2.3.4.5.6.7.8-port1: unable to enumerate USB device", message{}, false},
	} {
		if got, is := parseRecord([]byte(test.record)); is != test.is || is && got != test.want {
			t.Errorf("%s: %+v %v, want %+v %v", test.name, got, is, test.want, test.is)
		}
	}
}

// script is a log of a test.
type script struct {
	records []string
	err     error
}

func (s *script) Record() ([]byte, error) {
	if len(s.records) == 0 {
		if s.err != nil {
			return nil, s.err
		}
		return nil, io.EOF
	}
	r := s.records[0]
	s.records = s.records[1:]
	return []byte(r), nil
}

func TestTroublesComeAndGo(t *testing.T) {
	var all Troubles
	tell := func(records ...string) {
		t.Helper()
		if err := all.Read(&script{records: records}); err != nil {
			t.Fatal(err)
		}
	}
	tell("3,1,1,-;usb 1-1-port2: unable to enumerate USB device",
		"3,2,1,-;xhci_hcd 0000:01:00.0: Max number of devices this xHCI host supports is 32.",
		"3,3,1,-;usb 1-1-port3: couldn't allocate usb_device", "3,4,1,-;usb 1-1.4-port1: couldn't allocate usb_device")
	full, most := all.Full()
	slices.Sort(full)
	if all.At("1-1.2") != Unreadable || all.At("1-1.1") != NoTrouble || !slices.Equal(full, []string{"1-1.3", "1-1.4.1"}) || most != 32 {
		t.Errorf("%v, full %v of %d", all.ports, full, most)
	}
	tell("6,5,1,-;usb 1-1.2: New USB device found, idVendor=18d1, idProduct=4ee7, bcdDevice= 4.04")
	if all.At("1-1.2") != NoTrouble {
		t.Error("a device that came after all is still a trouble")
	}
	tell("6,6,1,-;usb 1-1.4: USB disconnect, device number 4")
	if all.At("1-1.4.1") != NoTrouble || all.At("1-1.3") != Full {
		t.Errorf("after the hub has left: %v", all.ports)
	}
	all.Forget("1-1.3")
	if full, _ := all.Full(); len(full) != 0 {
		t.Errorf("forgotten: %v", full)
	}
	broken := errors.New("broken")
	if err := all.Read(&script{records: []string{"3,1,1,-;usb 1-1-port2: unable to enumerate USB device"}, err: broken}); !errors.Is(err, broken) || all.At("1-1.2") != Unreadable {
		t.Errorf("a log that breaks: %v, %v", err, all.ports)
	}
}

func TestTroublesAreBounded(t *testing.T) {
	var all Troubles
	for n := range 3 * maxPorts {
		all.take(message{Path: fmt.Sprintf("1-%d.%d", n/100, n%100), Trouble: Full})
	}
	if len(all.ports) > maxPorts {
		t.Errorf("%d ports", len(all.ports))
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{
		"3,801,1200000,-;usb 1-1-port2: unable to enumerate USB device\n SUBSYSTEM=usb", "3,9,5,-;xhci_hcd 0000:01:00.0: Max number of devices this xHCI host supports is 32.",
		"4,9,5,-;usb 1-1.5: Not enough bandwidth for new device state.", "6,9,5,-;usb 1-1.5: USB disconnect, device number 4", "11,9,5,-;x", ";",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		m, ok := parseRecord(record)
		if !ok {
			return
		}
		if m.Path == "" && (m.Most <= 0 || m.Trouble != NoTrouble) || m.Path != "" && !portPath.MatchString(m.Path) {
			t.Errorf("%q gives %+v", record, m)
		}
	})
}
