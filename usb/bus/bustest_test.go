package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// tree is a folder shaped like sysfs, written by a test.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	tr := &tree{t: t, root: t.TempDir()}
	if err := os.MkdirAll(tr.devices(), 0o755); err != nil {
		t.Fatal(err)
	}
	return tr
}

func (tr *tree) devices() string { return filepath.Join(tr.root, "bus/usb/devices") }

func (tr *tree) write(path string, attributes map[string]string) {
	tr.t.Helper()
	dir := filepath.Join(tr.devices(), path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tr.t.Fatal(err)
	}
	for name, value := range attributes {
		// The kernel's attributes change in one step too.
		tmp := filepath.Join(tr.root, "new")
		if err := os.WriteFile(tmp, []byte(value+"\n"), 0o644); err != nil {
			tr.t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
			tr.t.Fatal(err)
		}
	}
}

// plug adds a phone whose ADB interface is the given one.
func (tr *tree) plug(path string, address, number int, serial string) {
	tr.t.Helper()
	iface := fmt.Sprintf("%s:1.%d", path, number)
	for _, ep := range []string{"81", "01"} {
		tr.write(filepath.Join(iface, "ep_"+ep), map[string]string{"bEndpointAddress": ep, "bmAttributes": "02", "wMaxPacketSize": "0200"})
	}
	tr.write(filepath.Join(iface, "ep_82"), map[string]string{"bEndpointAddress": "82", "bmAttributes": "03", "wMaxPacketSize": "0008"})
	tr.write(iface, map[string]string{
		"bInterfaceNumber": fmt.Sprintf("%02x", number), "bInterfaceClass": "ff", "bInterfaceSubClass": "42", "bInterfaceProtocol": "01",
	})
	tr.write(path, map[string]string{
		"busnum": "1", "devnum": fmt.Sprint(address), "idVendor": "18d1", "idProduct": "4ee7", "bConfigurationValue": "1", "speed": "480",
		"manufacturer": "Sim", "product": "Phone",
	})
	if serial != "" {
		tr.write(path, map[string]string{"serial": serial})
	}
}

func (tr *tree) unplug(path string) {
	tr.t.Helper()
	matches, err := filepath.Glob(filepath.Join(tr.devices(), path) + "*")
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, m := range matches {
		if err := os.RemoveAll(m); err != nil {
			tr.t.Fatal(err)
		}
	}
}
