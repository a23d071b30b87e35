package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listArchive reads an archive as the kernel does: one line an entry, "mode name content".
func listArchive(t *testing.T, b []byte) []string {
	t.Helper()
	var list []string
	for at := 0; ; {
		header := b[at : at+110]
		if string(header[:6]) != "070701" {
			t.Fatalf("no entry at %d: %q", at, header[:6])
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(string(header[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, nameSize := field(1), field(6), field(11)
		name := string(b[at+110 : at+110+nameSize-1])
		content := (at + 110 + nameSize + 3) / 4 * 4
		if name == "TRAILER!!!" {
			return list
		}
		list = append(list, fmt.Sprintf("%06o %s %s", mode, name, b[content:content+size]))
		at = (content + size + 3) / 4 * 4
	}
}

func TestArchiveHoldsFoldersBeforeWhatIsInThem(t *testing.T) {
	a := newArchive()
	a.file("/etc/rackd/config.toml", 0o640, []byte("x = 1\n"))
	a.link("/bin/sh", "busybox")
	a.dir("/etc")
	a.dir("/run")
	want := []string{
		"040755 etc ", "040755 etc/rackd ", "100640 etc/rackd/config.toml x = 1\n",
		"040755 bin ", "120777 bin/sh busybox", "040755 run ",
	}
	if diff := cmp.Diff(want, listArchive(t, a.bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestArchiveTakesFoldersOfTheHost(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a": 0o755, "sub/b": 0o600} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub/b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	a := newArchive()
	if err := a.host("/data", dir); err != nil {
		t.Fatal(err)
	}
	want := []string{"040755 data ", "100755 data/a a", "120777 data/link sub/b", "040755 data/sub ", "100600 data/sub/b sub/b"}
	if diff := cmp.Diff(want, listArchive(t, a.bytes())); diff != "" {
		t.Error(diff)
	}
	if err := newArchive().host("/x", filepath.Join(dir, "absent")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestModulesComeAfterWhatTheyNeed(t *testing.T) {
	const dep = `kernel/xhci-pci.ko: kernel/xhci-hcd.ko kernel/usbcore.ko kernel/usb-common.ko
kernel/xhci-hcd.ko: kernel/usbcore.ko kernel/usb-common.ko
kernel/usbcore.ko: kernel/usb-common.ko
kernel/usb-common.ko:
kernel/leds-gpio.ko:
`
	tree, err := parseModuleTree(strings.NewReader(dep), strings.NewReader("kernel/drivers/gpio/gpio-pl061.ko\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.order([]string{"leds_gpio", "gpio-pl061", "xhci_pci", "usbcore"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"kernel/leds-gpio.ko", "kernel/usb-common.ko", "kernel/usbcore.ko", "kernel/xhci-hcd.ko", "kernel/xhci-pci.ko"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := tree.order([]string{"nonsense"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("an unknown module: %v", err)
	}
	if _, err := parseModuleTree(strings.NewReader("no colon\n"), strings.NewReader("")); err == nil {
		t.Error("a damaged modules.dep was taken")
	}
}

func TestTreeGetsLinesAndLights(t *testing.T) {
	const source = `/dts-v1/;

/ {
	#size-cells = <0x02>;
	pl061@9030000 {
		phandle = <0x8003>;
		clock-names = "apb_pclk";
		compatible = "arm,pl061", "arm,primecell";
	};
	gpio-keys { poweroff { gpios = <0x8003 0x03 0x00>; }; };
};
`
	got, err := patchTree([]byte(source), []string{"", "HUB1_PWR"}, []led{{"status", "rack:green:status", 4}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`gpio-line-names = "", "HUB1_PWR";`,
		`status { label = "rack:green:status"; gpios = <0x8003 4 0>; default-state = "off"; };`,
		`phandle = <0x8003>;`,
	} {
		if bytes.Count(got, []byte(want)) != 1 {
			t.Errorf("not once there: %s", want)
		}
	}
	if !bytes.HasSuffix(bytes.TrimSpace(got), []byte("};\n};")) {
		t.Errorf("lights are not the last node of the root:\n%s", got)
	}
	if _, err := patchTree([]byte("/ { };"), nil, nil); err == nil {
		t.Error("a tree without the controller was taken")
	}
}
