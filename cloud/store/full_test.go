package store

import (
	"errors"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestAFullDiskIsToldUntilThereIsRoom: SQLite is given no further page, which it tells as it tells a disk without room.
func TestAFullDiskIsToldUntilThereIsRoom(t *testing.T) {
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "cloud.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, sc := t.Context(), Scope{Tenant: "acme", Actor: "test"}
	pages := func(n int) {
		t.Helper()
		if err := s.lite.write(ctx, alone, func(q querier) error {
			return q.QueryRowContext(ctx, `PRAGMA max_page_count = `+strconv.Itoa(n)).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
	}
	file := make([]byte, 1<<20)
	put := func() error { file[0]++; _, err := s.PutFile(ctx, sc, file); return err }
	if err := errors.Join(put(), s.System().Ping(ctx)); err != nil {
		t.Fatal(err)
	}
	pages(1) // SQLite takes what there is
	if err := put(); !errors.Is(err, ErrFull) {
		t.Fatalf("a write without room: %v", err)
	}
	s.room = func(string) error { return syscall.ENOSPC }
	for range 2 {
		if err := s.System().Ping(ctx); !errors.Is(err, ErrFull) {
			t.Errorf("ping of a full disk: %v", err)
		}
	}
	if _, err := s.File(ctx, sc, "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a read of a full disk: %v", err)
	}
	pages(1 << 20)
	s.room = tryFile
	if err := errors.Join(s.System().Ping(ctx), put()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if s.full.Load() {
		t.Error("the disk is still taken for full")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".room-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
