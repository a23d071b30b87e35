package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/control"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

const (
	idlePhones  = 40
	readEvery   = 15 * time.Minute // of batteries, by default; the bench has them read each minute
	userHz      = 100              // ticks of /proc/PID/stat a second
	dayMinutes  = 24 * 60
	mostPerDay  = 1 << 20 // bytes on the disk
	asRackd     = "PHONERACK_TEST_RACKD"
	idleSeconds = "PHONERACK_IDLE" // length of the window, as a duration
)

// heard counts what a host says to phones.
type heard struct {
	mu       sync.Mutex // guards opens
	opens    map[string]int
	messages int // that the phone answers: OPEN and WRTE
}

// ear is a phone's end of a byte stream that listens to the messages of the host: headers of 24 bytes, little endian, with the
// command first and the payload's length at 12.
type ear struct {
	net.Conn
	to      *heard
	header  []byte
	skip    int
	payload []byte // of an OPEN, while it is read
	open    bool
}

func (e *ear) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		rest = e.eat(rest)
	}
	return n, err
}

func (e *ear) eat(b []byte) []byte {
	if e.skip > 0 {
		n := min(e.skip, len(b))
		if e.skip -= n; e.open {
			if e.payload = append(e.payload, b[:n]...); e.skip == 0 {
				e.count()
			}
		}
		return b[n:]
	}
	n := min(24-len(e.header), len(b))
	if e.header = append(e.header, b[:n]...); len(e.header) == 24 {
		command := string(e.header[:4])
		e.skip, e.open, e.payload = int(binary.LittleEndian.Uint32(e.header[12:])), command == "OPEN", nil
		if e.header = e.header[:0]; command == "OPEN" || command == "WRTE" {
			e.to.mu.Lock()
			e.to.messages++
			e.to.mu.Unlock()
		}
	}
	return b[n:]
}

// mark is what package phone has a phone print around the answers, another one each time.
var mark = regexp.MustCompile("phonerack-[0-9a-z]{12}-")

func (e *ear) count() {
	service := mark.ReplaceAllString(strings.TrimRight(string(e.payload), "\x00"), "mark-")
	e.to.mu.Lock()
	defer e.to.mu.Unlock()
	e.to.opens[service]++
}

func (h *heard) take() (messages int, opens map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages, opens = h.messages, h.opens
	h.messages, h.opens = 0, map[string]int{}
	return messages, opens
}

// startPhones puts phones behind sockets.
func startPhones(b *testing.B, dir string, h *heard) (streams string) {
	b.Helper()
	var text strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	for n := 1; n <= idlePhones; n++ {
		engine, err := screen.New(screen.Config{Width: 360, Height: 800, Density: 160})
		if err != nil {
			b.Fatal(err)
		}
		serial := fmt.Sprintf("IDLE%04d", n)
		device, err := android.New(android.Config{Serial: serial, Screen: engine})
		if err != nil {
			b.Fatal(err)
		}
		p, err := phonesim.New(phonesim.Config{Serial: serial, System: device})
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.sock", n))
		l, err := net.Listen("unix", path)
		if err != nil {
			b.Fatal(err)
		}
		context.AfterFunc(ctx, func() { l.Close() })
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				p.ServeStream(ctx, &ear{Conn: conn, to: h})
			}
		})
		fmt.Fprintf(&text, "[[stream]]\nslot = %d\naddress = \"unix:%s\"\n", n, path)
	}
	return text.String()
}

// process is what the kernel says of one.
type process struct {
	cpu     time.Duration // of user and system
	written int64         // bytes that it has had written to a block device
}

func readProcess(pid int) (process, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // from field 3: the name may have blanks
	user, err := strconv.Atoi(f[14-3])
	if err != nil {
		return process{}, err
	}
	system, err := strconv.Atoi(f[15-3])
	if err != nil {
		return process{}, err
	}
	p := process{cpu: time.Duration(user+system) * time.Second / userHz}
	file, err := os.Open(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return process{}, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "write_bytes: "); ok {
			p.written, err = strconv.ParseInt(text, 10, 64)
		}
	}
	return p, err
}

// lineCount counts lines of a log.
type lineCount struct {
	mu  sync.Mutex // guards all
	all []string
}

func (l *lineCount) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.Split(strings.TrimRight(string(p), "\n"), "\n")...)
	return len(p), nil
}

