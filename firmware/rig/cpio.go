package rig

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Type bits of a mode in a cpio header, as in stat(2).
const (
	cpioDir     = 0o040000
	cpioRegular = 0o100000
	cpioSymlink = 0o120000
)

// archive is a cpio archive of the "newc" kind, which the kernel unpacks as its first root file system (kernel
// documentation, driver-api/early-userspace/buffer-format). Names are guest paths; missing parent folders are added.
// A name written twice holds what was written last.
type archive struct {
	buf   bytes.Buffer
	inode int
	dirs  map[string]bool
}

func newArchive() *archive { return &archive{dirs: map[string]bool{".": true}} }

// relative gives the name as the archive holds it: without leading slash.
func relative(name string) string { return path.Clean(strings.TrimLeft(name, "/")) }

// dir adds a folder and its parents, with mode 0755.
func (a *archive) dir(name string) {
	name = relative(name)
	if a.dirs[name] {
		return
	}
	a.dir(path.Dir(name))
	a.dirs[name] = true
	a.entry(name, cpioDir|0o755, nil)
}

// file adds a regular file.
func (a *archive) file(name string, mode fs.FileMode, content []byte) {
	a.dir(path.Dir(relative(name)))
	a.entry(relative(name), cpioRegular|uint32(mode.Perm()), content)
}

// link adds a symbolic link to target.
func (a *archive) link(name, target string) {
	a.dir(path.Dir(relative(name)))
	a.entry(relative(name), cpioSymlink|0o777, []byte(target))
}

// host adds a file of the host, or a folder with all that is below it. Symbolic links are followed for the name itself
// and kept as they are below it.
func (a *archive) host(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.file(name, info.Mode(), content)
		return nil
	}
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		to := path.Join(name, filepath.ToSlash(below))
		switch {
		case d.IsDir():
			a.dir(to)
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			a.link(to, target)
			return nil
		case d.Type().IsRegular():
			return a.host(to, p)
		}
		return fmt.Errorf("%s is neither file, folder nor link", p)
	})
}

// entry writes a header of thirteen fields of eight hexadecimal digits, the name with its NUL, and the content, each
// padded to a multiple of four.
func (a *archive) entry(name string, mode uint32, content []byte) {
	a.inode++
	links := 1
	if mode&cpioDir == cpioDir {
		links = 2
	}
	fmt.Fprintf(&a.buf, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0 /* uid */, 0 /* gid */, links, 0 /* mtime */, len(content),
		0, 0 /* device */, 0, 0 /* device a node stands for */, len(name)+1, 0 /* check */)
	a.buf.WriteString(name)
	a.buf.WriteByte(0)
	a.pad()
	a.buf.Write(content)
	a.pad()
}

func (a *archive) pad() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}

// bytes closes the archive and returns it; nothing may be added afterwards.
func (a *archive) bytes() []byte {
	a.inode = 0
	a.entry("TRAILER!!!", cpioRegular, nil)
	return a.buf.Bytes()
}
