package firmware_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/sync/wire"
)

func TestAReloadAppliesWhatItCanAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.level = new(slog.LevelVar)
	next := *b.config
	next.Log.Level, next.Control.MaxHold, next.Rack.ID = slog.LevelWarn, config.Duration(time.Minute), "other"
	var fault error
	b.read = func() (*config.Config, error) { return &next, fault }
	b.start()
	var changes action.ConfigChanges
	if err := b.Call(t.Context(), "config_reload", nil, &changes); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(changes.Live, []string{"control.max_hold", "log.level"}) || !slices.Equal(changes.Restart, []string{"rack.id"}) || b.level.Level() != slog.LevelWarn {
		t.Errorf("%+v, level %v", changes, b.level.Level())
	}
	if err := b.Call(t.Context(), "hold", action.HoldArgs{SlotArgs: slotArgs(1), Seconds: 120}, nil); !wire.Is(err, wire.BadRequest) {
		t.Errorf("a hold of two minutes: %v", err)
	}
	if err := b.Call(t.Context(), "config_reload", nil, &changes); err != nil || len(changes.Live) != 0 || len(changes.Restart) != 1 {
		t.Errorf("once more: %+v, %v", changes, err)
	}
	fault = errors.Join(errors.New("c.toml:2:1: rack.id is missing"), errors.New("another"))
	err := b.Call(t.Context(), "config_reload", nil, &changes)
	if !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "nothing is changed: c.toml:2:1: rack.id is missing; and 1 more") || b.level.Level() != slog.LevelWarn {
		t.Errorf("a bad file: %v", err)
	}
}

// TestThresholdsOfTheControllerCountAtTheNextCheck, without a restart; those of the ladder wait for one.
func TestThresholdsOfTheControllerCountAtTheNextCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.Health.Rack.DiskFree = 0
	next := *b.config
	next.Health.Rack.DiskFree = 101 // more than any disk has
	next.Health.Phone.StorageFree, next.Health.Ladder.Enabled = 77, false
	b.read = func() (*config.Config, error) { return &next, nil }
	b.start()
	full := func() bool { return b.says("disk_full", "") }
	if full() {
		t.Error("a disk that nothing is asked of is called full")
	}
	var changes action.ConfigChanges
	if err := b.Call(t.Context(), "config_reload", nil, &changes); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(changes.Live, []string{"health.phone.storage_free", "health.rack.disk_free"}) || !slices.Equal(changes.Restart, []string{"health.ladder.enabled"}) {
		t.Errorf("%+v", changes)
	}
	for end := time.Now().Add(30 * time.Second); !full(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new threshold does not count")
		}
	}
}
