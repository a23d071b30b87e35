package catalog_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/catalog"
)

// figures are a rack with a catalog of 2,500 skills of about 4 KiB, on a database that is synced.
func figures(b *testing.B) catalog.Options {
	b.Helper()
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	p := newPlatform(func() time.Time { return now })
	p.page, p.part = 96<<10, 256<<10
	for i := range 2500 {
		s := tips(fmt.Sprintf("skill-%04d", i), "1", "social")
		s.Description = strings.Repeat("what it is for ", 8)
		s.Content = strings.Repeat("text of a skill ", 250)
		p.publish(s)
	}
	db, err := bolt.Open(filepath.Join(b.TempDir(), "rack.db"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return catalog.Options{
		Platform: p, Bucket: bucket{db: db}, Tenant: "acme", Rack: "r1", Keys: p.public("k1"), Now: func() (time.Time, bool) { return now, true },
	}
}

func openAndSync(b *testing.B, o catalog.Options) *catalog.Catalog {
	b.Helper()
	c, err := catalog.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Sync(b.Context()); err != nil || len(c.Copy().Rows) != 2500 {
		b.Fatalf("%v, %d rows", err, len(c.Copy().Rows))
	}
	return c
}

// BenchmarkRestart is from the opening of the database to the first skill, and what the list takes in memory.
func BenchmarkRestart(b *testing.B) {
	o := figures(b)
	openAndSync(b, o)
	for b.Loop() {
		c, err := catalog.Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Skill(c.Copy().Rows[1234].Entry); err != nil {
			b.Fatal(err)
		}
	}
	before := heap()
	c, err := catalog.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-kept")
	runtime.KeepAlive(c)
}

// heap is what is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
