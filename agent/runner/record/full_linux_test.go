package record

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAFullDiskLeavesNoHalfPicturesAndLines runs itself in a child whose files cannot grow beyond a bound, as on a full disk.
func TestAFullDiskLeavesNoHalfPicturesAndLines(t *testing.T) {
	const marker = "RECORD_FULL_DISK_CHILD"
	if dir := os.Getenv(marker); dir != "" {
		writeWithoutRoom(t, dir)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFullDiskLeavesNoHalfPicturesAndLines$", "-test.timeout=30s")
	child.Env = append(os.Environ(), marker+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func writeWithoutRoom(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	bound := func(n uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: 1 << 20}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Create(dir, Task{Goal: "x", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	step := func(scene string) *Step {
		return &Step{N: 1, Tool: "wait", Arguments: json.RawMessage(`{}`), Outcome: Done, Effect: "no change", Scene: scene}
	}
	bound(4000)
	w.Add(step(strings.Repeat("x", 5000)), make([]byte, 5000)) // neither has room
	bound(1 << 20)
	w.Add(step("screen 1:\n"), nil)
	if w.Close(End{Outcome: "succeeded"}) == nil {
		t.Error("the loss is not told")
	}
	n := 0
	for s, err := range Steps(dir, true) {
		if err != nil || s.Scene != "screen 1:\n" || s.Image != "" {
			t.Errorf("%+v, %v", s, err)
		}
		n++
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if n != 1 || err != nil || len(pictures) > 0 {
		t.Errorf("%d steps, pictures %q, %v", n, pictures, err)
	}
	if _, err := os.Stat(filepath.Join(dir, pageFile)); err != nil {
		t.Error(err)
	}
}

// TestATrajectoryIsOnDiskWhenItIsClosed: a pipe cannot be synced, so that whoever tries fails.
func TestATrajectoryIsOnDiskWhenItIsClosed(t *testing.T) {
	_, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(t.TempDir(), Task{Goal: "x", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	w.lines.Close()
	w.lines = pipe
	if err := w.Close(End{Outcome: "succeeded"}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the steps were not synced: %v", err)
	}

	name := filepath.Join(t.TempDir(), taskFile)
	err = replace(name, func(f *os.File) error {
		_, pipe, err := os.Pipe()
		if err != nil {
			return err
		}
		defer pipe.Close()
		return syscall.Dup3(int(pipe.Fd()), int(f.Fd()), syscall.O_CLOEXEC)
	})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a file that took the place of another was not synced: %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that could not be synced took its place: %v", err)
	}
}
