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
	if !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "the one in force stays: c.toml:2:1: rack.id is missing; and 1 more") || b.level.Level() != slog.LevelWarn {
		t.Errorf("a bad file: %v", err)
	}
}
