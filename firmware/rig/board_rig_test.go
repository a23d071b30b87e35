//go:build rig

package rig_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/phonesimtest"
)

// limit is how long anything here may take; a loaded machine is several times slower than an idle one.
const limit = 3 * time.Minute

func kit(t *testing.T) *rig.Kit {
	t.Helper()
	k, err := rig.Prepare(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// boot starts a board that is closed, and explained if the test has failed, at the end of the test.
func boot(t *testing.T, config rig.BoardConfig) *rig.Board {
	t.Helper()
	begin := time.Now()
	b, err := kit(t).Boot(within(t, limit), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("board up after %.1f s", time.Since(begin).Seconds())
	rig.CloseAfter(t, b)
	return b
}

func phone(t *testing.T, serial string, highSpeed bool) *phonesim.Phone {
	t.Helper()
	p, err := phonesim.New(phonesim.Config{Serial: serial, HighSpeed: highSpeed, System: &phonesimtest.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plug puts a phone into a port and waits until the guest sees it.
func plug(t *testing.T, b *rig.Board, port, serial string, device rig.Redirector) (*rig.Plugged, rig.USBDevice) {
	t.Helper()
	ctx := within(t, limit)
	p, err := b.Plug(ctx, port, device)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := b.WaitPlugged(ctx, port, serial)
	if err != nil {
		t.Fatal(err)
	}
	return p, seen
}

func TestPhonesComeAndGoAtTheirPorts(t *testing.T) {
	b := boot(t, rig.BoardConfig{
		Hubs:  []rig.Hub{{Path: "1-1", Ports: 8}, {Path: "1-1.8", Ports: 4}},
		Ports: []string{"1-1.1", "1-1.8.2", "1-2"},
	})
	ctx := within(t, limit)
	hub, hubSeen := plug(t, b, "1-1.1", "SIM0001", phone(t, "SIM0001", false))
	_, nestedSeen := plug(t, b, "1-1.8.2", "SIM0002", phone(t, "SIM0002", false))
	_, rootSeen := plug(t, b, "1-2", "SIM0003", phone(t, "SIM0003", true))
	for _, c := range []struct {
		seen  rig.USBDevice
		speed int
	}{{hubSeen, 12}, {nestedSeen, 12}, {rootSeen, 480}} {
		if c.seen.Speed != c.speed {
			t.Errorf("%s: %d Mbit/s, want %d", c.seen.Path, c.seen.Speed, c.speed)
		}
	}

	if output, _, err := b.Run(ctx, "cat /sys/module/usbcore/parameters/autosuspend"); output != "-1\n" || err != nil {
		t.Errorf("hubs may fall asleep, and then miss phones: %q, %v", output, err)
	}
	if _, err := b.Plug(ctx, "1-1.1", phone(t, "SIM0009", false)); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a second phone in a port: %v", err)
	}
	if _, err := b.Plug(ctx, "1-3", phone(t, "SIM0009", true)); err == nil || !strings.Contains(err.Error(), "no port 1-3") {
		t.Errorf("a port that the board does not have: %v", err)
	}

	begin := time.Now()
	if err := hub.Unplug(); err != nil {
		t.Fatal(err)
	}
	if err := b.WaitUnplugged(ctx, "1-1.1"); err != nil {
		t.Fatal(err)
	}
	t.Logf("gone after %.1f s", time.Since(begin).Seconds())
	select {
	case <-hub.Done():
	default:
		t.Error("unplugged, yet ServeRedir runs")
	}
	begin = time.Now()
	if err := hub.Replug(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitPlugged(ctx, "1-1.1", "SIM0001"); err != nil {
		t.Fatal(err)
	}
	t.Logf("back after %.1f s", time.Since(begin).Seconds())
	if err := hub.Replug(ctx); err != nil {
		t.Errorf("replug of a phone that is in: %v", err)
	}
	if _, err := b.WaitPlugged(ctx, "1-1.1", "SIM0001"); err != nil {
		t.Fatal(err)
	}
	if err := hub.Unplug(); err != nil {
		t.Fatal(err)
	}
	plug(t, b, "1-1.1", "SIM0004", phone(t, "SIM0004", false)) // another phone takes the place
	if err := hub.Replug(ctx); err == nil {
		t.Error("two phones in one port")
	}
}

func TestTenPhonesOnThreeHubs(t *testing.T) {
	config := rig.BoardConfig{Hubs: []rig.Hub{{Path: "1-1", Ports: 4}, {Path: "1-2", Ports: 4}, {Path: "1-3", Ports: 4}}}
	for i := range 10 {
		config.Ports = append(config.Ports, fmt.Sprintf("1-%d.%d", i/4+1, i%4+1))
	}
	b := boot(t, config)
	ctx := within(t, limit)
	begin := time.Now()
	for i, port := range config.Ports {
		if _, err := b.Plug(ctx, port, phone(t, fmt.Sprintf("SIM%04d", i), false)); err != nil {
			t.Fatal(err)
		}
	}
	for i, port := range config.Ports {
		if _, err := b.WaitPlugged(ctx, port, fmt.Sprintf("SIM%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ten phones there after %.1f s", time.Since(begin).Seconds())
}

func TestCommands(t *testing.T) {
	b := boot(t, rig.BoardConfig{Files: map[string]string{"/data": "guest"}, Contents: map[string]string{
		"/bin/greet": "#!/bin/sh\necho hello \"$1\"\n", "/etc/note": "text",
	}})
	ctx := within(t, limit)
	for _, c := range []struct {
		command, output string
		exit            int
	}{
		{"echo one; echo two >&2; exit 7", "one\n", 7},
		{"printf 'no line end'", "no line end", 0},
		{"kill -9 $$", "", 137},
		{"/bin/nonsense", "", 127},
		{"greet you; cat /etc/note", "hello you\ntext", 0},
		{"cat /data/init | head -n 1", "#!/bin/sh\n", 0},
		{"echo ${HOME-none}", "none\n", 0},
		{"cat", "", 0}, // no input
		{"(sleep 600 >/dev/null 2>&1 &); echo left", "left\n", 0},
	} {
		if output, exit, err := b.Run(ctx, c.command); output != c.output || exit != c.exit || err != nil {
			t.Errorf("%s: %q, %d, %v", c.command, output, exit, err)
		}
	}

	t.Run("large output", func(t *testing.T) {
		const size = 64 << 20
		hash, count := sha256.New(), 0
		begin := time.Now()
		exit, err := b.Stream(ctx, "dd if=/dev/zero bs=65536 count=1024 2>/dev/null", nil, io.MultiWriter(hash, writerFunc(func(p []byte) { count += len(p) })))
		if exit != 0 || err != nil || count != size || !bytes.Equal(hash.Sum(nil), hashOfZeros(size)) {
			t.Errorf("%d bytes, %d, %v", count, exit, err)
		}
		t.Logf("%.0f MB/s out of the guest", size/1e6/time.Since(begin).Seconds())
	})
	t.Run("input", func(t *testing.T) {
		content := bytes.Repeat([]byte("\x00\xffline\n"), 500_000)
		if err := b.Push(ctx, content, "/tmp/it's"); err != nil {
			t.Fatal(err)
		}
		var back bytes.Buffer
		if _, err := b.Stream(ctx, `cat "/tmp/it's"`, nil, &back); err != nil || !bytes.Equal(back.Bytes(), content) {
			t.Errorf("%d bytes of %d, %v", back.Len(), len(content), err)
		}
		if err := b.Push(ctx, nil, "/nowhere/x"); err == nil {
			t.Error("pushed into a folder that is not there")
		}
	})
	t.Run("at the same time", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if output, _, err := b.Run(ctx, fmt.Sprintf("sleep 0.2; echo %d", i)); output != fmt.Sprintln(i) || err != nil {
					t.Errorf("%d: %q, %v", i, output, err)
				}
			})
		}
		all.Wait()
	})
	t.Run("killed at the end of the context", func(t *testing.T) {
		for range 4 { // more than there are shells
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			_, _, err := b.Run(short, "sleep 601")
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if output, _, err := b.Run(ctx, "ps | grep -c '[s]leep 601'"); strings.TrimSpace(output) != "0" || err != nil {
			t.Errorf("%s run on, %v", output, err)
		}
	})
	t.Run("folder out of the guest", func(t *testing.T) {
		if _, _, err := b.Run(ctx, "mkdir -p /tmp/task/sub; for i in 1 2 3 4; do head -c 1000000 /dev/urandom >/tmp/task/sub/$i.jpg; done; (cd /tmp/task/sub; sha256sum *) >/tmp/task/sums"); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		begin := time.Now()
		if err := b.Pull(ctx, "/tmp/task", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		t.Logf("4 MB pulled in %.1f s", time.Since(begin).Seconds())
		sums, err := os.ReadFile(filepath.Join(dir, "out", "task", "sums"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			name := fmt.Sprintf("%d.jpg", i+1)
			content, err := os.ReadFile(filepath.Join(dir, "out", "task", "sub", name))
			if err != nil || !strings.Contains(string(sums), fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)) {
				t.Errorf("%s differs, %v", name, err)
			}
		}
		if err := b.Pull(ctx, "/tmp/absent", dir); err == nil {
			t.Error("pulled what is not there")
		}
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func hashOfZeros(n int) []byte {
	h := sha256.New()
	h.Write(make([]byte, n))
	return h.Sum(nil)
}

func TestReadOnlyRootAndServices(t *testing.T) {
	b := boot(t, rig.BoardConfig{ReadOnlyRoot: true, Writable: []string{"/var/lib/rackd", "/run/rackd"}, Init: []string{"echo BOARD IS UP"}})
	ctx := within(t, limit)
	if _, err := b.WaitLine(ctx, regexp.MustCompile("^BOARD IS UP$")); err != nil {
		t.Fatal(err)
	}
	output, _, err := b.Run(ctx, "for d in / /etc /tmp /run /root /var/lib/rackd /run/rackd; do touch $d/x 2>/dev/null && echo $d; done")
	if want := "/var/lib/rackd\n/run/rackd\n"; output != want || err != nil {
		t.Errorf("can be written: %q, want %q, %v", output, want, err)
	}

	const program = `echo ready; trap 'echo stopping; exit 4' TERM; while :; do sleep 0.1; done`
	for range 2 {
		from := b.Lines()
		s, err := b.Start(ctx, "rackd", "sh", "-c", program)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.WaitLineAfter(ctx, from, regexp.MustCompile("^rackd: ready$")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Start(ctx, "rackd", "true"); err == nil {
			t.Error("two services of one name")
		}
		if err := s.Signal(ctx, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit, err := s.Wait(ctx); exit != 4 || err != nil {
			t.Errorf("exit code %d, %v", exit, err)
		}
		if err := s.Signal(ctx, syscall.SIGTERM); err != nil {
			t.Errorf("a signal to a service that has ended: %v", err)
		}
		if _, err := b.WaitLineAfter(ctx, from, regexp.MustCompile("^rackd: stopping$")); err != nil {
			t.Error(err)
		}
	}
}

func TestGuestThatPowersOff(t *testing.T) {
	b := boot(t, rig.BoardConfig{})
	ctx := within(t, limit)
	var status struct{ Running bool }
	if err := b.Monitor(ctx, "query-status", nil, &status); err != nil || !status.Running {
		t.Errorf("monitor: %v, %v", status, err)
	}
	fmt.Fprintln(b.Log("phone 7"), "a line of its log")
	running, err := b.Start(ctx, "off", "sh", "-c", "echo going off; sleep 0.5; poweroff -f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.WaitLine(ctx, regexp.MustCompile("this never comes")); !errors.Is(err, rig.ErrEnded) {
		t.Errorf("a wait for the console: %v", err)
	}
	if _, err := running.Wait(ctx); !errors.Is(err, rig.ErrEnded) {
		t.Errorf("a command: %v", err)
	}
	if _, err := b.Plug(ctx, "1-1", phone(t, "SIM0001", true)); err == nil {
		t.Error("plugged into a board without ports")
	}
	var dump dumped
	rig.Dump(&dump, b)
	for _, want := range []string{"going off", "qemu event SHUTDOWN", "guest-shutdown", "qemu has ended: exit status 0", "log of phone 7:\na line of its log"} {
		if !strings.Contains(dump.String(), want) {
			t.Errorf("the dump lacks %q:\n%s", want, dump.String())
		}
	}
}

// dumped takes what Dump logs.
type dumped struct{ strings.Builder }

func (*dumped) Helper() {}

func (d *dumped) Logf(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func TestWaitsEndWithTheirContext(t *testing.T) {
	b := boot(t, rig.BoardConfig{Ports: []string{"1-1"}})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := b.WaitLine(ctx, regexp.MustCompile("this never comes")); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "this never comes") {
		t.Errorf("console: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := b.WaitPlugged(ctx, "1-1", "SIM0001"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("phone: %v", err)
	}
	if _, _, err := b.Run(ctx, "true"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("command: %v", err)
	}
}

func TestBoardsThatCannotBootSayWhy(t *testing.T) {
	k := kit(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config rig.BoardConfig
		says   []string
	}{
		"unknown device":  {rig.BoardConfig{QEMU: []string{"-device", "nonsense"}}, []string{"qemu", "'nonsense' is not a valid device model"}},
		"unknown module":  {rig.BoardConfig{Modules: []string{"nonsense"}}, []string{"no module nonsense"}},
		"missing file":    {rig.BoardConfig{Files: map[string]string{"/bin/rackd": "/absent/rackd"}}, []string{"/absent/rackd"}},
		"foreign program": {rig.BoardConfig{Files: map[string]string{"/bin/rackd": self}}, []string{"is for EM_X86_64"}},
		"missing drive":   {rig.BoardConfig{Drives: []rig.Drive{{Path: "/absent/disk"}}}, []string{"/absent/disk"}},
		"no init":         {rig.BoardConfig{Append: []string{"rdinit=/nonsense"}}, []string{"the board has ended", "Kernel panic"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := k.Boot(within(t, limit), test.config)
			if err == nil {
				b.Close()
				t.Fatal("it has booted")
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("no %q in %v", says, err)
				}
			}
		})
	}
	t.Run("silent guest", func(t *testing.T) {
		begin := time.Now()
		_, err := k.Boot(within(t, 2*time.Second), rig.BoardConfig{Append: []string{"rdinit=/bin/sh"}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
