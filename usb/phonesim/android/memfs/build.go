package memfs

import (
	"io/fs"
	"syscall"
)

// The functions of this file build the image of a phone; they pass over modes and
// read-only mounts.

// Mount puts a file system on a folder, which is made if it is missing.
func (f *FS) Mount(m Mount, perm fs.FileMode, uid, gid int) error {
	root := f.As(0, 0)
	if err := root.MkdirAll(m.Point, 0o755); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := root.find(m.Point, true)
	if err != nil {
		return pathError("mount", m.Point, err)
	}
	n.mount = &m
	n.mode = fs.ModeDir | perm.Perm()
	n.uid, n.gid = uid, gid
	return nil
}

// Seal makes a mounted file system read-only.
func (f *FS) Seal(point string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.As(0, 0).find(point, true)
	if err == nil && n.mount.Point != point {
		err = syscall.EINVAL
	}
	if err == nil {
		n.mount.ReadOnly = true
	}
	return pathError("mount", point, err)
}

// Put makes a file with a content.
func (f *FS) Put(p string, perm fs.FileMode, content []byte) error {
	w, err := f.As(0, 0).Create(p, perm, f.clock())
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// PutGenerated makes a file whose content is made at each opening. Generate must
// not use the FS.
func (f *FS) PutGenerated(p string, perm fs.FileMode, generate func() []byte) error {
	return f.special(p, perm, func(n *node) { n.generate = generate })
}

// PutDevice makes a character device.
func (f *FS) PutDevice(p string, perm fs.FileMode, d Device) error {
	return f.special(p, perm, func(n *node) {
		n.device = &d
		n.mode |= fs.ModeDevice | fs.ModeCharDevice
	})
}

func (f *FS) special(p string, perm fs.FileMode, fn func(*node)) error {
	if err := f.Put(p, perm, nil); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.As(0, 0).find(p, true)
	if err != nil {
		return pathError("open", p, err)
	}
	fn(n)
	return nil
}
