package demo_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/rig/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runDemo runs the demo and returns what it printed and how long it took. A loaded machine may lose the picture of a
// step to its time limit, which the emulated board's slow USB brings near: misses says how many in a hundred.
func runDemo(t *testing.T, native bool, misses int) (string, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	out := filepath.Join(t.TempDir(), "out")
	var printed bytes.Buffer
	begin := time.Now()
	if err := demo.Run(ctx, demo.Options{Native: native, Out: out, Stdout: &printed}); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	took := time.Since(begin)
	for _, slot := range []string{"slot-1", "slot-3"} {
		checkTrajectory(t, filepath.Join(out, slot), misses)
	}
	for _, want := range []string{"basket: Kettle x1", "message sent to Ana: The new rack works", "step 1:", "the rack is online", "rackcloud decisions: "} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the demo does not print %q:\n%s", want, printed.String())
		}
	}
	return printed.String(), took
}

// checkTrajectory wants a page, a record of each step, and a picture for each but the misses.
func checkTrajectory(t *testing.T, dir string, misses int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Error(err)
		return
	}
	steps, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		t.Error(err)
		return
	}
	n := bytes.Count(steps, []byte("\n"))
	pictures, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err != nil {
		t.Error(err)
		return
	}
	if n < 4 || len(pictures) < n-n*misses/100 {
		t.Errorf("%s: %d steps, %d pictures", dir, n, len(pictures))
	}
	for _, p := range pictures {
		if !bytes.Contains(page, []byte(filepath.Base(p))) {
			t.Errorf("%s: the page does not show %s", dir, filepath.Base(p))
		}
	}
	if bytes.Contains(page, []byte("http://")) || bytes.Contains(page, []byte("https://")) {
		t.Errorf("%s: the page needs something from outside", dir)
	}
}

func TestDemoNative(t *testing.T) {
	printed, took := runDemo(t, true, 20)
	t.Logf("%.1f s\n%s", took.Seconds(), printed)
}
