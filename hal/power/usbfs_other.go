//go:build !linux

package power

import (
	"errors"
	"time"
)

func usbfsControl(string, Setup, []byte, time.Duration) (int, error) {
	return 0, errors.ErrUnsupported
}
