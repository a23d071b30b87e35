package render

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	firstForeign = 0x40000000 // there are none
)

var deniedHere []uint32
