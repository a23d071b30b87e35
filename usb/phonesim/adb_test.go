package phonesim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/usb/phonesim/phonesimtest"
)

// adbTool returns the adb client that judges the phone.
func adbTool(t *testing.T) string {
	t.Helper()
	tool := os.Getenv("PHONERACK_ADB")
	if tool == "" {
		tool = "adb"
	}
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Fatalf("adb is needed for this test: install it or set PHONERACK_ADB: %v", err)
	}
	return path
}

// adb is a private adb server and the folder it lives in.
type adb struct {
	tool, home, server string
}

// startADB starts an adb server of its own, which ends with the test.
func startADB(t *testing.T) *adb {
	t.Helper()
	l := listen(t)
	a := &adb{tool: adbTool(t), home: t.TempDir(), server: l.Addr().String()}
	l.Close()
	_, port, _ := net.SplitHostPort(a.server)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	var log bytes.Buffer
	server := a.command(ctx, "-P", port, "nodaemon", "server")
	server.Stdout, server.Stderr = &log, &log
	server.WaitDelay = time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		server.Wait()
		if t.Failed() {
			t.Logf("adb server: %s", log.String())
		}
	})
	for range 100 {
		if c, err := net.Dial("tcp", a.server); err == nil {
			c.Close()
			return a
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the adb server does not listen")
	return nil
}

func (a *adb) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, a.tool, args...)
	c.Dir = a.home
	c.Env = []string{
		"HOME=" + a.home, "ANDROID_USER_HOME=" + a.home, "ANDROID_SDK_HOME=" + a.home, "TMPDIR=" + a.home,
		"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"),
		"ADB_MDNS=0", "ADB_MDNS_AUTO_CONNECT=0", "ADB_USB=0", "ADB_LIBUSB=0",
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// result is how an adb command ended.
type result struct {
	stdout, stderr string
	exit           int
}

func (a *adb) run(t *testing.T, args ...string) result {
	t.Helper()
	return a.runInput(t, "", args...)
}

func (a *adb) runInput(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, port, _ := net.SplitHostPort(a.server)
	c := a.command(ctx, append([]string{"-P", port}, args...)...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := c.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ctx.Err() != nil {
		t.Fatalf("adb %q: %v; stdout %q, stderr %q", args, err, stdout.String(), stderr.String())
	}
	return result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// must runs an adb command that has to succeed and returns what it printed.
func (a *adb) must(t *testing.T, args ...string) string {
	t.Helper()
	r := a.run(t, args...)
	if r.exit != 0 {
		t.Fatalf("adb %q: exit %d, stdout %q, stderr %q", args, r.exit, r.stdout, r.stderr)
	}
	return r.stdout
}

// listen listens on a port that adb does not take for an emulator's.
func listen(t *testing.T) net.Listener {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port < 5555 || port > 5585 {
			return l
		}
		l.Close()
	}
}

// serveTCP serves the phone on a loopback port for as long as the test runs.
func serveTCP(t *testing.T, p *Phone) (address string) {
	t.Helper()
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.ServeStream(ctx, c) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// noViolations fails the test if the host has broken a rule.
func noViolations(t *testing.T, p *Phone) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Error(v.Error())
	}
}

func testSystem() *phonesimtest.System {
	return &phonesimtest.System{Properties: map[string]string{
		"ro.product.name": "sim", "ro.product.model": "Sim 1", "ro.product.device": "simdev",
	}}
}

func newPhoneT(t *testing.T, c Config) *Phone {
	t.Helper()
	if c.System == nil {
		c.System = testSystem()
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// releasesUnderTest are all versions of Android that there are.
var releasesUnderTest = []int{7, 9, 11, 14, 15}

func TestRealADB(t *testing.T) {
	a := startADB(t)
	for _, android := range releasesUnderTest {
		t.Run(fmt.Sprint("Android ", android), func(t *testing.T) {
			system := testSystem()
			p := newPhoneT(t, Config{Serial: "REAL", Android: android, System: system})
			address := serveTCP(t, p)
			if out := a.must(t, "connect", address); !strings.Contains(out, "connected to") {
				t.Fatalf("adb connect: %q", out)
			}
			a.must(t, "-s", address, "wait-for-device")
			t.Run("is listed", func(t *testing.T) {
				out := a.must(t, "devices", "-l")
				for _, want := range []string{address, "device product:sim", "model:Sim_1", "device:simdev"} {
					if !strings.Contains(out, want) {
						t.Errorf("adb devices lacks %q: %q", want, out)
					}
				}
			})
			t.Run("shell", func(t *testing.T) { testADBShell(t, a, address) })
			noViolations(t, p)
			a.must(t, "disconnect", address)
		})
	}
}

func testADBShell(t *testing.T, a *adb, address string) {
	r := a.run(t, "-s", address, "shell", "echo out; warn err; exit 7")
	if want := (result{"out\n", "err\n", 7}); r != want {
		t.Errorf("shell gave %+v, want %+v", r, want)
	}
	r = a.runInput(t, "through and back", "-s", address, "shell", "cat")
	if want := (result{"through and back", "", 0}); r != want {
		t.Errorf("cat gave %+v, want %+v", r, want)
	}
	if out := a.must(t, "-s", address, "exec-out", "bytes 3000000"); out != string(phonesimtest.Bytes(3000000)) {
		t.Errorf("exec-out gave %d other bytes", len(out))
	}
}
