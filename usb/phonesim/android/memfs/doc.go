// Package memfs is the storage of a simulated phone: a tree of files that exists
// only in memory, with owners, modes, mounts and a size that can run out.
//
// A View is the tree as one user sees it: the superuser builds the image, the
// shell user is refused what Android refuses. Errors are fs.PathError around
// a syscall.Errno, so errors.Is knows fs.ErrNotExist, fs.ErrPermission and
// syscall.ENOSPC.
//
// One lock guards the tree and all contents. Memory is bounded by the capacity:
// contents count by whole blocks, and each file or folder takes one more.
package memfs
