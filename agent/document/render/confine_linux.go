package render

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"phonerack/agent/document/internal/protocol"
)

// confine puts limits on this process that it cannot lift again: memory, processor time, files, and the system calls of
// seccomp.go. The address space is limited to what is mapped already and as much on top as is allowed: the Go runtime,
// and the race detector far more so, map more than they ever use.
func confine(l protocol.Limits) error {
	// If the machine runs out of memory, this process goes first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	mapped, err := mappedBytes()
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		name     string
		n        uint64
	}{
		{unix.RLIMIT_AS, "memory", mapped + l.Memory},
		{unix.RLIMIT_CPU, "processor time", l.CPUSeconds},
		{unix.RLIMIT_CORE, "core dumps", 0},
		{unix.RLIMIT_FSIZE, "written files", 0},
		{unix.RLIMIT_NOFILE, "open files", protocol.MaxFiles},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.n, Max: limit.n}); err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := filterSystemCalls(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) { // a kernel without
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

func mappedBytes() (uint64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	size, _, _ := strings.Cut(string(b), " ")
	pages, err := strconv.ParseUint(size, 10, 64)
	return pages * uint64(os.Getpagesize()), err
}

// mapDocument maps the document for reading. A file that somebody cuts short meanwhile kills this process with SIGBUS.
func mapDocument(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size <= 0 {
		return nil, errors.New("it is no file, or empty")
	}
	return unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE)
}

// takeStdout keeps the standard output for the answer, and sends what others print there to the standard error.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "answer"), nil
}
