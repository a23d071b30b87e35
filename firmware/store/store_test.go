package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

func options(dir string) Options {
	return Options{
		Path: filepath.Join(dir, "rackd.db"), LockTimeout: 100 * time.Millisecond,
		Now: func() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) },
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.db.Close(); s.lock.Close() })
	return s
}

// fill writes enough that the tree has branch pages, sub-buckets and overflow pages.
func fill(t *testing.T, s *Store) {
	t.Helper()
	b, err := s.Bucket("tasks")
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(b *bolt.Bucket) error {
		for i := range 400 {
			if err := b.Put(fmt.Appendf(nil, "task-%04d", i), bytes.Repeat([]byte{byte(i)}, 50+i%90)); err != nil {
				return err
			}
		}
		return b.Put([]byte("large"), bytes.Repeat([]byte("x"), 3*4096))
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		small, err := s.Bucket(fmt.Sprintf("small%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := small.Update(func(b *bolt.Bucket) error { return b.Put([]byte("k"), []byte("v")) }); err != nil {
			t.Fatal(err)
		}
	}
}

func value(t *testing.T, s *Store, bucket, key string) string {
	t.Helper()
	b, err := s.Bucket(bucket)
	if err != nil {
		t.Fatal(err)
	}
	var v string
	if err := b.View(func(b *bolt.Bucket) error { v = string(b.Get([]byte(key))); return nil }); err != nil {
		t.Fatal(err)
	}
	return v
}

// filled returns a folder with a database and, if wanted, a compacted copy of it.
func filled(t *testing.T, withCopy bool) Options {
	t.Helper()
	o := options(t.TempDir())
	s := open(t, o)
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !withCopy {
		if err := os.Remove(o.Path + copySuffix); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func TestKeepsWhatWasCommittedAndCountsBoots(t *testing.T) {
	o := options(t.TempDir())
	s := open(t, o)
	if s.Recovery().Outcome != Created || !strings.HasPrefix(s.Boot(), "1-") {
		t.Fatalf("first opening: %+v, boot %s", s.Recovery(), s.Boot())
	}
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	if s.Recovery().Outcome != Opened || !strings.HasPrefix(s.Boot(), "2-") {
		t.Fatalf("second opening: %+v, boot %s", s.Recovery(), s.Boot())
	}
	if got := value(t, s, "small1", "k"); got != "v" {
		t.Errorf("value is %q", got)
	}
}

// usable demands of any recovered store that it takes and keeps a write.
func usable(t *testing.T, s *Store) {
	t.Helper()
	b, err := s.Bucket("probe")
	if err != nil {
		t.Fatalf("after %+v: %v", s.Recovery(), err)
	}
	if err := b.Update(func(b *bolt.Bucket) error { return b.Put([]byte("k"), []byte("after")) }); err != nil {
		t.Fatalf("after %+v: %v", s.Recovery(), err)
	}
	if got := value(t, s, "probe", "k"); got != "after" {
		t.Fatalf("after %+v: value is %q", s.Recovery(), got)
	}
}

func TestTruncatedFileIsPutAsideAndRestored(t *testing.T) {
	whole, err := os.ReadFile(filled(t, false).Path)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := readMetas(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	used := int(m.pages * m.pageSize) // the file is allocated beyond it
	sizes := []int{0, 1, 15, 79, 80, 512, 4095, 4096, 4097, 8192, 12288, 16384, 20000, used / 2, used - 4096, used - 1}
	for _, size := range sizes {
		for _, withCopy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, copy %v", size, withCopy), func(t *testing.T) {
				o := filled(t, withCopy)
				if err := os.WriteFile(o.Path, whole[:size], 0o640); err != nil {
					t.Fatal(err)
				}
				s := open(t, o)
				want := Fresh
				if withCopy {
					want = Restored
					if got := value(t, s, "small1", "k"); got != "v" {
						t.Errorf("restored value is %q", got)
					}
				}
				r := s.Recovery()
				if r.Outcome != want || r.Reason == "" || len(r.Aside) != 1 {
					t.Fatalf("recovery %+v, want %s", r, want)
				}
				aside, err := os.ReadFile(r.Aside[0])
				if err != nil || !bytes.Equal(aside, whole[:size]) {
					t.Errorf("the damaged file was not kept: %v", err)
				}
				usable(t, s)
			})
		}
	}
}

func TestRandomDamageNeverEndsTheProcess(t *testing.T) {
	whole, err := os.ReadFile(filled(t, true).Path)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 250
	if testing.Short() {
		rounds = 60
	}
	outcomes := map[Outcome]int{}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 7))
		damaged := bytes.Clone(whole)
		switch random.IntN(4) {
		case 0: // single bits
			for range 1 + random.IntN(8) {
				damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
			}
		case 1: // a block of noise
			start := random.IntN(len(damaged))
			for i := start; i < min(len(damaged), start+1+random.IntN(6000)); i++ {
				damaged[i] = byte(random.Uint32())
			}
		case 2: // a page of zeros
			start := 4096 * random.IntN(len(damaged)/4096)
			clear(damaged[start : start+4096])
		case 3: // page headers: numbers that lead elsewhere
			start := 4096 * random.IntN(len(damaged)/4096)
			for i := range 64 {
				damaged[start+i] ^= byte(1<<random.IntN(8)) * byte(random.IntN(2))
			}
		}
		o := options(t.TempDir())
		if err := os.WriteFile(o.Path, damaged, 0o640); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		outcomes[s.Recovery().Outcome]++
		usable(t, s)
		readAll(t, s)
		s.db.Close()
		s.lock.Close()
	}
	if outcomes[Fresh] == 0 || outcomes[Opened] == 0 {
		t.Errorf("the damage was one-sided: %v", outcomes)
	}
}

