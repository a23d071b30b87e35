package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const socketMode = 0o660

// Listen opens the socket for its user and the group, "" for none. A socket left over by a rackd that is gone is
// replaced; one that somebody listens on, and a file that is no socket, are errors. Closing the listener removes it.
func Listen(path, group string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the runtime folder: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The socket gets its name when it has its rights, so that nobody connects in between.
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("prepare the control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(restrict(fresh, group), os.Rename(fresh, path)); err != nil {
		l.Close()
		os.Remove(fresh)
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	return &socket{UnixListener: l, path: path, info: info}, nil
}

func restrict(path, group string) error {
	if group != "" {
		g, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		gid, err := strconv.Atoi(g.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(path, -1, gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, socketMode)
}

// socket removes its file when it is closed, unless another has taken the name.
type socket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.info) {
		os.Remove(s.path)
	}
	return s.UnixListener.Close()
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the control socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket: move it away, or set control.socket to another path", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another program listens on %s: stop it, or set control.socket to another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("look at the control socket: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the old control socket: %w", err)
	}
	return nil
}
