package systemd

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	firstPassed = 3 // SD_LISTEN_FDS_START
	maxPassed   = 1024
)

// ErrEnvironment is what Adopt fails with when the variables do not fit together. Nothing was closed then.
var ErrEnvironment = errors.New("systemd passed descriptors in a way that cannot be understood")

// Adopt returns the descriptors that systemd passed to this process, in its order; names may repeat. It takes the
// variables out of the environment, so that no child takes the descriptors for its own, and lets no child inherit them.
// Call it once, before anything else opens files.
func Adopt() ([]*os.File, error) {
	defer func() {
		for _, name := range []string{"LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
			os.Unsetenv(name)
		}
	}()
	names, err := passed(os.Getenv, os.Getpid())
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, 0, len(names))
	for i, name := range names {
		fd := firstPassed + i
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, fmt.Errorf("%w: descriptor %d (%s) is not open", ErrEnvironment, fd, name)
		}
		unix.CloseOnExec(fd)
	}
	for i, name := range names { // none before all are known to be there: a File that is forgotten closes its descriptor
		files = append(files, os.NewFile(uintptr(firstPassed+i), name))
	}
	return files, nil
}

// passed reads the variables of sd_listen_fds_with_names(3) strictly: the names tell what a descriptor is, and to take one
// for another switches a hub.
func passed(getenv func(string) string, pid int) ([]string, error) {
	count := getenv("LISTEN_FDS")
	if count == "" || getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, nil // meant for nobody, or for another process
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxPassed || strconv.Itoa(n) != count {
		return nil, fmt.Errorf("%w: LISTEN_FDS is %.40q", ErrEnvironment, count)
	}
	if n == 0 {
		return nil, nil
	}
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	if len(names) != n {
		return nil, fmt.Errorf("%w: %d descriptors with %d names", ErrEnvironment, n, len(names))
	}
	for _, name := range names {
		if !validName(name) {
			return nil, fmt.Errorf("%w: a descriptor is named %.80q", ErrEnvironment, name)
		}
	}
	return names, nil
}
