package memfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Stat follows links.
func (v *View) Stat(p string) (fs.FileInfo, error) { return v.stat("stat", p, true) }

// Lstat does not follow a link at the end of the path.
func (v *View) Lstat(p string) (fs.FileInfo, error) { return v.stat("lstat", p, false) }

func (v *View) stat(op, p string, follow bool) (fs.FileInfo, error) {
	v.fs.mu.RLock()
	defer v.fs.mu.RUnlock()
	n, err := v.find(p, follow)
	if err != nil {
		return nil, pathError(op, p, err)
	}
	return n.info(path.Base(p)), nil
}

// ReadDir lists a folder sorted by name.
func (v *View) ReadDir(p string) ([]fs.FileInfo, error) {
	v.fs.mu.RLock()
	defer v.fs.mu.RUnlock()
	n, err := v.find(p, true)
	if err == nil && !n.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		err = v.may(n, Read)
	}
	if err != nil {
		return nil, pathError("open", p, err)
	}
	list := make([]fs.FileInfo, 0, len(n.children))
	for name, c := range n.children {
		list = append(list, c.info(name))
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// Access checks Read, Write and Exec.
func (v *View) Access(p string, want uint32) error {
	v.fs.mu.RLock()
	defer v.fs.mu.RUnlock()
	n, err := v.find(p, true)
	if err == nil {
		err = v.may(n, want)
	}
	return pathError("access", p, err)
}

// add puts a new node under a folder. Called with mu held.
func (v *View) add(parent *node, name string, mode fs.FileMode) (*node, error) {
	if err := v.may(parent, Write|Exec); err != nil {
		return nil, err
	}
	if v.fs.used+blockSize > v.fs.capacity {
		return nil, syscall.ENOSPC
	}
	n := v.fs.newNode(mode, parent.mount)
	n.uid, n.gid = v.uid, v.gid
	if n.mount.Emulated {
		emulate(n, parent)
	}
	n.linked = true
	parent.children[name] = n
	parent.mtime = v.fs.clock()
	return n, nil
}

// emulate gives a file of shared storage the owner and mode that the system wants.
func emulate(n, parent *node) {
	n.uid, n.gid = parent.uid, parent.gid
	if n.mode.IsDir() {
		n.mode = fs.ModeDir | 0o771
		return
	}
	n.mode = n.mode.Type() | 0o660
}

// Mkdir makes one folder.
func (v *View) Mkdir(p string, perm fs.FileMode) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	return pathError("mkdir", p, v.mkdir(p, perm))
}

func (v *View) mkdir(p string, perm fs.FileMode) error {
	parent, base, n, err := v.walk(strings.TrimRight(p, "/"), true)
	if err != nil {
		return err
	}
	if n != nil || parent == nil {
		return syscall.EEXIST
	}
	_, err = v.add(parent, base, fs.ModeDir|perm.Perm())
	return err
}

// MkdirAll makes a folder and those above it that are missing.
func (v *View) MkdirAll(p string, perm fs.FileMode) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	parts := split(p)
	for i := range parts {
		dir := "/" + path.Join(parts[:i+1]...)
		n, err := v.find(dir, true)
		switch {
		case err == syscall.ENOENT:
			if err := v.mkdir(dir, perm); err != nil {
				return pathError("mkdir", dir, err)
			}
		case err != nil:
			return pathError("mkdir", dir, err)
		case !n.mode.IsDir():
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
	}
	return nil
}

// Symlink makes a link.
func (v *View) Symlink(target, p string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	parent, base, n, err := v.walk(p, false)
	switch {
	case err != nil:
	case n != nil:
		err = syscall.EEXIST
	case parent.mount.Emulated:
		err = syscall.EPERM
	default:
		var link *node
		if link, err = v.add(parent, base, fs.ModeSymlink|0o777); err == nil {
			link.target = target
		}
	}
	return pathError("symlink", p, err)
}

// Remove removes a file or an empty folder.
func (v *View) Remove(p string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	parent, base, n, err := v.walk(strings.TrimRight(p, "/"), false)
	switch {
	case err != nil:
	case n == nil:
		err = syscall.ENOENT
	case parent == nil:
		err = syscall.EBUSY
	case len(n.children) > 0:
		err = syscall.ENOTEMPTY
	default:
		if err = v.may(parent, Write|Exec); err == nil {
			v.unlink(parent, base, n)
		}
	}
	return pathError("unlink", p, err)
}

