package adb

import (
	"io/fs"
	"strings"
	"syscall"
)

// failMessages are the texts of the C library that a FAIL ends with.
var failMessages = []struct {
	text string
	err  error
}{
	{"No such file or directory", fs.ErrNotExist},
	{"Permission denied", fs.ErrPermission},
	{"Operation not permitted", fs.ErrPermission},
	{"File exists", fs.ErrExist},
	{"No space left on device", syscall.ENOSPC},
	{"Read-only file system", syscall.EROFS},
	{"Is a directory", syscall.EISDIR},
	{"Not a directory", syscall.ENOTDIR},
	{"File name too long", syscall.ENAMETOOLONG},
}

// errorOfMessage finds the error that a phone's words stand for; nil if none.
func errorOfMessage(message string) error {
	for _, m := range failMessages {
		if strings.Contains(message, m.text) {
			return m.err
		}
	}
	return nil
}