// readAll touches every key and value that the file still offers.
func readAll(t *testing.T, s *Store) {
	t.Helper()
	err := s.guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error { _ = string(k) + string(v); return nil })
			})
		})
	})
	if err != nil {
		t.Errorf("a store that opened as %+v cannot be read: %v", s.Recovery(), err)
	}
}

func TestBitFlipsInMetaPages(t *testing.T) {
	flip := func(t *testing.T, pages ...int) *Store {
		o := filled(t, false)
		whole, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			whole[page*os.Getpagesize()+pageHeaderSize+48] ^= 4 // in the transaction id
		}
		if err := os.WriteFile(o.Path, whole, 0o640); err != nil {
			t.Fatal(err)
		}
		return open(t, o)
	}
	for page := range 2 {
		s := flip(t, page)
		if r := s.Recovery(); r.Outcome != Opened || !strings.Contains(r.Reason, "last transaction may be missing") {
			t.Errorf("meta page %d flipped: %+v", page, r)
		}
		usable(t, s)
	}
	if r := flip(t, 0, 1).Recovery(); r.Outcome != Fresh || !strings.Contains(r.Reason, "both meta pages") {
		t.Errorf("both flipped: %+v", r)
	}
}

func TestDamagedCopyIsPutAsideToo(t *testing.T) {
	o := filled(t, true)
	for _, path := range []string{o.Path, o.Path + copySuffix} {
		if err := os.Truncate(path, 5000); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, o)
	if r := s.Recovery(); r.Outcome != Fresh || len(r.Aside) != 2 {
		t.Fatalf("recovery %+v", r)
	}
	usable(t, s)
}

