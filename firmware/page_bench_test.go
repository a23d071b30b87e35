package firmware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/firmware"
	"phonerack/firmware/config"
	"phonerack/usb/phonesim"
)

// What a page of 60 slots may cost, and what one that is open while nothing happens.
const (
	mostOfAPage  = 50 * time.Millisecond // of the processor
	mostBytes    = 60_000                // style and script included
	mostWhenIdle = 5 * time.Millisecond  // of the processor, a second
)

// bigRack is one of 60 slots, ten a row, on hubs of seven whose ports can be switched. Twelve have phones.
func bigRack(b *testing.B) *firmware.Rack {
	b.Helper()
	dir, err := os.MkdirTemp("", "rack")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	var text strings.Builder
	text.WriteString("name = \"sixty\"\n")
	for n := range 9 {
		fmt.Fprintf(&text, "[[hub]]\nname = \"H%d\"\npath = \"1-1.%d\"\n", n, n+1)
	}
	for n := range 60 {
		fmt.Fprintf(&text, "[[slot]]\nnumber = %d\npath = \"1-1.%d.%d\"\nlabel = \"%c%d\"\nrow = %d\ncolumn = %d\n", n+1, n/7+1, n%7+1, 'A'+n/10, n%10+1, n/10+1, n%10+1)
	}
	for name, content := range map[string]string{
		"board.toml": text.String(),
		"rackd.toml": "[rack]\nid = \"sixty\"\nboard = \"board.toml\"\nstate = \"state\"\nruntime = \"run\"\n[usb]\nsysfs = \"sys\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	conf, err := config.Load(filepath.Join(dir, "rackd.toml"))
	if err != nil {
		b.Fatal(err)
	}
	c := newCable()
	ready := make(chan struct{})
	logs := firmware.NewLogs(config.Log{}, io.Discard, nil)
	rack, err := firmware.New(firmware.Options{
		Config: conf, Planner: conf.Scripted, Dialer: c, Watch: c.watch, Logger: logs.Logger, Book: logs.Book, OnReady: func() { close(ready) },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rack.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-ended; c.served.Wait() })
	<-ready
	for n := range 12 {
		serial := fmt.Sprintf("PHONE%02d", n)
		c.plug(fmt.Sprintf("1-1.%d.%d", n/7+1, n%7+1), n+2, newSimPhone(b, "", serial, 14, phonesim.Auth{}), serial)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		there := 0
		for _, s := range firmware.SourceOf(rack).Snapshot().Slots {
			if s.Phone != nil && s.Phone.Battery != nil {
				there++
			}
		}
		if there == 12 {
			return rack
		}
		if time.Now().After(end) {
			b.Fatalf("%d phones are there", there)
		}
	}
}

// used is what this process has had of the processor.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var ownFile = regexp.MustCompile(`/static/[A-Za-z0-9._-]+`)

// BenchmarkPageOf60Slots asks a whole rack for its pages. It fails where a bound is missed.
func BenchmarkPageOf60Slots(b *testing.B) {
	rack := bigRack(b)
	ask := func(path string) string {
		r := httptest.NewRequestWithContext(b.Context(), "GET", path, nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		w := httptest.NewRecorder()
		if firmware.PageOf(rack).ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatalf("%s: %d", path, w.Code)
		}
		return w.Body.String()
	}
	for name, path := range map[string]string{"rack": "/", "slot": "/slot/12", "controller": "/controller", "map": "/map"} {
		b.Run(name, func(b *testing.B) {
			page := ask(path)
			size := len(page)
			seen := map[string]bool{}
			for _, file := range ownFile.FindAllString(page, -1) {
				if !seen[file] {
					seen[file] = true
					size += len(ask(file))
				}
			}
			before := used(b)
			for b.Loop() {
				ask(path)
			}
			each := (used(b) - before) / time.Duration(b.N)
			b.ReportMetric(float64(each.Microseconds())/1000, "cpu-ms/page")
			b.ReportMetric(float64(size), "bytes/page")
			if each > mostOfAPage || size > mostBytes {
				b.Errorf("%s takes %v of the processor and %d bytes: at most %v and %d are allowed", path, each, size, mostOfAPage, mostBytes)
			}
		})
	}
}

// BenchmarkIdlePageOf60Slots is what a page costs that is open while nothing happens, in a second: two looks whether the rack
// has changed. A page that nobody has open is not looked for at all: TestNobodyLooksWhileNobodyWaits.
func BenchmarkIdlePageOf60Slots(b *testing.B) {
	rack := bigRack(b)
	looks := 0
	before := used(b)
	for b.Loop() {
		firmware.LookForChange(rack)
		looks++
	}
	each := 2 * (used(b) - before) / time.Duration(looks)
	b.ReportMetric(float64(each.Nanoseconds())/1e6, "cpu-ms/s")
	if each > mostWhenIdle {
		b.Errorf("an idle page takes %v of the processor a second: at most %v are allowed", each, mostWhenIdle)
	}
}
