package rig

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// T is what Dump needs of *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
}

// Ending is what CloseAfter needs of *testing.T.
type Ending interface {
	T
	Cleanup(func())
	Failed() bool
	Error(args ...any)
}

// CloseAfter has a board closed when the test ends, after a Dump if the test has failed.
func CloseAfter(t Ending, b *Board) {
	t.Cleanup(func() {
		if t.Failed() {
			Dump(t, b)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// namedLog is the end of what something outside the board has logged.
type namedLog struct {
	name string
	tailBuffer
}

// Log returns a writer whose last part Dump shows under that name: for the log of a phone.
func (b *Board) Log(name string) io.Writer {
	l := &namedLog{name: name}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs = append(b.logs, l)
	return l
}

// How much of each log Dump shows, and how long it waits for the guest.
const (
	dumpLines = 200
	dumpLimit = 10 * time.Second
)

// Dump logs what helps to understand a failed test: the end of the console and of
// the guest's kernel log, QEMU's errors and events, the state of the
// ports and the logs made by Log. It may be called after Close, and on a nil board.
func Dump(t T, b *Board) {
	t.Helper()
	if b == nil {
		t.Logf("rig: no board")
		return
	}
	t.Logf("console, last %d lines:\n%s", dumpLines, b.console.tail(dumpLines))
	if text := b.stderr.String(); text != "" {
		t.Logf("qemu:\n%s", text)
	}
	select {
	case <-b.qemu.done:
		t.Logf("qemu has ended: %v", b.qemu.reason())
	default:
		ctx, cancel := context.WithTimeout(context.Background(), dumpLimit)
		defer cancel()
		kernel, _, err := b.Run(ctx, "dmesg | tail -n "+strconv.Itoa(dumpLines))
		t.Logf("log of the guest's kernel, last %d lines (error: %v):\n%s", dumpLines, err, kernel)
	}
	for _, e := range b.Events() {
		t.Logf("qemu event %s %s", e.Name, e.Data)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, port := range slices.Sorted(maps.Keys(b.plugged)) {
		switch p := b.plugged[port]; {
		case p.running():
			t.Logf("port %s: plugged in", port)
		default:
			t.Logf("port %s: out: %v", port, p.Err())
		}
	}
	for _, l := range b.logs {
		t.Logf("log of %s:\n%s", l.name, l)
	}
}
