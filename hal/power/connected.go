package power

import (
	"context"
	"encoding/binary"
)

// Connected tells whether something is plugged in at a port, by the word of its hub (wPortStatus, bit 0), whether or not the
// kernel could talk to it. The hub of a root port is "usb1" and so on. Unknown when the hub cannot be asked.
func (u *USB) Connected(ctx context.Context, hub string, port int) Answer {
	if ctx.Err() != nil || port < 1 || port > 255 {
		return Unknown
	}
	const connectionBit = 1
	var status [4]byte
	n, err := u.control(ctx, hub, Setup{typePortIn, getStatus, 0, uint16(port)}, status[:])
	switch {
	case err != nil || n != len(status):
		return Unknown
	case binary.LittleEndian.Uint16(status[:])&connectionBit != 0:
		return Yes
	}
	return No
}
