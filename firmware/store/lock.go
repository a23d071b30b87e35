package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const lockPoll = 50 * time.Millisecond

// takeLock takes a lock of its own beside the database: bbolt's lies on the file that recovery renames. The kernel
// drops it when the process ends, however it ends.
func takeLock(path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	deadline := time.Now().Add(timeout)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if time.Now().After(deadline) {
			defer f.Close()
			return nil, fmt.Errorf("the state folder %s is %w by another rackd%s: stop that one, or give this one a state folder of its own",
				filepath.Dir(path), ErrLocked, holderOf(f))
		}
		time.Sleep(lockPoll)
	}
	// The number only serves the sentence above; without it the lock holds as well.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}

func holderOf(f *os.File) string {
	buf, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
