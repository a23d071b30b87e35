package firmware_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/hal/board"
)

// TestAPortThatTookTooMuchIsNamedByItsHub has a sysfs of its own, in which the kernel counts.
func TestAPortThatTookTooMuchIsNamedByItsHub(t *testing.T) {
	t.Parallel()
	sysfs := t.TempDir()
	count := func(hub string, port int, text string) {
		t.Helper()
		dir := filepath.Join(sysfs, "bus/usb/devices", hub+":1.0", fmt.Sprintf("%s-port%d", hub, port))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "over_current_count"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	count("1-1", 2, "7\n") // before rackd began
	count("1-2", 1, "0\n")
	count("2-2", 4, "0\n")
	count("1-4", 3, "0\n")
	over := firmware.HubsOver(sysfs, []board.Hub{
		{Name: "A", Path: "1-1", Ports: 4},
		{Name: "B", Path: "1-2", Companion: "2-2", Ports: 4},
		{Name: "C", Path: "1-3", Ports: 4},
		{Name: "D", Path: "1-4"}, // how many it has nobody has written down
	}, board.Slot{Number: 1, Hub: "D", Port: 3})
	for _, step := range []struct {
		minute int
		do     func()
		want   string
	}{
		{0, func() {}, "[]"},
		{1, func() { count("1-2", 1, "1\n") }, "[B]"},
		{2, func() { count("1-1", 2, "x\n") }, "[B]"}, // nonsense is no news
		{3, func() { count("1-1", 2, "8\n") }, "[A B]"},
		{10, func() {}, "[A B]"},
		{11, func() {}, "[A]"}, // ten minutes without another
		{12, func() { count("2-2", 4, "3\n") }, "[A B]"},
		{13, func() { count("1-1", 2, "0\n") }, "[B]"}, // its hub has come anew
		{14, func() { count("1-1", 2, "1\n") }, "[A B]"},
		{30, func() { count("1-4", 3, "1\n") }, "[D]"},
	} {
		step.do()
		if got := fmt.Sprint(over(time.Duration(step.minute)*time.Minute, 10*time.Minute)); got != step.want {
			t.Errorf("in minute %d: %s, want %s", step.minute, got, step.want)
		}
	}
	count("1-4", 3, "2\n")
	if now, later := over(50*time.Minute, 2*time.Minute), over(53*time.Minute, 2*time.Minute); len(now) != 1 || len(later) != 0 {
		t.Errorf("a hub that is named for two minutes: %v, after three %v", now, later)
	}
}
