package logbook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, dir string, b Budget) (*Folder, *slog.Logger) {
	t.Helper()
	f, err := OpenFolder(dir, b)
	if err != nil {
		t.Fatal(err)
	}
	return f, slog.New(f.Handler(nil))
}

func TestOnlyWhatMattersIsWritten(t *testing.T) {
	dir := t.TempDir()
	f, log := open(t, dir, Budget{})
	log.Info("idle")
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("an idle rack wrote %v, %v", entries, err)
	}
	log.Info("slot changed", "state", "lost")
	log.Warn("disk is full")
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	log.Error("later")
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, dir, Budget{})
	kept, err := again.Kept()
	lines := strings.Split(kept, "\n")
	if err != nil || len(lines) != 4 || !strings.HasSuffix(lines[0], `Z INFO msg="slot changed" state=lost`) || !strings.HasSuffix(lines[2], "Z ERROR msg=later") {
		t.Errorf("%q, %v", kept, err)
	}
	if again.next != 2 {
		t.Errorf("the next file has the number %d", again.next)
	}
}

func TestADayHasABudget(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	dir := t.TempDir()
	budget := Budget{PerDay: 3 * cost(1), Now: clock}
	f, log := open(t, dir, budget)
	flush := func() {
		t.Helper()
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		log.Warn("flapping")
		flush()
	}
	files, err := f.files()
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	f, log = open(t, dir, budget) // a crash loop has no budget of its own
	log.Warn("after a restart")
	flush()
	if files, _ = f.files(); len(files) != 3 {
		t.Errorf("a restart wrote %v", files)
	}
	now = now.Add(24 * time.Hour)
	log.Warn("the next day")
	flush()
	kept, err := f.Kept()
	if err != nil || !strings.Contains(kept, "msg=\"the next day\"") || !strings.HasSuffix(kept, " INFO lines left out to spare the card: 1\n") {
		t.Errorf("%q, %v", kept, err)
	}
}

// TestABoardWithoutAClockKeepsALog: files of another day spare the card nothing, also when the clock does not know that; and a clock
// that is set in between gives no second budget.
func TestABoardWithoutAClockKeepsALog(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	real := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	boot := time.Unix(0, 0) // what a board without a clock that lasts begins with
	for _, c := range []struct {
		name    string
		written []time.Time // by the clocks of then, the oldest first
		now     time.Time
		spent   int // files of the last 24 hours
	}{
		{"a clock", []time.Time{real.Add(-2 * day), real.Add(-25 * hour), real.Add(-hour)}, real, 1},
		{"1970, after a clock", []time.Time{real.Add(-3 * day), real.Add(-2 * day), real}, boot, 1},
		{"1970, within an hour of a crash", []time.Time{real.Add(-2 * hour), real.Add(-hour), real}, boot.Add(hour), 3},
		{"1970, a day after its start", []time.Time{real.Add(-2 * hour), real.Add(-hour), real}, boot.Add(day), 0},
		{"never a clock: three starts of half a day", []time.Time{boot.Add(hour), boot.Add(12 * hour), boot.Add(hour), boot.Add(12 * hour), boot.Add(hour)}, boot.Add(2 * hour), 4},
		{"never a clock: a crash loop", []time.Time{boot.Add(time.Minute), boot.Add(time.Minute), boot.Add(time.Minute)}, boot.Add(time.Minute), 3},
		{"1970, and set since", []time.Time{boot.Add(time.Minute), boot.Add(2 * time.Minute)}, real, 2},
		{"set between two files", []time.Time{boot.Add(time.Minute), real.Add(-hour)}, real, 2},
		{"two days with a start between them", []time.Time{real.Add(-2 * day), boot.Add(hour), real.Add(-hour)}, real, 2},
		{"a file from the future", []time.Time{real.Add(-2 * day), real.AddDate(10, 0, 0), real.Add(-hour)}, real, 2},
		{"set back by an hour", []time.Time{real.Add(hour)}, real, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			now := c.now
			budget := Budget{PerDay: 3 * cost(1), Kept: 100 * cost(1), Now: func() time.Time { return now }}
			for i, at := range c.written {
				path := filepath.Join(dir, fmt.Sprintf("log-%010d.txt", i))
				if err := errors.Join(os.WriteFile(path, []byte("x\n"), 0o600), os.Chtimes(path, at, at)); err != nil {
					t.Fatal(err)
				}
			}
			f, log := open(t, dir, budget)
			if got := f.today() / cost(1); got != int64(c.spent) {
				t.Errorf("%d files count as written within 24 hours, want %d", got, c.spent)
			}
			now = now.Add(day) // of this process, whatever its clock says
			log.Warn("a day later")
			if err := f.Flush(); err != nil {
				t.Fatal(err)
			}
			if kept, err := f.Kept(); err != nil || !strings.Contains(kept, "a day later") {
				t.Errorf("kept %q, %v", kept, err)
			}
		})
	}
}

