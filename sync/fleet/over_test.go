package fleet_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// TestOverALinkTheResultIsInTheRealOutbox joins a fleet with a link that never
// gets online.
func TestOverALinkTheResultIsInTheRealOutbox(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "rack.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := &process{db: db}
	for _, name := range []string{"link", "fleet"} {
		err := db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte(name))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	keys, err := wire.DeriveKeys("k1", make([]byte, wire.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.New(link.Options{
		Broker: "tcp://127.0.0.1:1", Tenant: "acme", Rack: "r1", Keys: func() []wire.Keys { return []wire.Keys{keys} },
		Generation: 1, Boot: "1-x", Bucket: bucket{p, "link"},
	})
	if err != nil {
		t.Fatal(err)
	}
	over, outbox := fleet.Over(l)
	f, err := fleet.Open(fleet.Options{
		Link: over, Outbox: outbox, Bucket: bucket{p, "fleet"}, Runner: &runner{p: p}, Generation: 1, Boot: func() time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Event("started", 0, "", nil); err != nil {
		t.Fatal(err)
	}
	id, err := outbox.Put(link.Entry{Type: wire.TypeResult, Body: wire.Result{TaskID: "t", Attempt: 1, Outcome: wire.Lost}})
	if err != nil {
		t.Fatal(err)
	}
	if held, err := outbox.Holds(id); !held || err != nil {
		t.Errorf("%v, %v", held, err)
	}
	if e := l.Outbox().Status().Entries; e[link.Events] != 1 || e[link.Results] != 1 {
		t.Errorf("%v", e)
	}
	rooms := 0
	var release func()
	for ; ; rooms++ {
		one, err := outbox.Reserve()
		if err != nil {
			break
		}
		release = one
	}
	release()
	release() // once is enough
	if _, err := outbox.Reserve(); err != nil || rooms == 0 {
		t.Errorf("after %d: %v", rooms, err)
	}
	if _, _, err := over.Ask(context.Background(), link.Call{Kind: wire.KindTask, Type: wire.TypeClaim, Body: wire.Claim{}}); !errors.Is(err, link.ErrOffline) {
		t.Errorf("%v", err)
	}
}
