package firmware

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"phonerack/hal/gpio"
)

const (
	firstDescriptor = 3   // SD_LISTEN_FDS_START, sd_listen_fds(3)
	maxDescriptors  = 512 // a board has far fewer hubs
)

// SystemdStore is systemd's descriptor store (FileDescriptorStoreMax= of the unit). It implements Descriptors and does nothing
// when systemd is not there: NOTIFY_SOCKET is not set.
type SystemdStore struct{}

// Store implements Descriptors. What has the same name already is dropped first: the store would keep both.
func (s SystemdStore) Store(name string, p gpio.Parked) error {
	defer p.Close() // systemd has its own
	if err := storable(name); err != nil {
		return err
	}
	return errors.Join(s.Drop(name), notifyWith("FDSTORE=1\nFDNAME="+name, unix.UnixRights(int(p.Fd()))))
}

// Drop implements Descriptors. A name that nothing is stored under is no error.
func (SystemdStore) Drop(name string) error {
	if err := storable(name); err != nil {
		return err
	}
	return notifyWith("FDSTOREREMOVE=1\nFDNAME="+name, nil)
}

// storable tells whether systemd takes a name: printable ASCII without a colon, at most 255 bytes (sd_pid_notify_with_fds(3)).
func storable(name string) error {
	if name == "" || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return fmt.Errorf("%q is no name for the descriptor store", name)
	}
	return nil
}

// notifyWith is Notify with descriptors along.
func notifyWith(state string, rights []byte) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// Not net's: it sends no descriptors over a datagram socket that is connected.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer unix.Close(fd)
	// A leading @ stands for the abstract namespace, for unix as well as for systemd.
	if err := unix.Sendmsg(fd, []byte(state), rights, &unix.SockaddrUnix{Name: name}, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// StoredDescriptors takes the files over that systemd kept for this process, by their names. It has to be called once, early
// and by the process itself: the environment that tells of them is for it alone, and is cleared.
func StoredDescriptors() map[string]gpio.Parked {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, key := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(key)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxDescriptors {
		return nil
	}
	named := strings.Split(names, ":")
	all := map[string]gpio.Parked{}
	for i := range n {
		fd := firstDescriptor + i
		unix.CloseOnExec(fd) // children are no holders of lines
		name := "unknown"
		if i < len(named) {
			name = named[i]
		}
		file := os.NewFile(uintptr(fd), name)
		if all[name] != nil || file == nil { // one of a name: which of two is meant nobody knows
			if file != nil {
				file.Close()
			}
			continue
		}
		all[name] = file
	}
	return all
}
