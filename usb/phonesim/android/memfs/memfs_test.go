package memfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var epoch = time.Unix(1_700_000_000, 0)

// phone is a tree with the mounts that matter, and the view of its shell user.
func phone(t *testing.T, capacity int64) (*FS, *View) {
	t.Helper()
	f := New(capacity, func() time.Time { return epoch })
	root := f.As(0, 0)
	for _, err := range []error{
		f.Mount(Mount{Point: "/system"}, 0o755, 0, 0),
		f.Put("/system/app", 0o644, []byte("app")),
		f.Seal("/system"),
		f.Mount(Mount{Point: "/shared", NoExec: true, Emulated: true}, 0o771, 0, 1015),
		root.Mkdir("/private", 0o700),
		root.Mkdir("/tmp", 0o771),
		root.Chown("/tmp", 2000, 2000),
		root.Symlink("/shared", "/link"),
		root.Symlink("loop", "/loop"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return f, f.As(2000, 2000, 1015)
}

func write(v *View, p, text string) error {
	f, err := v.Open(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.WriteString(f, text)
	return err
}

func read(t *testing.T, v *View, p string) string {
	t.Helper()
	f, err := v.Open(p, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatAndroidRefuses(t *testing.T) {
	_, v := phone(t, 1<<20)
	if err := write(v, "/tmp/x", "x"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"write to the system", write(v, "/system/x", ""), syscall.EROFS},
		{"overwrite the system", write(v, "/system/app", ""), syscall.EROFS},
		{"write to the root", write(v, "/x", ""), syscall.EACCES},
		{"enter a private folder", write(v, "/private/x", ""), syscall.EACCES},
		{"write a folder", write(v, "/tmp", ""), syscall.EISDIR},
		{"folder missing", write(v, "/tmp/none/x", ""), syscall.ENOENT},
		{"file as folder", write(v, "/tmp/x/y", ""), syscall.ENOTDIR},
		{"loop", write(v, "/loop/x", ""), syscall.ELOOP},
		{"long name", write(v, "/tmp/"+strings.Repeat("n", 256), ""), syscall.ENAMETOOLONG},
		{"long path", write(v, strings.Repeat("/n", 2100), ""), syscall.ENAMETOOLONG},
		{"remove a system file", v.Remove("/system/app"), syscall.EROFS},
		{"remove what is not there", v.Remove("/tmp/none"), syscall.ENOENT},
		{"remove a full folder", v.Remove("/tmp/.."), syscall.EBUSY},
		{"link on shared storage", v.Symlink("x", "/shared/x"), syscall.EPERM},
		{"make twice", v.Mkdir("/tmp", 0o777), syscall.EEXIST},
		{"folder into itself", func() error { v.Mkdir("/tmp/d", 0o777); return v.Rename("/tmp/d", "/tmp/d/e") }(), syscall.EINVAL},
		{"change an owner", v.Chown("/tmp/x", 0, 0), syscall.EPERM},
		{"change a mode of others", v.Chmod("/private", 0o777), syscall.EPERM},
		{"execute on shared storage", func() error { write(v, "/shared/x", ""); return v.Access("/shared/x", Exec) }(), syscall.EACCES},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
}

func TestSharedStorageDecidesOwnerAndMode(t *testing.T) {
	_, v := phone(t, 1<<20)
	if err := write(v, "/link/a", "text"); err != nil {
		t.Fatal(err)
	}
	v.Chmod("/shared/a", 0o777)
	info, err := v.Stat("/link/a")
	if err != nil || info.Mode() != 0o660 || info.Sys().(*Attr).GID != 1015 || info.Size() != 4 || !info.ModTime().Equal(epoch) {
		t.Errorf("%v %+v", err, info)
	}
	if err := v.Rename("/shared/a", "/tmp/a"); err != nil || read(t, v, "/tmp/a") != "text" {
		t.Errorf("rename: %v", err)
	}
	if p, err := v.Resolve("/link/"); err != nil || p != "/shared" {
		t.Errorf("resolve: %q %v", p, err)
	}
}

func TestStorageRunsOutAndComesBack(t *testing.T) {
	f, v := phone(t, 1<<20)
	before, _ := f.Usage()
	err := write(v, "/tmp/big", strings.Repeat("x", 2<<20))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write: %v", err)
	}
	if used, capacity := f.Usage(); used > capacity {
		t.Errorf("%d of %d used", used, capacity)
	}
	if err := write(v, "/tmp/more", "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
	v.Remove("/tmp/more")
	if err := v.Remove("/tmp/big"); err != nil {
		t.Fatal(err)
	}
	if used, _ := f.Usage(); used != before {
		t.Errorf("%d used, %d before", used, before)
	}
	f.SetFull(true)
	if err := write(v, "/tmp/x", "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
}

func TestOpenFileOutlivesItsName(t *testing.T) {
	f, v := phone(t, 1<<20)
	write(v, "/tmp/x", strings.Repeat("abc", 50_000))
	before, _ := f.Usage()
	r, err := v.Open("/tmp/x", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	v.Remove("/tmp/x")
	if used, _ := f.Usage(); used != before {
		t.Error("space given back under a reader")
	}
	if b, _ := io.ReadAll(r); len(b) != 150_000 {
		t.Errorf("%d bytes", len(b))
	}
	r.Close()
	if used, _ := f.Usage(); used >= before {
		t.Error("space not given back")
	}
}

func TestDeferredFile(t *testing.T) {
	f, v := phone(t, 1<<20)
	before, _ := f.Usage()
	w, err := v.Create("/tmp/new/dir/x", 0o755, epoch.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "text")
	if _, err := v.Stat("/tmp/new/dir/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, _ := v.Stat("/tmp/new/dir/x")
	if info.Mode() != 0o755 || !info.ModTime().Equal(epoch.Add(-time.Hour)) {
		t.Errorf("%v %v", info.Mode(), info.ModTime())
	}
	w, _ = v.Create("/tmp/new/dir/x", 0o644, time.Time{})
	io.WriteString(w, "other")
	w.Abort()
	if got := read(t, v, "/tmp/new/dir/x"); got != "text" {
		t.Errorf("after Abort: %q", got)
	}
	w, _ = v.Create("/tmp/y", 0o644, time.Time{})
	if _, err := w.Write(make([]byte, 2<<20)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
	w.Close()
	if _, err := v.Stat("/tmp/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that did not fit appeared: %v", err)
	}
	if _, err := v.Create("/system/x", 0o644, epoch); !errors.Is(err, syscall.EROFS) {
		t.Errorf("create: %v", err)
	}
	if _, err := v.Create("/private/x", 0o644, epoch); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("create: %v", err)
	}
	os := v.fs.As(0, 0)
	os.Remove("/tmp/new/dir/x")
	os.Remove("/tmp/new/dir")
	os.Remove("/tmp/new")
	if used, _ := f.Usage(); used != before {
		t.Errorf("%d used, %d before", used, before)
	}
}

func TestAppendAndTruncate(t *testing.T) {
	_, v := phone(t, 1<<20)
	write(v, "/tmp/x", "one")
	f, _ := v.Open("/tmp/x", os.O_WRONLY|os.O_APPEND, 0)
	io.WriteString(f, "two")
	write(v, "/tmp/x", "")
	io.WriteString(f, "three")
	f.Close()
	if got := read(t, v, "/tmp/x"); got != "three" {
		t.Errorf("%q", got)
	}
	if _, err := f.Write(nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write after Close: %v", err)
	}
}

// A push of 100 MB must be held once, and given back.
func TestLargeFile(t *testing.T) {
	f, v := phone(t, 256<<20)
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	w, err := v.Create("/tmp/big", 0o644, epoch)
	if err != nil {
		t.Fatal(err)
	}
	const blocks = 1600
	for range blocks {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 150<<20 {
		t.Errorf("%d MiB of heap for %d MiB", m.HeapAlloc>>20, blocks*len(block)>>20)
	}
	r, _ := v.Open("/tmp/big", os.O_RDONLY, 0)
	buf := make([]byte, len(block))
	for i := range blocks {
		if _, err := io.ReadFull(r, buf); err != nil || !bytes.Equal(buf, block) {
			t.Fatalf("block %d: %v", i, err)
		}
	}
	r.Close()
	v.Remove("/tmp/big")
	if used, _ := f.Usage(); used > 1<<20 {
		t.Errorf("%d used", used)
	}
}

func TestManyAtOnce(t *testing.T) {
	_, v := phone(t, 8<<20)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				p := "/tmp/" + string(rune('a'+(i+j)%4))
				switch j % 5 {
				case 0, 1:
					write(v, p, strings.Repeat("x", 70_000))
				case 2:
					v.Remove(p)
				case 3:
					v.ReadDir("/tmp")
				default:
					if f, err := v.Open(p, os.O_RDONLY, 0); err == nil {
						io.Copy(io.Discard, f)
						f.Close()
					}
				}
			}
		})
	}
	wg.Wait()
}
