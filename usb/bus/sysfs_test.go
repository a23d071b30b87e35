package bus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScanReadsThePhone(t *testing.T) {
	tr := newTree(t)
	tr.write("usb1", map[string]string{"busnum": "1", "devnum": "1"})
	tr.write("1-1", map[string]string{"busnum": "1", "devnum": "2"}) // a hub
	tr.write("1-1:1.0", map[string]string{"bInterfaceNumber": "00", "bInterfaceClass": "09", "bInterfaceSubClass": "00", "bInterfaceProtocol": "00"})
	tr.plug("1-1.2", 7, 1, "SIM0001") // composite: ADB is the second interface
	tr.write("1-1.2:1.0", map[string]string{"bInterfaceNumber": "00", "bInterfaceClass": "06", "bInterfaceSubClass": "01", "bInterfaceProtocol": "01"})

	got, err := Scan(tr.root)
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{{
		Path: "1-1.2", Bus: 1, Address: 7, Serial: "SIM0001", Manufacturer: "Sim", Product: "Phone", VendorID: 0x18d1, ProductID: 0x4ee7,
		Speed: 480, Config: 1, Interface: 1, In: 0x81, Out: 0x01, MaxPacket: 512,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSerialsThatNameNothingAreToldApartByPort(t *testing.T) {
	tr := newTree(t)
	tr.plug("1-1", 2, 0, "0123456789ABCDEF")
	tr.plug("1-2", 3, 0, "0123456789ABCDEF")
	tr.plug("1-3", 4, 0, "")
	tr.plug("1-4", 5, 0, "??????")
	tr.plug("1-5", 6, 0, "a\x00\xff\x1b[31m"+strings.Repeat("x", 500))
	got, err := Scan(tr.root)
	if err != nil || len(got) != 5 {
		t.Fatalf("got %d phones, %v", len(got), err)
	}
	usable := map[string]bool{"1-1": true, "1-2": true}
	for i, d := range got {
		if d.SerialUsable() != usable[d.Path] {
			t.Errorf("%v: usable %v", d, d.SerialUsable())
		}
		if i > 0 && d.Path == got[i-1].Path {
			t.Errorf("two phones at %s", d.Path)
		}
	}
	if s := got[4].Serial; !strings.HasPrefix(s, `a\x00\xff\x1b[31mx`) || len(s) > 200 {
		t.Errorf("garbage serial came out as %q", s)
	}
}

func TestOneBadDeviceHidesNoOther(t *testing.T) {
	for name, attributes := range map[string]map[string]string{
		"number that is none": {"devnum": "seven"},
		"empty attribute":     {"busnum": ""},
		"too large":           {"devnum": "999"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			tr.plug("1-1", 2, 0, "A")
			tr.plug("1-2", 3, 0, "B")
			tr.write("1-1", attributes)
			got, err := Scan(tr.root)
			if len(got) != 1 || got[0].Path != "1-2" {
				t.Errorf("got %v", got)
			}
			if err == nil || !strings.Contains(err.Error(), "port 1-1: attribute") {
				t.Errorf("error %v does not name the port", err)
			}
		})
	}
}

func TestEndpointsAreRequired(t *testing.T) {
	tr := newTree(t)
	tr.plug("1-1", 2, 0, "A")
	tr.write("1-1:1.0/ep_01", map[string]string{"bmAttributes": "03"})
	if got, err := Scan(tr.root); len(got) != 0 || err == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestScanSaysWhatToDoWithoutUSB(t *testing.T) {
	_, err := Scan(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "USB support") {
		t.Error(err)
	}
}

func TestPathsAreOrderedAsPortsAre(t *testing.T) {
	order := []string{"1-1", "1-1.1", "1-1.2", "1-1.10", "1-2", "1-10", "2-1"}
	for i, a := range order {
		for j, b := range order {
			if got := ComparePaths(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("ComparePaths(%s, %s) = %d", a, b, got)
			}
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "SIM0001", "\xff\xfe", "a\nb", "中文", "\x1b]0;x\x07"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := printable(s); strings.ContainsAny(got, "\n\r\x1b\x00") || len(got) > 16*maxSerial {
			t.Errorf("%q came out as %q", s, got)
		}
	})
}
