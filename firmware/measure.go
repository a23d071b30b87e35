package firmware

import (
	"context"
	"strconv"
	"strings"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

const measureTimeout = 20 * time.Second // of all measures together

// measures are what a phone tells of itself now and then. What could not be read is nil.
type measures struct {
	battery *phone.Battery
	storage *phone.Storage
	tcp     *bool // adbd listens on TCP
}

// examine reads what health is judged by, if it is time.
func (s *slot) examine(ctx context.Context, l *live) {
	if s.measured == nil || l.phone == nil || !s.examined.IsZero() && time.Since(s.examined) < s.every {
		return
	}
	s.examined = time.Now()
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	var m measures
	if err := readInto(ctx, &m.battery, l.phone.Battery); err != nil {
		s.log.Debug("the battery could not be read", "phone", l.serial, "err", err)
	}
	if err := readInto(ctx, &m.storage, l.phone.Storage); err != nil {
		s.log.Debug("the storage could not be read", "phone", l.serial, "err", err)
	}
	if answer, err := l.conn.Shell(ctx, "getprop service.adb.tcp.port; getprop persist.adb.tcp.port"); err == nil {
		open := listens(answer)
		m.tcp = &open
	}
	if ctx.Err() != context.Canceled {
		s.measured(s.number, m)
	}
}

// listens tells whether adbd listens on TCP, from its two properties, a line each. As in adbd, the second counts only while the
// first is not set (AOSP, adb/daemon/main.cpp); 0 and -1 are no port.
func listens(answer adb.Result) bool {
	for line := range strings.Lines(string(answer.Stdout)) {
		if line = strings.TrimSpace(line); line != "" {
			port, err := strconv.Atoi(line)
			return err == nil && port > 0
		}
	}
	return false
}
