package link

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpUserTimeout is how long sent bytes may stay without the other kernel's
// acknowledgement, in milliseconds. Keep-alive probes alone do not run while
// something is unacknowledged.
const tcpUserTimeout = 30_000

func userTimeout(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, tcpUserTimeout)
	}); e != nil {
		return e
	}
	return err
}
