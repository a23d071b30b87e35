package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim/phonesimtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// program is phonesim under test.
type program struct {
	lines *bufio.Scanner
	stop  context.CancelFunc
	exit  chan int
	log   bytes.Buffer // for reading once exit has given its value
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	p := &program{lines: bufio.NewScanner(r), stop: stop, exit: make(chan int, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.Close()
		p.exit <- run(ctx, args, w, &p.log)
	}()
	t.Cleanup(func() {
		stop()
		r.Close()
		<-done
	})
	return p
}

func (p *program) expectLine(t *testing.T, prefix string) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("no line; exit code %d: %s", <-p.exit, p.log.String())
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), prefix)
	if !ok {
		t.Fatalf("printed %q, want %q", p.lines.Text(), prefix)
	}
	return rest
}

func (p *program) expectExit(t *testing.T, code int) {
	t.Helper()
	select {
	case got := <-p.exit:
		if got != code {
			t.Errorf("exit code %d, want %d: %s", got, code, p.log.String())
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "phonesim") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(dir, "s")} {
		t.Run(network, func(t *testing.T) {
			p := start(t, "--listen", address, "--model", "Test 1", "--android", "11", "--size", "480x800", "--android-null-focus", "--pin", "12")
			nc, err := net.Dial(network, p.expectLine(t, "listening on "))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			conn, err := adb.Connect(ctx, adb.NewStreamLink(nc), adb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for cmd, want := range map[string]string{
				"getprop ro.product.model":                       "Test 1\n",
				"getprop ro.build.version.release":               "11\n",
				"wm size":                                        "Physical size: 480x800\n",
				"dumpsys window policy | grep -c 'showing=true'": "1\n",
				"dumpsys window displays | grep mCurrentFocus":   "  mCurrentFocus=null\n",
			} {
				if r, err := conn.Shell(ctx, cmd); err != nil || string(r.Stdout) != want {
					t.Errorf("%s: %q, %v, want %q", cmd, r.Stdout, err, want)
				}
			}
			p.stop()
			p.expectExit(t, 0)
		})
	}
}

func TestSocketThatAKilledProgramLeftIsTakenOver(t *testing.T) {
	t.Chdir(t.TempDir())
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: "s", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	for _, address := range []string{"./s", "unix:s"} {
		p := start(t, "--listen", address)
		p.expectLine(t, "listening on ")
		nc, err := net.Dial("unix", "s")
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		p.stop()
		p.expectExit(t, 0)
	}
}

func TestPathOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	other, err := net.Listen("unix", "live")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := os.WriteFile("file", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("live", "link"); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"live": "another program listens there", "file": "is no socket", "folder": "is no socket", "link": "is no socket",
	} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, "--listen", "./"+path)
		p.expectExit(t, exitFailed)
		if log := p.log.String(); !strings.Contains(log, "./"+path) || !strings.Contains(log, says) {
			t.Errorf("%s: %s", path, log)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", path, err)
		}
	}
}

func TestRedir(t *testing.T) {
	dir, err := os.MkdirTemp("", "phonesim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := start(t, "--redir", path, "--serial", "XYZ", "--high-speed")
	p.expectLine(t, "plugged in at "+path)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	g := phonesimtest.NewGuest(nc)
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := g.WaitDevice(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := g.Control(ctx, 0x80, 6, 3<<8|3, 0x409, 255)
	if want := "\x08\x03X\x00Y\x00Z\x00"; err != nil || string(r.Data) != want {
		t.Errorf("serial number % x, %v", r.Data, err)
	}
	g.Close()
	p.expectExit(t, 0)
}

func TestWrongUse(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"", exitUsage, "--redir or --listen"},
		{"--listen 127.0.0.1:0 --adbd 127.0.0.1:1", exitUsage, "--adbd"},
		{"--listen 127.0.0.1:0 --android 13", exitUsage, "--android"},
		{"--listen 127.0.0.1:0 --size big", exitUsage, "1080x2400"},
		{"--redir /nowhere/at/all", exitFailed, "/nowhere/at/all"},
	} {
		p := start(t, strings.Fields(test.args)...)
		p.expectExit(t, test.code)
		if !strings.Contains(p.log.String(), test.says) {
			t.Errorf("%q says %q, want %q in it", test.args, p.log.String(), test.says)
		}
	}
	p := start(t, "--help")
	p.expectLine(t, "Usage: phonesim")
}

func TestFaultsAndKeysReachThePhone(t *testing.T) {
	key, err := adb.LoadOrCreateKey(filepath.Join(t.TempDir(), "adbkey"))
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, key.PublicLine("test"), 0o600); err != nil {
		t.Fatal(err)
	}
	connect := func(p *program, patience time.Duration) error {
		nc, err := net.Dial("tcp", p.expectLine(t, "listening on "))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := adb.Connect(ctx, adb.NewStreamLink(nc), adb.Options{Keys: []*adb.Key{key}})
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := connect(start(t, "--listen", "127.0.0.1:0", "--auth", "keys", "--keys", keys), patience); err != nil {
		t.Errorf("with a known key: %v", err)
	}
	if err := connect(start(t, "--listen", "127.0.0.1:0", "--auth", "accept", "--wait", "10ms"), patience); err != nil {
		t.Errorf("with a user who accepts: %v", err)
	}
	if err := connect(start(t, "--listen", "127.0.0.1:0", "--fault-hang"), 200*time.Millisecond); err == nil {
		t.Error("a phone that hangs let in")
	}
}