func TestFilesAreThinnedOutAndNeverHalf(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, ".log-123")
	if err := os.WriteFile(half, []byte("hal"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, log := open(t, dir, Budget{Kept: 2 * cost(1), PerDay: 100 << 20})
	for range 5 {
		log.Warn("x")
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := f.files()
	if err != nil || strings.Join(files, " ") != "log-0000000003.txt log-0000000004.txt" {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("half a file is left: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign file is gone: %v", err)
	}
}

func TestAFullDiskLosesNoLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	f, log := open(t, dir, Budget{})
	log.Warn("x")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder was made before there is anything in it: %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	if err := f.Flush(); err == nil {
		t.Error("a file was written into")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if kept, err := f.Kept(); err != nil || strings.Count(kept, "\n") != 1 {
		t.Errorf("%q, %v", kept, err)
	}
	for range 10_000 {
		log.Warn("a line that nobody can write down")
	}
	if f.waiting.Len() > maxWait || f.leftOut == 0 {
		t.Errorf("%d bytes wait, %d lines are left out", f.waiting.Len(), f.leftOut)
	}
}

// TestWhoeverLogsDoesNotWaitForTheDisk: a card may take seconds for a file, in which a write holds this lock.
func TestWhoeverLogsDoesNotWaitForTheDisk(t *testing.T) {
	f, log := open(t, t.TempDir(), Budget{})
	log.Warn("before")
	f.disk.Lock()
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		log.Warn("meanwhile")
		f.LeftOut()
	}()
	select {
	case <-logged:
	case <-time.After(10 * time.Second):
		t.Error("a line waits for the disk")
	}
	f.disk.Unlock()
	<-logged
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if kept, err := f.Kept(); err != nil || strings.Count(kept, "\n") != 2 {
		t.Errorf("%q, %v", kept, err)
	}
}

// TestLinesThatCameDuringAWriteThatFailedFollowIt: none is lost, as far as there is room.
func TestLinesThatCameDuringAWriteThatFailedFollowIt(t *testing.T) {
	f, log := open(t, t.TempDir(), Budget{})
	log.Warn("one")
	lines, leftOut := f.take()
	log.Warn("two")
	f.giveBack(lines, leftOut+3)
	if got := f.waiting.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got[:strings.Index(got, "\n")], "one") || f.leftOut != 3 {
		t.Errorf("%q, %d left out", got, f.leftOut)
	}
	big := strings.Repeat("x", maxWait-10) + "\n"
	f.giveBack(big, 0)
	if f.waiting.Len() > maxWait || f.leftOut != 5 || f.lost != 2 {
		t.Errorf("%d bytes wait, %d left out, %d lost", f.waiting.Len(), f.leftOut, f.lost)
	}
}

func TestRunWritesNowAndThenAndAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f, log := open(t, dir, Budget{Every: time.Minute})
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- f.Run(ctx) }()
		log.Warn("first")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if kept, _ := f.Kept(); !strings.Contains(kept, "first") {
			t.Errorf("after a minute: %q", kept)
		}
		log.Warn("last")
		cancel()
		if err := <-done; err == nil {
			t.Error("ended without the context's error")
		}
		if kept, _ := f.Kept(); !strings.Contains(kept, "last") {
			t.Errorf("at the end: %q", kept)
		}
	})
}