func (l *lineCount) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// BenchmarkIdleRack is rackd in a process of its own with 40 simulated phones over byte streams, on which nobody works. Looks are those
// of the default configuration; batteries, storage and TCP ports are read each minute instead of each 15 minutes, which makes processor
// time and bytes an upper bound; round trips of readings are counted once in 15. The window is a minute, or what PHONERACK_IDLE says.
func BenchmarkIdleRack(b *testing.B) {
	window := time.Minute
	if text := os.Getenv(idleSeconds); text != "" {
		var err error
		if window, err = time.ParseDuration(text); err != nil || window < time.Minute {
			b.Fatalf("%s must be a duration of a minute or more: %q", idleSeconds, text)
		}
	}
	for b.Loop() {
		idle(b, window)
	}
}

func idle(b *testing.B, window time.Duration) {
	dir, err := os.MkdirTemp("", "idle") // short, for sockets; on the file system that the bytes are counted on
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var fs syscall.Statfs_t
	const ext4 = 0xef53
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != ext4 {
		fmt.Fprintf(os.Stderr, "%s is no ext4: the bytes are those of another file system\n", dir)
	}
	h := &heard{opens: map[string]int{}}
	file := filepath.Join(dir, "rackd.toml")
	conf := "[rack]\nid = \"idle\"\nstate = \"state\"\nruntime = \"run\"\n[usb]\nenabled = false\n[health.battery]\ninterval = \"1m\"\n" + startPhones(b, dir, h)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	rackd := exec.Command(program, "run", "--config", file)
	log := &lineCount{}
	rackd.Env, rackd.Stdout, rackd.Stderr = append(os.Environ(), asRackd+"=1"), io.Discard, log
	if err := rackd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		rackd.Process.Signal(syscall.SIGTERM)
		if err := rackd.Wait(); err != nil {
			b.Errorf("rackd: %v", err)
		}
	}()
	awaitWell(b, &control.Client{Socket: filepath.Join(dir, "run/rackd.sock")}, log)
	settle := 30 * time.Second // what a start does afterwards
	if window > time.Minute {
		settle = 11 * time.Minute // the log of the start is written down after ten
	}
	time.Sleep(settle)
	began := time.Now()
	before, err := readProcess(rackd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	h.take()
	atStart := log.take()
	time.Sleep(window)
	after, err := readProcess(rackd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	minutes := time.Since(began).Minutes()
	messages, opens := h.take()
	lines := log.take()

	trips, perDay := roundTrips(b, opens, minutes), float64(after.written-before.written)/minutes*dayMinutes
	fmt.Printf("bench idle-rack-cpu %.0f ms/min\n", float64((after.cpu-before.cpu).Milliseconds())/minutes)
	fmt.Printf("bench idle-rack-roundtrips %.2f /phone/min\n", trips)
	fmt.Printf("bench idle-rack-bytes-per-day %.0f B\n", perDay)
	fmt.Printf("bench idle-rack-bytes-of-a-start %d B\n", before.written)
	fmt.Printf("bench idle-rack-log-lines %d /%v\n", len(lines), window)
	if testing.Verbose() {
		b.Logf("%d messages, %v; %d lines at the start", messages, opens, len(atStart))
	}
	if perDay > mostPerDay {
		b.Errorf("%.0f bytes a day, more than %d", perDay, mostPerDay)
	}
	if len(lines) > 0 {
		b.Errorf("an idle rack logs %q", lines)
	}
}

// roundTrips is how often a phone is asked something, each service that is opened being one. What is not a look belongs to the readings,
// of which there is one in 15 minutes by default.
func roundTrips(b *testing.B, opens map[string]int, minutes float64) float64 {
	looks, readings := 0, 0
	for service, n := range opens {
		if strings.Contains(service, "sys.boot_completed") {
			looks += n
		} else {
			readings += n
		}
	}
	if looks == 0 || readings == 0 {
		b.Errorf("%d looks and %d readings: %v", looks, readings, opens)
	}
	return (float64(looks) + float64(readings)/readEvery.Minutes()) / idlePhones / minutes
}

func awaitWell(b *testing.B, client *control.Client, log *lineCount) {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		var st action.RackStatus
		err := client.Call(context.Background(), "rack_status", nil, &st)
		if err == nil && st.Slots["well"] == idlePhones {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("slots are %v, %v:\n%s", st.Slots, err, strings.Join(log.take(), "\n"))
		}
	}
}
