package power

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlTransfer is the kernel's struct usbdevfs_ctrltransfer: the order of its fields is fixed.
type controlTransfer struct {
	requestType, request byte
	value, index, length uint16
	timeout              uint32 // ms
	data                 unsafe.Pointer
}

// usbdevfsControl is _IOWR('U', 0, struct usbdevfs_ctrltransfer).
const usbdevfsControl = 3<<30 | unsafe.Sizeof(controlTransfer{})<<16 | 'U'<<8

// usbfsControl makes a control transfer. Requests to a port need no claim of an interface, so the kernel's own
// hub driver goes on.
func usbfsControl(file string, s Setup, data []byte, timeout time.Duration) (int, error) {
	f, err := os.OpenFile(file, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	t := controlTransfer{
		requestType: s.Type, request: s.Request, value: s.Value, index: s.Index,
		length: uint16(len(data)), timeout: uint32(timeout.Milliseconds()), data: unsafe.Pointer(unsafe.SliceData(data)),
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	if len(data) > 0 {
		pinner.Pin(&data[0])
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n uintptr
	var errno unix.Errno
	if err := raw.Control(func(fd uintptr) {
		n, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, usbdevfsControl, uintptr(unsafe.Pointer(&t)))
	}); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
