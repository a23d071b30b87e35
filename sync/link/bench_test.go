package link_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"phonerack/sync/link"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv("LINK_TEST_CHILD") != "" {
		child()
	}
	goleak.VerifyTestMain(m)
}

// noon is the cloud's time when a test begins.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// heard is what the cloud hears.
type heard = linktest.Heard

// rack is the topic of the test's rack.
var rack = wire.Topic{Tenant: "acme", Rack: "rack-1", Direction: wire.Up, Kind: wire.KindState}

func up(k wire.Kind) string { return "pr/v1/acme/rack-1/up/" + string(k) }

func keys(t testing.TB, kid string) wire.Keys {
	t.Helper()
	k, err := wire.DeriveKeys(kid, bytes.Repeat([]byte(kid[:1]), wire.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bucket is a database with one bucket.
type bucket struct{ db *bolt.DB }

func (b bucket) View(fn func(*bolt.Bucket) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

func (b bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.db.Update(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

func (b bucket) In(tx *bolt.Tx) *bolt.Bucket { return tx.Bucket([]byte("link")) }

func openBucket(t testing.TB, path string) bucket {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("link"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return bucket{db}
}

// clock is a board's clock whose wall time is wrong by an offset.
type clock struct {
	start time.Time
	wall  time.Time // what it showed at start
}

func (c clock) Now() time.Time      { return c.wall.Add(time.Since(c.start)) }
func (c clock) Boot() time.Duration { return time.Since(c.start) }

// bench is a link between a scripted broker and a scripted cloud.
type bench struct {
	testing.TB
	broker *linktest.Broker
	cloud  *linktest.Cloud
	link   *link.Link
	o      link.Options
	log    *lockedBuffer
	stop   func()            // ends Run and waits for it
	rotate func(name string) // gives the rack another certificate; secure sets it
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBench makes both ends; nothing runs yet. The pauses between sessions are the
// longest ones that chance allows.
func newBench(t testing.TB) *bench {
	t.Helper()
	start := time.Now()
	b := &bench{TB: t, broker: linktest.NewBroker(), log: new(lockedBuffer)}
	b.cloud = linktest.NewCloud(b.broker, func() time.Time { return noon.Add(time.Since(start)) }, keys(t, "k1"))
	b.o = link.Options{
		Broker: "tcp://broker.test:1883", Tenant: "acme", Rack: "rack-1",
		Keys:       func() []wire.Keys { return []wire.Keys{keys(t, "k1")} },
		Generation: 3, Boot: "4-9f3c", Versions: map[string]string{"rackd": "1.0.0"},
		Bucket: openBucket(t, filepath.Join(t.TempDir(), "rack.db")),
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Clock:  clock{start, start}, Dial: b.broker.Dial,
		Jitter: func(limit time.Duration) time.Duration { return limit },
	}
	return b
}

// make builds the link, so that handlers can be registered.
func (b *bench) make() *link.Link {
	b.Helper()
	l, err := link.New(b.o)
	if err != nil {
		b.Fatal(err)
	}
	b.link = l
	return l
}

// run starts the link. The cleanup ends it, and the broker.
func (b *bench) run() *bench {
	b.Helper()
	if b.link == nil {
		b.make()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.link.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("Run: %v", err)
		}
		b.broker.Close()
		if c := b.broker.Complaints(); len(c) > 0 {
			b.Errorf("the broker complains: %q", c)
		}
	})
	return b
}

// online starts the link and waits for its session.
func (b *bench) online() *bench {
	b.Helper()
	b.run().waitOnline()
	return b
}

func (b *bench) waitOnline() {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := b.link.WaitOnline(ctx); err != nil {
		b.Fatalf("no session: %v; status %+v\n%s", err, b.link.Status(), b.log)
	}
}

func (b *bench) counter(name string) uint64 { return b.link.Status().Counters[name] }

// dialogue runs a test in a bubble whose time moves only when everybody waits.
func dialogue(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() {
			if b.stop != nil {
				b.stop()
			}
		}()
		test(t, b)
	})
}

func frameOf(t testing.TB, b *bench, p linktest.Publish) *wire.Message {
	t.Helper()
	topic, err := wire.ParseTopic(p.Topic)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.Open(topic, func(string) (wire.Keys, bool) { return b.cloud.Keys()[0], true }, p.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
