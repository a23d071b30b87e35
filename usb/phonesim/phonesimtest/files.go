package phonesimtest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// System is a small Android in memory: files, properties and a shell of a few commands (see Run).
// The zero value is empty and ready.
type System struct {
	// Properties answers Property. It is not to be changed while the phone runs.
	Properties map[string]string
	// ReadOnly names a folder below which nothing can be written; "" is none.
	ReadOnly string
	// Capacity is how many bytes all files may have together; 0 is no limit.
	Capacity int

	mu    sync.Mutex // guards what follows
	files map[string]*file
	runs  []string
}

// file is a file, a folder or a symbolic link, whose target is its data.
type file struct {
	name  string
	data  []byte
	mode  fs.FileMode
	mtime time.Time
}

// Name implements fs.FileInfo.
func (f *file) Name() string { return f.name }

// Size implements fs.FileInfo.
func (f *file) Size() int64 { return int64(len(f.data)) }

// Mode implements fs.FileInfo.
func (f *file) Mode() fs.FileMode { return f.mode }

// ModTime implements fs.FileInfo.
func (f *file) ModTime() time.Time { return f.mtime }

// IsDir implements fs.FileInfo.
func (f *file) IsDir() bool { return f.mode.IsDir() }

// Sys implements fs.FileInfo.
func (f *file) Sys() any { return nil }

// Property implements phonesim.System.
func (s *System) Property(name string) string { return s.Properties[name] }

// WriteFile puts a file into the system, with its folders.
func (s *System) WriteFile(name string, data []byte, mode fs.FileMode, mtime time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, &file{data: data, mode: mode, mtime: mtime})
}

// ReadFile returns the content of a file.
func (s *System) ReadFile(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find("read", name)
	if err != nil {
		return nil, err
	}
	return f.data, nil
}

// put adds an entry and the folders above it; s.mu is held.
func (s *System) put(name string, f *file) {
	name = path.Clean("/" + name)
	if s.files == nil {
		s.files = map[string]*file{}
	}
	f.name = path.Base(name)
	s.files[name] = f
	if dir := path.Dir(name); dir != name && s.files[dir] == nil {
		s.put(dir, &file{mode: fs.ModeDir | 0o771, mtime: f.mtime})
	}
}

// find returns an entry; s.mu is held.
func (s *System) find(op, name string) (*file, error) {
	if f := s.files[path.Clean("/"+name)]; f != nil {
		return f, nil
	}
	if path.Clean("/"+name) == "/" {
		return &file{name: "/", mode: fs.ModeDir | 0o755}, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Stat implements phonesim.System. It follows a symbolic link once.
func (s *System) Stat(name string) (fs.FileInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find("stat", name)
	if err == nil && f.mode&fs.ModeSymlink != 0 {
		f, err = s.find("stat", string(f.data))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Lstat implements phonesim.LinkSystem.
func (s *System) Lstat(name string) (fs.FileInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find("lstat", name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadDir implements phonesim.System.
func (s *System) ReadDir(name string) ([]fs.FileInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find("open", name)
	if err != nil {
		return nil, err
	}
	if !f.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	var list []fs.FileInfo
	for _, p := range slices.Sorted(maps.Keys(s.files)) {
		if p != "/" && path.Dir(p) == path.Clean("/"+name) {
			list = append(list, s.files[p])
		}
	}
	return list, nil
}

// OpenFile implements phonesim.System.
func (s *System) OpenFile(name string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find("open", name)
	if err != nil {
		return nil, err
	}
	if f.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if f.mode.Perm()&0o444 == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return io.NopCloser(bytes.NewReader(f.data)), nil
}

// CreateFile implements phonesim.System. The writer is a phonesim.TimedFile.
func (s *System) CreateFile(name string, mode fs.FileMode, mtime time.Time) (io.WriteCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = path.Clean("/" + name)
	if s.ReadOnly != "" && (name == s.ReadOnly || strings.HasPrefix(name, s.ReadOnly+"/")) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	if f := s.files[name]; f != nil && f.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return &newFile{system: s, path: name, file: file{mode: mode, mtime: mtime}}, nil
}

// newFile is a file that has not been closed.
type newFile struct {
	system *System
	path   string
	file   file
}

// Write implements io.Writer; it fails with ENOSPC when the system is full.
func (n *newFile) Write(b []byte) (int, error) {
	n.system.mu.Lock()
	defer n.system.mu.Unlock()
	if n.system.Capacity > 0 {
		total := len(n.file.data) + len(b)
		for _, f := range n.system.files {
			total += len(f.data)
		}
		if total > n.system.Capacity {
			return 0, &fs.PathError{Op: "write", Path: n.path, Err: syscall.ENOSPC}
		}
	}
	n.file.data = append(n.file.data, b...)
	return len(b), nil
}

// SetModTime implements phonesim.TimedFile.
func (n *newFile) SetModTime(mtime time.Time) { n.file.mtime = mtime }

// Close implements io.Closer: the file appears.
func (n *newFile) Close() error {
	n.system.mu.Lock()
	defer n.system.mu.Unlock()
	n.system.put(n.path, &n.file)
	return nil
}
