package external_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/sync/wire"
)

// withPictures sends a screen with each request for a decision, though rules do not look at it, and logs all.
const withPictures = "[planner]\ntransport = \"cloud\"\npictures = \"always\"\n[log]\nlevel = \"debug\"\n[cloud]\nidentity = %q\n"

// underOneRoof makes one folder for all files of a site: of its programs, of its broker and of PostgreSQL.
func underOneRoof(t *testing.T) (root string) {
	t.Helper()
	if _, err := sitetest.Build(t.Context()); err != nil { // outside of what is looked into
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "scan") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil { // mosquitto and PostgreSQL are other users
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", root)
	return root
}

// planted is what the name of a needle begins with that has to be found.
const planted = "planted"

// noScreenIsWrittenDown ends a site and looks for its screens in all that its programs, its broker and PostgreSQL have
// written and logged, while they run and after their end. The rack's own trajectories alone have them. What is planted
// meanwhile in the database and, by the rack's own credentials, in the broker's store has to be found, in the latter
// if it is not encrypted.
func noScreenIsWrittenDown(t *testing.T, ctx context.Context, s *sitetest.Site, dsn, root string, encrypted bool) {
	t.Helper()
	n := sitetest.Needles{}
	for i, jpeg := range trajectories(t, root) {
		if n.Picture(fmt.Sprintf("screen %d", i), jpeg) == 0 {
			t.Fatalf("screen %d of %d bytes has nothing to be known by", i, len(jpeg))
		}
	}
	checkpoint(t, ctx, dsn)
	foundIn(t, n, root, "while they run", nil)
	for name, log := range logs(s) {
		if what := n.In([]byte(log)); len(what) > 0 || len(log) == 0 {
			t.Errorf("%s, of %d bytes, holds %v", name, len(log), what)
		}
	}

	picture := make([]byte, 8<<10)
	for i := range picture {
		picture[i] = byte(rand.Uint32())
	}
	n.Picture(planted, picture)
	s.Rack.Kill() // its name is needed
	plantInBroker(t, ctx, s, picture)
	for _, c := range s.Clouds {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	plantInDatabase(t, ctx, dsn, picture)
	for _, b := range s.Broker.Nodes {
		if err := b.Close(); err != nil { // mosquitto writes its store at the latest now
			t.Error(err)
		}
	}
	want := []string{"data/base", "data/pg_wal"}
	if !encrypted {
		want = append(want, "store")
	}
	foundIn(t, n, root, "after their end", want)
}

// trajectories are screens that the rack has kept of its tasks: as many as a scan can bear, from all of the time.
func trajectories(t *testing.T, root string) (screens [][]byte) {
	t.Helper()
	const most = 12
	all, err := filepath.Glob(filepath.Join(root, "site*", "state", "tasks", "*", "*.jpg"))
	if err != nil || len(all) < most {
		t.Fatalf("the rack has kept %d screens: %v", len(all), err)
	}
	for i := range most {
		raw, err := os.ReadFile(all[i*(len(all)-1)/(most-1)])
		if err != nil {
			t.Fatal(err)
		}
		screens = append(screens, raw)
	}
	return screens
}

func logs(s *sitetest.Site) map[string]string {
	all := map[string]string{"rackd's log": s.Rack.Log()}
	for i, c := range s.Clouds {
		all[fmt.Sprintf("the log of rackcloud %d", i)] = c.Log()
	}
	for i, b := range s.Broker.Nodes {
		all[fmt.Sprintf("the log of broker %d", i)] = b.Log()
	}
	return all
}

// foundIn looks into each file below root. Screens may be in trajectories alone; what was planted has to be in the folders
// named, and nowhere else.
func foundIn(t *testing.T, n sitetest.Needles, root, when string, want []string) {
	t.Helper()
	begin := time.Now()
	files, size := n.Below(t, root)
	seen, trajectories := map[string]bool{}, 0
	for name, what := range files {
		switch dir := filepath.Dir(name); {
		case filepath.Base(filepath.Dir(dir)) == "tasks" && filepath.Ext(name) == ".jpg":
			trajectories++
		case plantedHere(dir, want, seen) && !slices.ContainsFunc(what, func(w string) bool { return !strings.HasPrefix(w, planted) }):
		default:
			t.Errorf("%s: %s holds %v", when, name, what)
		}
	}
	if trajectories == 0 || len(seen) < len(want) {
		t.Errorf("%s: found in %d trajectories, planted in %v and found in %v: the look is blind", when, trajectories, want, seen)
	}
	t.Logf("%s: %d MB in %.1f s", when, size>>20, time.Since(begin).Seconds())
}

// plantedHere tells whether a file's folder is one where something was planted, and notes which.
func plantedHere(dir string, want []string, seen map[string]bool) bool {
	for _, w := range want {
		if strings.Contains(dir+"/", "/"+w+"/") {
			seen[w] = true
			return true
		}
	}
	return false
}

// checkpoint makes PostgreSQL write its tables.
func checkpoint(t *testing.T, ctx context.Context, dsn string) {
	t.Helper()
	inDatabase(t, ctx, dsn, "CHECKPOINT")
}

func inDatabase(t *testing.T, ctx context.Context, dsn, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, statement, args...); err != nil {
		t.Fatal(err)
	}
}

// plantInDatabase puts a picture into a table, as bytes and as base64 within a text.
func plantInDatabase(t *testing.T, ctx context.Context, dsn string, picture []byte) {
	t.Helper()
	inDatabase(t, ctx, dsn, "CREATE TABLE planted (raw bytea, text text)")
	inDatabase(t, ctx, dsn, "INSERT INTO planted VALUES ($1, $2)", picture, `{"image":"`+base64.StdEncoding.EncodeToString(picture)+`"}`)
	checkpoint(t, ctx, dsn)
}

// plantInBroker leaves a picture in the broker's store, which no broker can forbid: a request for a decision with the
// retain flag.
func plantInBroker(t *testing.T, ctx context.Context, s *sitetest.Site, picture []byte) {
	t.Helper()
	raw, err := os.ReadFile(s.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.ParseBundle(raw)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(b.Broker)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"ca": b.CA, "cert": b.Certificate, "key": b.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	topic := wire.Topic{Tenant: b.Tenant, Rack: b.Rack, Direction: wire.Up, Kind: wire.KindPlan}
	c := exec.CommandContext(ctx, "mosquitto_pub", "-h", u.Hostname(), "-p", u.Port(), "-V", "mqttv311", "-q", "1", "-i", b.Rack, "-u", b.Rack, "-P", b.BrokerPassword,
		"--cafile", filepath.Join(dir, "ca"), "--cert", filepath.Join(dir, "cert"), "--key", filepath.Join(dir, "key"), "-t", topic.String(), "-r", "-s")
	c.Stdin = bytes.NewReader(picture)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_pub: %v: %s", err, out)
	}
}
