package memfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
)

// File is an open file. Processes that share it share its offset.
type File struct {
	mu     sync.Mutex // guards off, closed and failed; taken before FS.mu
	view   *View
	n      *node
	path   string
	flag   int
	off    int64
	data   []byte // of a generated file
	closed bool

	// A deferred file gets its name at Close.
	deferred bool
	mtime    time.Time
	failed   bool
}

// Open opens a file with the flags of package os.
func (v *View) Open(p string, flag int, perm fs.FileMode) (*File, error) {
	v.fs.mu.Lock()
	f, err := v.open(p, flag, perm)
	v.fs.mu.Unlock()
	if err != nil {
		return nil, pathError("open", p, err)
	}
	// Without the lock, for these are somebody else's functions.
	if f.n.device != nil && f.n.device.Err != nil {
		if err := f.n.device.Err(); err != nil {
			f.Abort()
			return nil, pathError("open", p, err)
		}
	}
	if f.n.generate != nil {
		f.data = f.n.generate()
	}
	return f, nil
}

func (v *View) open(p string, flag int, perm fs.FileMode) (*File, error) {
	parent, base, n, err := v.walk(p, true)
	if err != nil {
		return nil, err
	}
	writing := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case n == nil && strings.HasSuffix(p, "/"):
		return nil, syscall.EISDIR
	case n == nil:
		if n, err = v.add(parent, base, perm.Perm()); err != nil {
			return nil, err
		}
	case n.mode.IsDir():
		return nil, syscall.EISDIR
	default:
		want := uint32(Read)
		if writing {
			want = Write
		}
		if flag&os.O_RDWR != 0 {
			want |= Read
		}
		if err := v.may(n, want); err != nil {
			return nil, err
		}
	}
	f := &File{view: v, n: n, path: p, flag: flag}
	if flag&os.O_TRUNC != 0 && writing && n.mode.IsRegular() {
		v.fs.used -= roundUp(n.size)
		n.chunks, n.size = nil, 0
		n.mtime = v.fs.clock()
	}
	n.opened++
	return f, nil
}

// Create starts a file that appears at Close with the given mode and time; folders
// above it are made. Until then its content takes space. Abort drops it.
func (v *View) Create(p string, mode fs.FileMode, mtime time.Time) (*File, error) {
	if dir := path.Dir(path.Clean("/" + p)); dir != "/" {
		if err := v.MkdirAll(dir, 0o771); err != nil {
			return nil, err
		}
	}
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	parent, _, n, err := v.walk(p, true)
	switch {
	case err != nil:
	case parent == nil || n != nil && n.mode.IsDir() || strings.HasSuffix(p, "/"):
		err = syscall.EISDIR
	case n != nil && n.device != nil:
		err = syscall.EACCES
	case n != nil:
		err = v.may(n, Write)
	default:
		err = v.may(parent, Write|Exec)
	}
	if err != nil {
		return nil, pathError("open", p, err)
	}
	hidden := v.fs.newNode(mode.Perm(), parent.mount)
	hidden.uid, hidden.gid = v.uid, v.gid
	hidden.opened = 1
	return &File{view: v, n: hidden, path: p, flag: os.O_WRONLY, deferred: true, mtime: mtime}, nil
}

// Read reads from the current offset.
func (f *File) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flag&os.O_WRONLY != 0 {
		return 0, pathError("read", f.path, syscall.EBADF)
	}
	if f.n.device != nil {
		if f.n.device.Read == nil {
			return 0, io.EOF
		}
		return f.n.device.Read(p)
	}
	if f.n.generate != nil {
		if f.off >= int64(len(f.data)) {
			return 0, io.EOF
		}
		n := copy(p, f.data[f.off:])
		f.off += int64(n)
		return n, nil
	}
	mu := &f.view.fs.mu
	mu.RLock()
	defer mu.RUnlock()
	if f.off >= f.n.size {
		return 0, io.EOF
	}
	chunk := f.n.chunks[f.off/chunkSize]
	n := copy(p, chunk[f.off%chunkSize:])
	f.off += int64(n)
	return n, nil
}

// Write writes at the current offset, or at the end for O_APPEND.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, pathError("write", f.path, syscall.EBADF)
	}
	if f.n.device != nil {
		if f.n.device.Write == nil {
			return len(p), nil
		}
		return f.n.device.Write(p)
	}
	mu := &f.view.fs.mu
	mu.Lock()
	defer mu.Unlock()
	if f.flag&os.O_APPEND != 0 {
		f.off = f.n.size
	}
	n, err := f.write(p)
	f.n.mtime = f.view.fs.clock()
	if err != nil {
		f.failed = true
		return n, pathError("write", f.path, err)
	}
	return n, nil
}

func (f *File) write(p []byte) (done int, err error) {
	n := f.n
	for len(p) > 0 {
		if f.off > n.size { // truncated by somebody else meanwhile
			f.off = n.size
		}
		i, at := int(f.off/chunkSize), int(f.off%chunkSize)
		part := p[:min(len(p), chunkSize-at)]
		if room := roundUp(n.size) + f.view.fs.room() - f.off; room < int64(len(part)) {
			if room <= 0 {
				return done, syscall.ENOSPC
			}
			part = part[:room] // the last of the space
		}
		end := f.off + int64(len(part))
		if end > n.size {
			f.view.fs.used += roundUp(end) - roundUp(n.size)
			n.size = end
		}
		if i == len(n.chunks) {
			n.chunks = append(n.chunks, nil)
		}
		kept := copy(n.chunks[i][at:], part)
		n.chunks[i] = append(n.chunks[i], part[kept:]...)
		f.off = end
		done += len(part)
		p = p[len(part):]
	}
	return done, nil
}

// Close ends the use of the file. A deferred file appears now, unless a write to it
// has failed.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finish(f.deferred && !f.failed)
}

// SetModTime sets the time that a deferred file will have.
func (f *File) SetModTime(mtime time.Time) { f.mtime = mtime }

// Abort closes the file; if it has no name yet, it never gets one.
func (f *File) Abort() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finish(false)
}

func (f *File) finish(link bool) error {
	mu := &f.view.fs.mu
	mu.Lock()
	defer mu.Unlock()
	if f.closed {
		return pathError("close", f.path, syscall.EBADF)
	}
	f.closed = true
	var err error
	if link {
		err = f.link()
	}
	f.n.opened--
	f.view.fs.release(f.n)
	return pathError("close", f.path, err)
}

// link gives a deferred file its name. Called with mu held.
func (f *File) link() error {
	v := f.view
	parent, base, old, err := v.walk(f.path, true)
	switch {
	case err != nil:
		return err
	case parent == nil || old != nil && old.mode.IsDir():
		return syscall.EISDIR
	}
	if err := v.may(parent, Write|Exec); err != nil {
		return err
	}
	if old != nil {
		v.unlink(parent, base, old)
	}
	f.n.mount = parent.mount
	if f.n.mount.Emulated {
		emulate(f.n, parent)
	}
	if !f.mtime.IsZero() {
		f.n.mtime = f.mtime
	}
	f.n.linked = true
	parent.children[base] = f.n
	return nil
}
