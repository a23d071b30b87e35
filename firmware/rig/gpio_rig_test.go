//go:build rig

package rig_test

import (
	"path/filepath"
	"testing"
	"time"

	"phonerack/firmware/rig"
)

// TestGPIOLinesOfTheBoard runs the tests that hal/gpio has for a board.
func TestGPIOLinesOfTheBoard(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gpio.test")
	if err := rig.BuildPortable(t.Context(), program, "test", "-c", "-tags", "board", "./hal/gpio"); err != nil {
		t.Fatal(err)
	}
	b := boot(t, rig.BoardConfig{Files: map[string]string{"/bin/gpio.test": program}})
	output, exit, err := b.Run(within(t, time.Minute), "gpio.test -test.v -test.run '^TestBoard' 2>&1; cat /proc/version")
	if err != nil || exit != 0 {
		t.Errorf("exit code %d, %v", exit, err)
	}
	t.Logf("in the guest:\n%s", output)
}
