package registry

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
)

// file is a database with one bucket, which a test closes and opens again.
type file struct {
	t    *testing.T
	path string
	db   *bolt.DB
	fail error // that every Update ends with
}

func newFile(t *testing.T) *file {
	t.Helper()
	f := &file{t: t, path: filepath.Join(t.TempDir(), "db")}
	f.open()
	t.Cleanup(func() { f.db.Close() })
	return f
}

func (f *file) open() {
	f.t.Helper()
	db, err := bolt.Open(f.path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.db = db
}

// restart closes the file and opens it again.
func (f *file) restart() {
	f.t.Helper()
	if err := f.db.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

func (f *file) View(fn func(*bolt.Bucket) error) error {
	return f.db.View(func(tx *bolt.Tx) error { return fn(tx.Bucket([]byte("b"))) })
}

func (f *file) Update(fn func(*bolt.Bucket) error) error {
	return f.db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("b"))
		if err != nil {
			return err
		}
		if err := fn(b); err != nil {
			return err
		}
		return f.fail
	})
}

// rows reads a table as it lies on disk.
func (f *file) rows(table string) []map[string]any {
	f.t.Helper()
	rows := []map[string]any{}
	err := f.View(func(b *bolt.Bucket) error {
		return b.Bucket([]byte(table)).ForEach(func(_, raw []byte) error {
			var row map[string]any
			if err := json.Unmarshal(raw, &row); err != nil {
				return err
			}
			rows = append(rows, row)
			return nil
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// count is how many rows a table has.
func (f *file) count(table string) (n int) {
	f.t.Helper()
	err := f.View(func(b *bolt.Bucket) error { n = b.Bucket([]byte(table)).Stats().KeyN; return nil })
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// corrupt puts a value in the place of a table's first.
func (f *file) corrupt(table string, value []byte) {
	f.t.Helper()
	err := f.Update(func(b *bolt.Bucket) error {
		k, _ := b.Bucket([]byte(table)).Cursor().First()
		return b.Bucket([]byte(table)).Put(bytes.Clone(k), value)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// openRegistry returns a registry over the file, whose clock steps by a second.
func openRegistry(t *testing.T, f *file, tools *Tools) *Registry {
	t.Helper()
	at := time.Date(2026, 11, 30, 8, 0, 0, 123456789, time.UTC)
	r, err := Open(Options{Bucket: f, Tools: tools, Now: func() time.Time {
		at = at.Add(time.Second)
		return at
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// parse reads a skill as people write it.
func parse(t *testing.T, text string) *model.RegistrySkill {
	t.Helper()
	s, err := model.ParseRegistryYAML("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return s
}

func add(t *testing.T, r *Registry, text string) *Skill {
	t.Helper()
	s, err := r.Add(parse(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shelf is a catalog that shows the same to everybody.
type shelf map[string]*model.Skill

func (s shelf) Skill(id string) (*model.Skill, bool) {
	skill, ok := s[id]
	return skill, ok
}

func flow(id string, tools ...string) *model.Skill {
	s := &model.Skill{ID: id, Name: id, Kind: model.FlowTemplate}
	for _, tool := range tools {
		s.Steps = append(s.Steps, model.Step{Tool: tool, ArgsTemplate: []byte(`{}`)})
	}
	return s
}

// builtins are tools that exist.
func builtins(t *testing.T, names ...string) *Tools {
	t.Helper()
	tools := &Tools{}
	for _, n := range names {
		if err := tools.Add(Tool{Name: n, Source: Builtin}); err != nil {
			t.Fatal(err)
		}
	}
	return tools
}
