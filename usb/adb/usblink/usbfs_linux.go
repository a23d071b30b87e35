package usblink

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// Requests of usbfs, linux/usbdevice_fs.h.
const (
	claimInterface  = 2<<30 | 4<<16 | 'U'<<8 | 15 // _IOR('U', 15, unsigned int)
	clearHaltOf     = 2<<30 | 4<<16 | 'U'<<8 | 21 // _IOR('U', 21, unsigned int)
	controlTransfer = 3<<30 | unsafe.Sizeof(control{})<<16 | 'U'<<8
)

// control is the kernel's struct usbdevfs_ctrltransfer: the order of its fields is fixed.
type control struct {
	requestType, request byte
	value, index, length uint16
	timeout              uint32 // ms
	data                 unsafe.Pointer
}

// deviceFile implements usbfs.
type deviceFile struct{ *os.File }

func openUSBFS(d bus.Device) (usbfs, error) {
	f, err := os.OpenFile(fmt.Sprintf("/dev/bus/usb/%03d/%03d", d.Bus, d.Address), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return deviceFile{f}, nil
}

func (f deviceFile) close() error { return f.Close() }

func (f deviceFile) claim(number int) error { return f.number(claimInterface, uint32(number)) }

// clearHalt sends CLEAR_FEATURE and begins with DATA0 again on this side too; the kernel bounds it to 5 s.
func (f deviceFile) clearHalt(endpoint byte) error { return f.number(clearHaltOf, uint32(endpoint)) }

// halted asks GET_STATUS of the endpoint: USB 2.0, chapter 9.4.5.
func (f deviceFile) halted(endpoint byte) (bool, error) {
	const fromEndpoint, getStatus, haltBit, patience = 0x82, 0, 1, 1000
	var status [2]byte
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&status[0])
	t := control{requestType: fromEndpoint, request: getStatus, index: uint16(endpoint), length: uint16(len(status)), timeout: patience, data: unsafe.Pointer(&status[0])}
	n, err := f.ioctl(controlTransfer, unsafe.Pointer(&t))
	if err != nil {
		return false, err
	}
	if n != len(status) {
		return false, fmt.Errorf("the status has %d bytes, must have %d", n, len(status))
	}
	return status[0]&haltBit != 0, nil
}

func (f deviceFile) number(request uintptr, n uint32) error {
	_, err := f.ioctl(request, unsafe.Pointer(&n))
	return err
}

func (f deviceFile) ioctl(request uintptr, argument unsafe.Pointer) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n uintptr
	var errno unix.Errno
	if err := raw.Control(func(fd uintptr) { n, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument)) }); err != nil {
		return 0, err
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// mapErrno translates errors of the kernel's file.
func mapErrno(err error) error {
	for errno, is := range map[unix.Errno]error{
		unix.EBUSY: ErrBusy, unix.EACCES: ErrAccess, unix.EPERM: ErrAccess, unix.ENODEV: ErrGone, unix.ENOENT: ErrGone, unix.ENXIO: ErrGone,
		unix.ETIMEDOUT: adb.ErrTimeout, unix.EPIPE: adb.ErrStall,
	} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w (%w)", is, err)
		}
	}
	return err
}
