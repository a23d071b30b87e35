package bus

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// KernelLog reads the kernel's log from its device. It implements Records, from the oldest record that the kernel still has.
type KernelLog struct {
	fd  int
	buf [maxRecord]byte
}

// OpenKernelLog opens a device such as /dev/kmsg. It needs CAP_SYSLOG where kernel.dmesg_restrict is 1.
func OpenKernelLog(device string) (*KernelLog, error) {
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", device, err)
	}
	return &KernelLog{fd: fd}, nil
}

// Record implements Records. What it returns is valid until the next call.
func (l *KernelLog) Record() ([]byte, error) {
	const tries = 100 // records were overwritten while we read, or a signal came
	for range tries {
		n, err := unix.Read(l.fd, l.buf[:])
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN), err == nil && n <= 0:
			return nil, io.EOF
		case err != nil:
			return nil, err
		}
		return l.buf[:n], nil
	}
	return nil, io.EOF
}

// Close ends the reading.
func (l *KernelLog) Close() error { return unix.Close(l.fd) }
