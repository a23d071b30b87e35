//go:build rig

package rig_test

import (
	"path/filepath"
	"strings"
	"testing"

	"phonerack/firmware/rig"
)

func TestProgramsWithLibusbRunOnTheBoard(t *testing.T) {
	program := filepath.Join(t.TempDir(), "usblink.test")
	if err := rig.Build(t.Context(), program, "test", "-c", "-tags", "board", "./usb/adb/usblink"); err != nil {
		t.Fatal(err)
	}
	if err := rig.Build(t.Context(), program, "build", "./nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a package that is not there: %v", err)
	}
	b := boot(t, rig.BoardConfig{Files: map[string]string{"/bin/usblink.test": program}})
	if output, exit, err := b.Run(within(t, limit), "usblink.test -test.list . 2>&1"); exit != 0 || err != nil || !strings.Contains(output, "TestBoard") {
		t.Errorf("%d, %v: %s", exit, err, output)
	}
}
