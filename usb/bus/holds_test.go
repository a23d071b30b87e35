package bus

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatAPortHolds(t *testing.T) {
	sysfs := t.TempDir()
	put := func(device, iface, class, sub, proto string) {
		root := filepath.Join(sysfs, "bus/usb/devices")
		for _, dir := range []string{device, iface} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range map[string]string{"bInterfaceClass": class, "bInterfaceSubClass": sub, "bInterfaceProtocol": proto} {
			if err := os.WriteFile(filepath.Join(root, iface, name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("1-1.1", "1-1.1:1.0", "06", "01", "01") // files beside ADB
	put("1-1.1", "1-1.1:1.1", "ff", "42", "01")
	put("1-1.2", "1-1.2:1.0", "ff", "42", "03")
	put("1-1.3", "1-1.3:1.0", "06", "01", "01")
	put("1-1.30", "1-1.30:1.0", "ff", "42", "01") // no part of 1-1.3
	for path, want := range map[string]Holding{
		"1-1.1": ADB, "1-1.2": Fastboot, "1-1.3": Other, "1-1.4": Nothing, "../1-1.1": Nothing,
	} {
		if got := Holds(sysfs, path); got != want {
			t.Errorf("%s holds %d, want %d", path, got, want)
		}
	}
}
