//go:build linux

package bus

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kernelGroup is the netlink multicast group on which the kernel itself speaks; udev uses another.
const kernelGroup = 1

// maxUevent is the kernel's bound for one message (UEVENT_BUFFER_SIZE is 2048), with room to spare.
const maxUevent = 8192

// uevents is a netlink socket that hears the kernel's device events.
type uevents struct {
	file *os.File
}

func listenUevents() (*uevents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's event socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen to the kernel's events: %w", err)
	}
	return &uevents{file: os.NewFile(uintptr(fd), "uevents")}, nil
}

// wait blocks until the kernel says something of the USB subsystem, or until the socket's buffer
// ran over, when something was surely missed. Close ends it with os.ErrClosed.
func (u *uevents) wait() error {
	raw, err := u.file.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, maxUevent)
	for {
		var n int
		var from unix.Sockaddr
		var recvErr error
		err := raw.Read(func(fd uintptr) bool {
			n, from, recvErr = unix.Recvfrom(int(fd), buf, 0)
			return !errors.Is(recvErr, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return err
		case errors.Is(recvErr, unix.ENOBUFS):
			return nil
		case errors.Is(recvErr, unix.EINTR):
			continue
		case recvErr != nil:
			return fmt.Errorf("read a kernel event: %w", recvErr)
		}
		if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
			continue // not from the kernel: any process may send here
		}
		if isUSB(buf[:n]) {
			return nil
		}
	}
}

func (u *uevents) close() error { return u.file.Close() }

// isUSB tells whether a uevent ("add@/devices/...", then KEY=value, each ended by a zero byte)
// is about the USB subsystem.
func isUSB(message []byte) bool {
	for field := range bytes.SplitSeq(message, []byte{0}) {
		if bytes.Equal(field, []byte("SUBSYSTEM=usb")) {
			return true
		}
	}
	return false
}
