package powerrig_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/rig/powerrig"
)

// files are databases of a rack and a cloud that agree: task t1 has succeeded in its second attempt, which was acknowledged.
func files(t *testing.T) (dir string, rack func(func(*bolt.Tx) error), cloud func(string)) {
	t.Helper()
	dir = t.TempDir()
	for _, folder := range []string{"rackd/tasks", "rackcloud"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "rackd", "generation"), []byte("1 kid\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rack = func(change func(*bolt.Tx) error) {
		t.Helper()
		db, err := bolt.Open(filepath.Join(dir, "rackd", "rackd.db"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Update(change); err != nil {
			t.Fatal(err)
		}
	}
	cloud = func(query string) {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, "rackcloud", "cloud.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	rack(func(tx *bolt.Tx) error {
		root, err := tx.CreateBucket([]byte("rackd"))
		if err != nil {
			return err
		}
		if err := root.Put([]byte("boot"), binary.BigEndian.AppendUint64(nil, 4)); err != nil {
			return err
		}
		link, _ := tx.CreateBucket([]byte("b.link"))
		fleet, _ := tx.CreateBucket([]byte("b.fleet"))
		_, _ = link.CreateBucket([]byte("outbox.ids"))
		_, _ = link.CreateBucket([]byte("outbox.event"))
		over, _ := fleet.CreateBucket([]byte("attempts.over"))
		return over.Put([]byte("1"), []byte(`{"task_id":"t1","attempt":2,"entry":"e1"}`))
	})
	cloud(`CREATE TABLE installation (generation INTEGER);
		CREATE TABLE tasks (id TEXT, attempt INTEGER, state TEXT, submit_key TEXT);
		CREATE TABLE attempts (task TEXT, attempt INTEGER, state TEXT, outcome TEXT, next_step INTEGER);
		CREATE TABLE decisions (task TEXT, attempt INTEGER, step INTEGER, host TEXT, request_id TEXT);
		CREATE TABLE events (number INTEGER);
		INSERT INTO installation VALUES (1);
		INSERT INTO tasks VALUES ('t1', 2, 'succeeded', 'k1'), ('t2', 1, 'running', 'k2');
		INSERT INTO attempts VALUES ('t1', 1, 'lost', 'lost', 0), ('t1', 2, 'succeeded', 'succeeded', 2), ('t2', 1, 'running', '', 0);
		INSERT INTO decisions VALUES ('t1', 2, 0, 'h', 'r1'), ('t1', 2, 1, 'h', 'r2')`)
	return dir, rack, cloud
}

// TestJudgesOfDatabases: each defect that a power cut could leave is seen.
func TestJudgesOfDatabases(t *testing.T) {
	const none = ""
	put := func(bucket, in, key, value string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			return tx.Bucket([]byte(bucket)).Bucket([]byte(in)).Put([]byte(key), []byte(value))
		}
	}
	for name, test := range map[string]struct {
		rack  func(*bolt.Tx) error
		cloud string
		says  string
	}{
		"nothing":                      {says: none},
		"a result still on its way":    {rack: put("b.link", "outbox.ids", "e1", "x"), cloud: `DELETE FROM attempts WHERE task = 't1'; DELETE FROM decisions; UPDATE tasks SET state = 'queued'`, says: none},
		"an acknowledged result lost":  {cloud: `UPDATE attempts SET state = 'running', outcome = ''; UPDATE tasks SET state = 'running'`, says: "acknowledged, and for the cloud it is still running"},
		"an acknowledged attempt lost": {cloud: `DELETE FROM attempts; DELETE FROM decisions; UPDATE tasks SET state = 'queued'`, says: "the cloud does not know it"},
		"a gap":                        {cloud: `UPDATE decisions SET step = 2 WHERE step = 1`, says: "a gap in the step index"},
		"a counter ahead":              {cloud: `UPDATE attempts SET next_step = 3 WHERE outcome = 'succeeded'`, says: "next step"},
		"a request decided twice":      {cloud: `UPDATE decisions SET request_id = 'r1'`, says: "two decisions"},
		"success twice":                {cloud: `UPDATE attempts SET outcome = 'succeeded' WHERE task = 't1'`, says: "succeeded twice"},
		"success out of nothing":       {cloud: `UPDATE tasks SET state = 'succeeded'`, says: "without an attempt"},
		"one key twice":                {cloud: `UPDATE tasks SET submit_key = 'k1'`, says: "two submissions"},
		"an event lost": {rack: func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("b.link")).Bucket([]byte("outbox.event")).SetSequence(1)
		}, says: "acknowledged 1 events and has 0"},
		"a trajectory lost": {rack: func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("b.tasks"))
			if err != nil {
				return err
			}
			return b.Put([]byte("x"), []byte(`{"id":"x","state":"succeeded","steps":1}`))
		}, says: "trajectory of x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, rack, cloud := files(t)
			if test.rack != nil {
				rack(test.rack)
			}
			if test.cloud != "" {
				cloud(test.cloud)
			}
			_, err := powerrig.Read(t.Context(), dir)
			if err == nil && test.says != none || err != nil && (test.says == none || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

func TestTornDatabasesAreSeen(t *testing.T) {
	for name, damage := range map[string]string{"rackd.db": "rackd/rackd.db", "cloud.db": "rackcloud/cloud.db"} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := files(t)
			path := filepath.Join(dir, damage)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for at := int64(2 * 4096); at < info.Size(); at += 4096 { // behind what opening looks at
				if _, err := f.WriteAt(make([]byte, 64), at); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := powerrig.Read(t.Context(), dir); err == nil {
				t.Error("nobody notices")
			}
		})
	}
}

func TestNothingGoesBack(t *testing.T) {
	read := func(change string) *powerrig.Remains {
		dir, _, cloud := files(t)
		if change != "" {
			cloud(change)
		}
		r, err := powerrig.Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := read("")
	if before.Boot != 4 || before.Generation != "1" || before.Acked() != 1 || fmt.Sprint(before.Tasks) != "map[t1:succeeded t2:running]" {
		t.Fatalf("read %+v", before)
	}
	if err := read("").After(before); err != nil {
		t.Errorf("the same is refused: %v", err)
	}
	older := read("")
	older.Boot = 3
	restored := read("UPDATE installation SET generation = 2")
	fewer := read("DELETE FROM tasks WHERE id = 't2'; DELETE FROM attempts WHERE task = 't2'")
	undone := read("")
	undone.Tasks["t1"] = "running"
	for what, r := range map[string]*powerrig.Remains{"a boot counter": older, "a restored cloud": restored, "a task less": fewer, "an end undone": undone} {
		if err := r.After(before); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := before.Keeps(map[string]string{"t2": "succeeded"}); err == nil {
		t.Error("a task that was seen succeeded may run again")
	}
	if err := before.Keeps(map[string]string{"t1": "lost"}); err != nil {
		t.Errorf("a lost task must not succeed: %v", err)
	}
}
