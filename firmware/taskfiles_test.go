package firmware

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/sync/wire"
)

func TestKeptFilesHavePlainNamesAndABound(t *testing.T) {
	k := newKeeper(t.TempDir())
	for _, c := range []struct{ name, want string }{
		{"photo.jpg", "file-photo.jpg"},
		{"photo.jpg", "file-photo-2.jpg"},
		{"../../etc/passwd", "file-passwd"},
		{"a b;c\n", "file-a_b_c_"},
		{".hidden", "file-hidden"},
		{"", "file-"},
		{strings.Repeat("x", 100) + ".pdf", "file-" + strings.Repeat("x", 60) + ".pdf"},
	} {
		got, err := k.keep(c.name, strings.NewReader("content"))
		if err != nil || got != c.want {
			t.Errorf("%q: %q, %v", c.name, got, err)
		}
		if b, err := os.ReadFile(filepath.Join(k.folder, got)); err != nil || string(b) != "content" {
			t.Errorf("%q: %q, %v", c.name, b, err)
		}
	}
	k.room = 3
	_, err := k.keep("big", strings.NewReader("content"))
	if r := wire.From(err); r.Code != wire.PayloadTooLarge || r.Args["size"].(int64) <= keptLimit { // with what is kept already
		t.Errorf("got %v, %v", err, r.Args)
	}
	if _, err := k.keep("broken", brokenReader{}); !errors.Is(err, errTorn) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(k.folder, keepingPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

var errTorn = errors.New("torn")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errTorn }

func TestInputsAreNamedByTheirContentAndBounded(t *testing.T) {
	in, err := newInputs(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	durable := map[string]bool{} // names that were in the folder when it was last synced
	in.sync = func(folder string) error {
		entries, err := os.ReadDir(folder)
		for _, e := range entries {
			durable[e.Name()] = true
		}
		return err
	}
	kept, err := in.put(t.Context(), strings.NewReader("hello"))
	if !durable[kept.SHA256] {
		t.Errorf("the name of the file may be lost with the power: %v", durable)
	}
	if err != nil || kept.SHA256 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" || kept.Bytes != 5 {
		t.Fatalf("%+v, %v", kept, err)
	}
	f, size, err := in.open(kept.SHA256)
	if err != nil || size != 5 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	f.Close()
	if _, _, err := in.open("../rackd.db"); !wire.Is(err, wire.BadRequest) {
		t.Errorf("got %v", err)
	}
	if _, err := in.put(t.Context(), brokenReader{}); !errors.Is(err, errTorn) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(in.folder)
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestTheUnfinishedFilesOfACutTaskGo(t *testing.T) {
	dir := t.TempDir()
	l := &taskLog{folder: dir, log: slog.New(slog.DiscardHandler)}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".new-1", ".keep-2", "steps.jsonl", "file-x"} {
		if err := os.WriteFile(filepath.Join(dir, "a", name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	l.clean("a")
	entries, err := os.ReadDir(filepath.Join(dir, "a"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "file-x" || entries[1].Name() != "steps.jsonl" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAFileThatIsBeingLeftIsNotPruned(t *testing.T) {
	in, err := newInputs(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{partPrefix + "1", "old", "new"} { // sparse files
		path := filepath.Join(in.folder, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o640), os.Truncate(path, inputsLimit/2), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
		long = long.Add(time.Minute)
	}
	in.prune("new")
	entries, err := os.ReadDir(in.folder)
	if err != nil || len(entries) != 2 || entries[0].Name() != partPrefix+"1" || entries[1].Name() != "new" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestTheBoundOfInputsLeavesWhatIsUsed(t *testing.T) {
	state := t.TempDir()
	folder := filepath.Join(state, inputsFolder)
	if err := errors.Join(os.Mkdir(folder, 0o750), os.WriteFile(filepath.Join(folder, partPrefix+"cut"), nil, 0o640)); err != nil {
		t.Fatal(err)
	}
	in, err := newInputs(state, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		entries, err := os.ReadDir(in.folder)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	if got := names(); got != "" {
		t.Errorf("what a crash has left half written stays: %s", got)
	}
	long := time.Now().Add(-time.Hour)
	add := func(name string, size int64) { // a sparse file
		path := filepath.Join(in.folder, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o640), os.Truncate(path, size), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
		long = long.Add(time.Minute)
	}
	add("a", inputsLimit/2)
	add("b", inputsLimit/2)
	if in.prune(""); names() != "a b" {
		t.Errorf("within the bound: %s", names())
	}
	add("c", 1)
	f, _, err := in.open("a")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if in.prune(""); names() != "a c" {
		t.Errorf("a was used last: %s", names())
	}
	add("d", inputsLimit)
	if in.prune("c"); names() != "a c" { // c is the oldest now, and was just left
		t.Errorf("the file that was just left is gone: %s", names())
	}
}
