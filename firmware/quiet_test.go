package firmware_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/health"
	"phonerack/usb/phonesim"
)

// logLines are the records of a log as text, without their time.
type logLines struct {
	mu  sync.Mutex // guards all
	all []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(string(p)))
	return len(p), nil
}

func (l *logLines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// TestNoLogLineIsRepeatedPerPoll: phones that are well, gone, silent or wait for a person are looked at again and again, and
// once they are in their states nothing is said of it. The handler that leaves out what was said last is not asked.
func TestNoLogLineIsRepeatedPerPoll(t *testing.T) {
	t.Parallel()
	b := newBench(t, 4)
	log := &logLines{}
	b.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	b.change = func(o *firmware.Options) {
		hasty(o)
		o.Config.Health.Battery.Interval = health.Duration(300 * time.Millisecond)
	}
	b.phones[3].SetFaults(phonesim.Faults{Hang: true})
	b.phones[4] = newSimPhone(t, b.phones[4].path, "SIM0004", 14, phonesim.Auth{Required: true})
	opened := b.phones[1].listen(t)
	b.phones[3].plug(t)
	b.phones[4].plug(t)
	b.start()
	b.health(1, health.Well)
	b.health(2, health.Empty)
	b.health(3, health.Quarantined)
	b.health(4, health.NeedsHands)
	time.Sleep(2 * time.Second) // the pauses between tries grow meanwhile
	log.take()
	before := opened.Load()
	time.Sleep(5 * time.Second)
	asked, said := opened.Load()-before, log.take()
	if asked < 10 {
		t.Errorf("phone 1 was asked %d times only: that shows nothing", asked)
	}
	if len(said) > 0 {
		slices.Sort(said)
		t.Errorf("%d lines after %d polls:\n%s", len(said), asked, strings.Join(said, "\n"))
	}
}

// listened is a phone's end of a byte stream. It counts the streams that the host opens.
type listened struct {
	net.Conn
	opened *atomic.Int64
}

func (l listened) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.opened.Add(int64(bytes.Count(p[:n], []byte("OPEN"))))
	return n, err
}

// listen plugs a phone in and counts what it is asked.
func (p *simPhone) listen(t *testing.T) *atomic.Int64 {
	t.Helper()
	l, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	opened, ctx := &atomic.Int64{}, t.Context()
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() { l.Close() })
	t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.ServeStream(ctx, listened{conn, opened})
		}
	}()
	return opened
}
