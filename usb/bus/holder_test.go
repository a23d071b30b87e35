//go:build linux

package bus

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhoHoldsAPhoneIsNamed has a real process hold a file as an adb server holds a phone.
func TestWhoHoldsAPhoneIsNamed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := Device{Path: "1-1.2", Bus: 1, Address: 7, Config: 1, Interface: 3}
	in := Places{Sysfs: filepath.Join(dir, "sys"), Devfs: filepath.Join(dir, "dev")}
	file := filepath.Join(in.Devfs, "bus/usb/001/007")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	own, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if got := Holder(t.Context(), in, d); got != "" {
		t.Errorf("held by this process alone: %q", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sleeper := exec.CommandContext(ctx, "sleep", "60")
	sleeper.ExtraFiles = []*os.File{own}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Wait() }() // it is killed
	defer cancel()
	if got, want := Holder(t.Context(), in, d), fmt.Sprintf("(pid %d)", sleeper.Process.Pid); !strings.HasPrefix(got, "sleep ") || !strings.HasSuffix(got, want) {
		t.Errorf("the holder is %q, want sleep %s", got, want)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if got := Holder(over, in, d); got != "" {
		t.Errorf("after the end of the search: %q", got)
	}
	of := filepath.Join(in.Sysfs, "bus/usb/devices/1-1.2:1.3")
	if err := os.MkdirAll(of, 0o755); err != nil {
		t.Fatal(err)
	}
	for driver, want := range map[string]string{"../../drivers/usb-storage": "the kernel's driver usb-storage", "../../drivers/usbfs": "sleep "} {
		os.Remove(filepath.Join(of, "driver"))
		if err := os.Symlink(driver, filepath.Join(of, "driver")); err != nil {
			t.Fatal(err)
		}
		if got := Holder(t.Context(), in, d); !strings.HasPrefix(got, want) {
			t.Errorf("bound to %s: %q, want %q", driver, got, want)
		}
	}
	if got := Holder(t.Context(), in, Device{Path: "1-1.2", Bus: 1, Address: 8, Config: 1}); got != "" {
		t.Errorf("another phone is held by %q", got)
	}
}
