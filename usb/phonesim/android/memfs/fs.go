package memfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// FS is a tree of files of a given capacity.
type FS struct {
	clock    func() time.Time
	capacity int64

	mu   sync.RWMutex // guards what follows and all nodes
	root *node
	used int64
	full bool
	inos uint64
}

// New makes an empty tree. The clock gives the times of modification.
func New(capacity int64, clock func() time.Time) *FS {
	f := &FS{clock: clock, capacity: capacity}
	f.root = f.newNode(fs.ModeDir|0o755, &Mount{Device: "rootfs", Point: "/"})
	f.root.linked = true
	return f
}

// SetFull makes every write of new space fail as if the storage had run out.
func (f *FS) SetFull(full bool) {
	f.mu.Lock()
	f.full = full
	f.mu.Unlock()
}

// Usage gives the capacity and what is used of it, in bytes.
func (f *FS) Usage() (used, capacity int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.full {
		return f.capacity, f.capacity
	}
	return f.used, f.capacity
}

// room is the space that is left, in whole blocks. Called with mu held.
func (f *FS) room() int64 {
	if f.full {
		return 0
	}
	return max(f.capacity-f.used, 0) / blockSize * blockSize
}

// release gives a node's space back once it has neither a name nor a reader.
// Called with mu held.
func (f *FS) release(n *node) {
	if n.linked || n.opened > 0 {
		return
	}
	f.used -= n.blocks()
	n.chunks, n.size = nil, 0
}

func (f *FS) newNode(mode fs.FileMode, m *Mount) *node {
	f.inos++
	n := &node{ino: f.inos, mode: mode, mount: m, mtime: f.clock()}
	if mode.IsDir() {
		n.children = map[string]*node{}
	}
	f.used += n.blocks()
	return n
}

// View is the tree as one user sees it. UID 0 may do everything except
// write to a read-only mount.
type View struct {
	fs     *FS
	uid    int
	gid    int
	groups []int
}

// As gives the view of a user.
func (f *FS) As(uid, gid int, groups ...int) *View {
	return &View{fs: f, uid: uid, gid: gid, groups: append([]int{gid}, groups...)}
}

// Permission bits as for access(2).
const (
	Exec  = 1
	Write = 2
	Read  = 4
)

// may checks a permission. Called with mu held.
func (v *View) may(n *node, want uint32) error {
	if want&Write != 0 && n.mount.ReadOnly && (n.mode.IsDir() || n.mode.IsRegular()) {
		return syscall.EROFS
	}
	if n.mode.IsRegular() && want&Exec != 0 && n.mount.NoExec {
		return syscall.EACCES
	}
	if v.uid == 0 {
		return nil
	}
	perm := uint32(n.mode.Perm())
	switch {
	case n.uid == v.uid:
		perm >>= 6
	case slices.Contains(v.groups, n.gid):
		perm >>= 3
	}
	if perm&want != want {
		return syscall.EACCES
	}
	return nil
}

const (
	maxLinks = 40
	maxPath  = 4096
	maxName  = 255
)

// walk finds a node and its parent. The node is nil when only the last element
// is missing. Called with mu held.
func (v *View) walk(p string, follow bool) (parent *node, base string, n *node, err error) {
	links := 0
	return v.walkFrom(p, follow, &links)
}

func (v *View) walkFrom(p string, follow bool, links *int) (parent *node, base string, n *node, err error) {
	if len(p) > maxPath {
		return nil, "", nil, syscall.ENAMETOOLONG
	}
	trailing := strings.HasSuffix(p, "/")
	parts := split(p)
	dir := "/"
	n = v.fs.root
	for i, name := range parts {
		last := i == len(parts)-1
		if n == nil {
			return nil, "", nil, syscall.ENOENT
		}
		if !n.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		if err := v.may(n, Exec); err != nil {
			return nil, "", nil, err
		}
		if len(name) > maxName {
			return nil, "", nil, syscall.ENAMETOOLONG
		}
		parent, base = n, name
		child := n.children[name]
		if child == nil {
			if last {
				return parent, base, nil, nil
			}
			return nil, "", nil, syscall.ENOENT
		}
		if child.mode&fs.ModeSymlink != 0 && (!last || follow || trailing) {
			if *links++; *links > maxLinks {
				return nil, "", nil, syscall.ELOOP
			}
			target := child.target
			if !path.IsAbs(target) {
				target = path.Join(dir, target)
			}
			rest := path.Join(parts[i+1:]...)
			return v.walkFrom(path.Join(target, rest)+tail(trailing && !last), follow, links)
		}
		n = child
		dir = path.Join(dir, name)
	}
	if trailing && n != nil && !n.mode.IsDir() {
		return nil, "", nil, syscall.ENOTDIR
	}
	return parent, base, n, nil
}

func tail(slash bool) string {
	if slash {
		return "/"
	}
	return ""
}

func split(p string) []string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// find gives an existing node. Called with mu held.
func (v *View) find(p string, follow bool) (*node, error) {
	_, _, n, err := v.walk(p, follow)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	return n, err
}

func pathError(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p, Err: err}
}
