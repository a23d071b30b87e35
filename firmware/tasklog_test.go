package firmware

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/store"
)

func TestTaskOfABoardWhoseClockFellBackIsTheNewest(t *testing.T) {
	folder := t.TempDir()
	s, err := store.Open(store.Options{Path: filepath.Join(folder, "rackd.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bucket, err := s.Bucket(tasksBucket)
	if err != nil {
		t.Fatal(err)
	}
	l := &taskLog{bucket: bucket, folder: folder, log: slog.New(slog.DiscardHandler)}
	clock := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	var last string
	for i := range keptTasks + 1 {
		now := clock
		if i == keptTasks {
			now = time.Unix(60, 0) // after a power cut, before anybody told the time
		}
		if last, err = l.newID(now); err != nil {
			t.Fatal(err)
		}
		if err := l.put(action.TaskStatus{ID: last, State: action.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	l.prune()
	if _, err := l.get(last); err != nil {
		t.Errorf("the newest task: %v", err)
	}
	if list, err := l.list(keptTasks + 1); err != nil || len(list) != keptTasks || list[0].ID != last {
		t.Errorf("%d tasks, the first is %v, want %s; %v", len(list), list[0].ID, last, err)
	}
}
