//go:build unix

package main

import "io/fs"

// private tells whether a file is closed to everybody else.
func private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
