package memfs

import (
	"io/fs"
	"time"
)

const (
	blockSize = 4096
	chunkSize = 64 << 10
)

// Mount is a file system inside the tree. Files inherit it from their folder.
type Mount struct {
	Device   string
	Point    string
	ReadOnly bool
	NoExec   bool
	// Emulated is shared storage: owner and mode are fixed by the system and cannot
	// be changed.
	Emulated bool
}

// node is a file, folder, link or device. FS.mu guards all of it but ino.
type node struct {
	ino      uint64
	mode     fs.FileMode // type and permissions
	uid, gid int
	mtime    time.Time
	mount    *Mount
	children map[string]*node // folders
	target   string           // links
	chunks   [][]byte         // files; all but the last are chunkSize long
	size     int64
	generate func() []byte // files made at each opening, as in /proc
	device   *Device
	linked   bool // has a name in the tree
	opened   int  // open files on it
}

// Device is what stands behind a device file. Read or Write may be nil.
type Device struct {
	Read  func(p []byte) (int, error)
	Write func(p []byte) (int, error)
	// Err is returned by Open when it is not nil.
	Err func() error
}

// blocks is the space that the node takes.
func (n *node) blocks() int64 {
	return blockSize + roundUp(n.size)
}

func roundUp(size int64) int64 {
	return (size + blockSize - 1) / blockSize * blockSize
}

// Attr is what Sys of a fs.FileInfo of this package holds.
type Attr struct {
	Inode    uint64
	UID, GID int
	Links    int
	Blocks   int64 // of 512 bytes
	Target   string
}

// info is a snapshot of a node.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	attr  Attr
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return i.mtime }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return &i.attr }

func (n *node) info(name string) *info {
	size := n.size
	links := 1
	switch {
	case n.mode.IsDir():
		size = 4096
		if n.mount.Emulated {
			size = 3452
		}
		links = 2
		for _, c := range n.children {
			if c.mode.IsDir() {
				links++
			}
		}
	case n.mode&fs.ModeSymlink != 0:
		size = int64(len(n.target))
	}
	return &info{
		name: name, size: size, mode: n.mode, mtime: n.mtime,
		attr: Attr{
			Inode: n.ino, UID: n.uid, GID: n.gid, Links: links,
			Blocks: roundUp(n.size) / 512, Target: n.target,
		},
	}
}
