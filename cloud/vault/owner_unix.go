//go:build linux || darwin

package vault

import (
	"io/fs"
	"os"
	"syscall"
)

const (
	nonblock = syscall.O_NONBLOCK
	modes    = true
)

// whoami is this user's number; tests that cannot give a file away become somebody else.
var whoami = os.Geteuid

// ours tells whether the file belongs to this user or to root.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == whoami())
}

// lock makes the callers of one folder take turns.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		_ = d.Close()
		return nil, err
	}
	return func() { _ = d.Close() }, nil
}
