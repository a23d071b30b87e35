//go:build rig

package rig_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// smallAndroid is what is behind the simulated daemons.
func smallAndroid(t *testing.T, version int) *android.Device {
	t.Helper()
	display, err := screen.New(screen.Config{Width: 720, Height: 1280, Density: 320})
	if err != nil {
		t.Fatal(err)
	}
	device, err := android.New(android.Config{Version: version, Screen: display})
	if err != nil {
		t.Fatal(err)
	}
	return device
}

// TestOurHostOverTheBoardsUSB runs the tests that usb/adb/usblink has for a board: ten phones at once, of all Android
// versions, on hubs, on a hub in a hub and on ports of the controller; behind two of them is a real adbd. The
// tests that hal/gpio and hal/power have for a board run there too: a board of their own would take half a minute more.
func TestOurHostOverTheBoardsUSB(t *testing.T) {
	program := filepath.Join(t.TempDir(), "usblink.test")
	if err := rig.Build(t.Context(), program, "test", "-c", "-tags", "board", "./usb/adb/usblink"); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/bin/usblink.test": program}
	for _, hal := range []string{"gpio", "power"} {
		name := hal + ".test"
		files["/bin/"+name] = filepath.Join(t.TempDir(), name)
		if err := rig.BuildPortable(t.Context(), files["/bin/"+name], "test", "-c", "-tags", "board", "./hal/"+hal); err != nil {
			t.Fatal(err)
		}
	}
	adbds := startAdbd(t, 2)
	ports := []string{"1-1.1", "1-1.2", "1-1.3", "1-2.1", "1-2.2", "1-1.8.1", "1-1.8.2", "1-1.8.3", "1-3", "1-4"}
	behind := map[string]*rig.Adbd{"1-2.2": adbds[0], "1-4": adbds[1]}
	versions := []int{7, 9, 11, 14, 15}
	b := boot(t, rig.BoardConfig{
		Hubs:   []rig.Hub{{Path: "1-1", Ports: 8}, {Path: "1-2", Ports: 4}, {Path: "1-1.8", Ports: 4}},
		Ports:  ports,
		Files:  files,
		Memory: 1024,
	})
	ctx := within(t, 10*time.Minute)
	var phones []*phonesim.Phone
	for i, port := range ports {
		config := phonesim.Config{
			Serial: fmt.Sprintf("SIM%04d", i), Android: versions[i%len(versions)],
			HighSpeed: !strings.Contains(port, "."), System: smallAndroid(t, versions[i%len(versions)]),
			Logger: slog.New(slog.NewTextHandler(b.Log("phone at "+port), nil)),
		}
		var p *phonesim.Phone
		var err error
		if a := behind[port]; a != nil {
			p, err = phonesim.NewBridge(config, a.Dial)
		} else {
			p, err = phonesim.New(config)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Plug(ctx, port, p); err != nil {
			t.Fatal(err)
		}
		phones = append(phones, p)
	}
	for i, port := range ports {
		if _, err := b.WaitPlugged(ctx, port, fmt.Sprintf("SIM%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	size := os.Getenv("PHONERACK_LARGE")
	if size == "" {
		size = "2000000" // ten phones together get less than 10 MB/s over the emulated bus
	}
	output, exit, err := b.Run(ctx, fmt.Sprintf("PHONERACK_LARGE='%s' PHONERACK_PHONES='%s' usblink.test -test.v -test.run '^TestBoard' 2>&1", size, strings.Join(ports, " ")))
	if err != nil || exit != 0 {
		t.Errorf("exit code %d, %v", exit, err)
	}
	t.Logf("in the guest:\n%s", output)
	output, exit, err = b.Run(ctx, "gpio.test -test.v -test.run '^TestBoard' 2>&1 && power.test -test.v -test.run '^TestBoard' 2>&1")
	if err != nil || exit != 0 {
		t.Errorf("lines and ports: exit code %d, %v", exit, err)
	}
	t.Logf("lines and ports, in the guest:\n%s", output)
	for i, p := range phones {
		for _, v := range p.Violations() {
			t.Errorf("at %s the host broke a rule: %+v", ports[i], v)
		}
	}
}