func TestDamagedFilesGetNamesOfTheirOwn(t *testing.T) {
	o := filled(t, false)
	for range 3 {
		if err := os.WriteFile(o.Path, []byte("noise"), 0o640); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		s.db.Close()
		s.lock.Close()
	}
	kept, err := filepath.Glob(o.Path + damagedSuffix + "*")
	if err != nil || len(kept) != 3 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

func TestCrashWhileAFileWasBeingWritten(t *testing.T) {
	t.Run("before the first database appeared", func(t *testing.T) {
		o := options(t.TempDir())
		if err := os.WriteFile(o.Path+newSuffix, []byte("half a fi"), 0o640); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		if s.Recovery().Outcome != Created {
			t.Errorf("recovery %+v", s.Recovery())
		}
		usable(t, s)
	})
	t.Run("during a copy", func(t *testing.T) {
		o := filled(t, true)
		if err := os.WriteFile(o.Path+newSuffix, []byte("half a copy"), 0o640); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		if s.Recovery().Outcome != Opened {
			t.Errorf("recovery %+v", s.Recovery())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(o.Path + newSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the temporary file is left over: %v", err)
		}
	})
	t.Run("between putting aside and restoring", func(t *testing.T) {
		o := filled(t, true)
		if err := os.Remove(o.Path); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		if s.Recovery().Outcome != Restored {
			t.Errorf("recovery %+v", s.Recovery())
		}
		if got := value(t, s, "small1", "k"); got != "v" {
			t.Errorf("restored value is %q", got)
		}
	})
}

func TestSecondOpenerIsToldWhoHoldsIt(t *testing.T) {
	o := options(t.TempDir())
	open(t, o)
	_, err := Open(o)
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("second opener got %v", err)
	}
	want := fmt.Sprintf("in use by another rackd (process %d): stop that one", os.Getpid())
	if !strings.Contains(err.Error(), want) {
		t.Errorf("sentence is %q, want %q in it", err, want)
	}
}

func TestNewerSchemaIsLeftAlone(t *testing.T) {
	o := filled(t, true)
	s := open(t, o)
	err := s.db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(rootBucket).Put(schemaKey, []byte{0, 0, 0, Schema + 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.db.Close()
	s.lock.Close()
	before, _ := os.ReadFile(o.Path)
	if _, err := Open(o); !errors.Is(err, ErrNewer) {
		t.Fatalf("open: %v", err)
	}
	if after, _ := os.ReadFile(o.Path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestUnreadableFileIsNotTakenForDamage(t *testing.T) {
	o := filled(t, true)
	if err := os.Chmod(o.Path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		becomeNobody(t, filepath.Dir(o.Path))
	}
	if _, err := Open(o); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("open: %v", err)
	}
}

// becomeNobody makes the test's thread touch files as a user without rights, because root reads everything, and makes
// that user the owner of a folder and what is in it.
func becomeNobody(t *testing.T, dir string) {
	t.Helper()
	const nobody = 65534
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setfsuid(0); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
}

func TestFullStoreRefusesAndKeepsWhatItHas(t *testing.T) {
	o := options(t.TempDir())
	o.MaxSize = 256 << 10
	fillUp(t, o)
}

// fillUp writes until the store refuses, and demands that the refusal has a name and costs nothing.
func fillUp(t *testing.T, o Options) {
	s := open(t, o)
	b, err := s.Bucket("tasks")
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for ; written < 1000; written++ {
		err = b.Update(func(b *bolt.Bucket) error {
			return b.Put(fmt.Appendf(nil, "%04d", written), bytes.Repeat([]byte("x"), 8000))
		})
		if err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d writes: %v", written, err)
	}
	count := 0
	err = b.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(_, _ []byte) error { count++; return nil })
	})
	if err != nil || count != written {
		t.Fatalf("%d of %d values are left, %v", count, written, err)
	}
	if err := b.Update(func(b *bolt.Bucket) error { return b.Delete([]byte("0000")) }); err != nil {
		t.Errorf("nothing can be deleted from a full store: %v", err)
	}
	s.db.Close()
	s.lock.Close()
	if r := open(t, o).Recovery(); r.Outcome != Opened {
		t.Errorf("reopened as %+v", r)
	}
}

// TestFullDisk runs itself in a child whose files cannot grow beyond a bound, as on a full disk.
func TestFullDisk(t *testing.T) {
	const marker = "STORE_FULL_DISK_CHILD"
	if dir := os.Getenv(marker); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		fillUp(t, options(dir))
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.timeout=30s")
	child.Env = append(os.Environ(), marker+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestKillLosesNothingAcknowledged runs itself in a child that writes until it is killed in the middle.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	const marker = "STORE_KILL_CHILD"
	if dir := os.Getenv(marker); dir != "" {
		s := open(t, options(dir))
		b, err := s.Bucket("tasks")
		for n := 0; err == nil; n++ {
			err = b.Update(func(b *bolt.Bucket) error { return b.Put(fmt.Appendf(nil, "%d", n), make([]byte, 3000)) })
			fmt.Fprintln(os.Stdout, n)
		}
		t.Fatal(err)
	}
	dir := t.TempDir()
	for round := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillLosesNothingAcknowledged$", "-test.timeout=30s")
		child.Env = append(os.Environ(), marker+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			acknowledged = lines.Text()
			if n, _ := strconv.Atoi(acknowledged); n == 20+7*round {
				child.Process.Kill()
			}
		}
		child.Wait()
		s := open(t, options(dir))
		if r := s.Recovery(); r.Outcome != Opened || r.Reason != "" {
			t.Errorf("recovery %+v", r)
		}
		if got := value(t, s, "tasks", acknowledged); len(got) != 3000 {
			t.Errorf("write %s was acknowledged and is gone", acknowledged)
		}
		s.db.Close()
		s.lock.Close()
	}
}

func TestPanicInATransactionIsAnErrorAndReleasesTheStore(t *testing.T) {
	s := open(t, options(t.TempDir()))
	b, err := s.Bucket("tasks")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Update(func(*bolt.Bucket) error { panic("page 7 already freed") }); !errors.Is(err, ErrDamaged) {
		t.Fatalf("update: %v", err)
	}
	usable(t, s)
}

func FuzzSurvey(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(options(dir))
	if err != nil {
		f.Fatal(err)
	}
	s.db.Close()
	s.lock.Close()
	whole, err := os.ReadFile(filepath.Join(dir, "rackd.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:5000])
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = surveyFile(bytes.NewReader(file), int64(len(file)))
	})
}
