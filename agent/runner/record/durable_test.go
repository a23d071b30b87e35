package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestCloseSyncsPicturesAndNames: after a power cut a trajectory whose end was told is whole. Which writes a disk loses
// otherwise is what firmware/rig/powerrig shows; here it is that none is forgotten, and none synced before it is there.
func TestCloseSyncsPicturesAndNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tasks", "one")
	w, err := Create(dir, Task{Goal: "x", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	var synced []string
	w.sync = func(path string) error {
		if path == dir { // from here on every name counts
			for _, name := range []string{"001.jpg", "002.jpg", taskFile, stepsFile, pageFile} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Errorf("the folder is synced before %s is in it", name)
				}
			}
		}
		synced = append(synced, path)
		return syncPath(path)
	}
	for n := range 2 {
		w.Add(&Step{N: n + 1, Tool: "wait", Arguments: json.RawMessage(`{}`), Outcome: Done, Effect: "no change"}, []byte("picture"))
	}
	if err := w.Close(End{Outcome: "succeeded"}); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "001.jpg"), filepath.Join(dir, "002.jpg"), dir, filepath.Dir(dir)}
	if !slices.Equal(synced, want) {
		t.Errorf("synced are %q, want %q", synced, want)
	}
}

func TestAFailedSyncIsTold(t *testing.T) {
	w, err := Create(t.TempDir(), Task{Goal: "x", Started: time.Unix(0, 0).UTC()}, Mask{})
	if err != nil {
		t.Fatal(err)
	}
	w.sync = func(string) error { return os.ErrPermission }
	if err := w.Close(End{Outcome: "succeeded"}); err == nil {
		t.Error("nobody hears that the trajectory may be lost")
	}
}