// unlink takes the name away. Called with mu held.
func (v *View) unlink(parent *node, base string, n *node) {
	delete(parent.children, base)
	parent.mtime = v.fs.clock()
	n.linked = false
	v.fs.release(n)
}

// Rename moves a file or folder, over an existing file if there is one. A move
// to another mount takes its rules.
func (v *View) Rename(from, to string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	return pathError("rename", from, v.rename(strings.TrimRight(from, "/"), strings.TrimRight(to, "/")))
}

func (v *View) rename(from, to string) error {
	fromDir, fromBase, n, err := v.walk(from, false)
	if err != nil {
		return err
	}
	toDir, toBase, old, err := v.walk(to, false)
	switch {
	case err != nil:
		return err
	case n == nil:
		return syscall.ENOENT
	case fromDir == nil || toDir == nil:
		return syscall.EBUSY
	case old == n:
		return nil
	case n.mode.IsDir() && contains(n, toDir):
		return syscall.EINVAL
	case old != nil && old.mode.IsDir() && !n.mode.IsDir():
		return syscall.EISDIR
	case old != nil && n.mode.IsDir() && !old.mode.IsDir():
		return syscall.ENOTDIR
	case old != nil && len(old.children) > 0:
		return syscall.ENOTEMPTY
	}
	for _, dir := range []*node{fromDir, toDir} {
		if err := v.may(dir, Write|Exec); err != nil {
			return err
		}
	}
	if old != nil {
		v.unlink(toDir, toBase, old)
	}
	delete(fromDir.children, fromBase)
	toDir.children[toBase] = n
	now := v.fs.clock()
	fromDir.mtime, toDir.mtime = now, now
	adopt(n, toDir)
	return nil
}

func contains(n, other *node) bool {
	if n == other {
		return true
	}
	for _, c := range n.children {
		if c.mode.IsDir() && contains(c, other) {
			return true
		}
	}
	return false
}

// adopt gives a moved tree the mount of its new folder.
func adopt(n, parent *node) {
	if n.mount == parent.mount {
		return
	}
	n.mount = parent.mount
	if n.mount.Emulated {
		emulate(n, parent)
	}
	for _, c := range n.children {
		adopt(c, n)
	}
}

// Chmod changes the permissions; on shared storage it succeeds and does nothing.
func (v *View) Chmod(p string, perm fs.FileMode) error {
	return v.change("chmod", p, func(n *node) {
		if !n.mount.Emulated {
			n.mode = n.mode.Type() | perm.Perm()
		}
	})
}

// Chtimes changes the time of modification.
func (v *View) Chtimes(p string, mtime time.Time) error {
	return v.change("utimes", p, func(n *node) { n.mtime = mtime })
}

// Chown changes the owner. The superuser only.
func (v *View) Chown(p string, uid, gid int) error {
	if v.uid != 0 {
		return pathError("chown", p, syscall.EPERM)
	}
	return v.change("chown", p, func(n *node) { n.uid, n.gid = uid, gid })
}

func (v *View) change(op, p string, fn func(*node)) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	n, err := v.find(p, true)
	if err == nil && n.mount.ReadOnly {
		err = syscall.EROFS
	}
	if err == nil && v.uid != 0 && n.uid != v.uid && !n.mount.Emulated {
		err = syscall.EPERM
	}
	if err == nil {
		fn(n)
	}
	return pathError(op, p, err)
}

// Resolve gives the path of a file without links.
func (v *View) Resolve(p string) (string, error) {
	v.fs.mu.RLock()
	defer v.fs.mu.RUnlock()
	n, err := v.find(p, true)
	if err != nil {
		return "", pathError("realpath", p, err)
	}
	real, _ := nameOf(v.fs.root, n, "/")
	return real, nil
}

// nameOf searches the tree for a node.
func nameOf(dir, n *node, at string) (string, bool) {
	if dir == n {
		return at, true
	}
	for name, c := range dir.children {
		if found, ok := nameOf(c, n, path.Join(at, name)); ok {
			return found, true
		}
	}
	return "", false
}
