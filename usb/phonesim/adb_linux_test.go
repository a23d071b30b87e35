package phonesim

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		t.Fatalf("adb is needed for this test: run make setup, then make test-unit, or set PHONERACK_ADB: %v", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		t.Fatal(err)
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
	if err := os.Mkdir(filepath.Dir(a.key()), 0o700); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(a.server)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	if out, err := a.command(ctx, "keygen", a.key()).CombinedOutput(); err != nil {
		t.Fatalf("adb keygen: %v: %s", err, out)
	}
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

// key is the file of the server's private key; the public one is beside it.
func (a *adb) key() string { return filepath.Join(a.home, ".android", "adbkey") }

func (a *adb) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, a.tool, args...)
	c.Dir = a.home
	c.Env = []string{
		"HOME=" + a.home, "ANDROID_USER_HOME=" + filepath.Dir(a.key()), "TMPDIR=" + a.home,
		"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"),
		"ADB_MDNS=0", "ADB_MDNS_AUTO_CONNECT=0", "ADB_USB=0", "ADB_LIBUSB=0",
		"ADB_DELAYED_ACK=1", "ADB_BURST_MODE=1", // its older and its newer name; older clients know neither
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
			t.Run("files", func(t *testing.T) { testADBFiles(t, a, address, system) })
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

func testADBFiles(t *testing.T, a *adb, address string, system *phonesimtest.System) {
	mtime := time.Unix(1700000000, 0)
	for _, size := range []int{0, 1, 504, 65536, 20 << 20} {
		data := make([]byte, size)
		rand.Read(data[:size/2]) // the other half compresses
		local := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(local, data, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(local, mtime, mtime); err != nil {
			t.Fatal(err)
		}
		a.must(t, "-s", address, "push", local, "/sdcard/dir/file")
		if got, err := system.ReadFile("/sdcard/dir/file"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("push of %d bytes: the phone has %d other bytes, %v", size, len(got), err)
		}
		a.must(t, "-s", address, "pull", "-a", "/sdcard/dir/file", local+".back")
		got, err := os.ReadFile(local + ".back")
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("pull of %d bytes: %d other bytes came, %v", size, len(got), err)
		}
		if info, err := os.Stat(local + ".back"); err != nil || !info.ModTime().Equal(mtime) {
			t.Errorf("pull -a: %v, %v, want time %v", info, err, mtime)
		}
	}
	system.WriteFile("/sdcard/list/one", []byte("1"), 0o600, mtime)
	system.WriteFile("/sdcard/list/two", []byte("22"), 0o644, mtime)
	want := "000081a4 00000002 6553f100 two"
	if out := a.must(t, "-s", address, "ls", "/sdcard/list"); !strings.Contains(out, want) || !strings.Contains(out, " one\n") {
		t.Errorf("ls gave %q, want it to have %q", out, want)
	}
	r := a.run(t, "-s", address, "pull", "/sdcard/absent", filepath.Join(t.TempDir(), "x"))
	said := r.stdout + r.stderr
	if r.exit == 0 || !strings.Contains(said, "does not exist") && !strings.Contains(said, "No such file or directory") {
		t.Errorf("pull of a missing file gave %+v", r)
	}
}

func TestRealADBAuthenticates(t *testing.T) {
	a := startADB(t)
	key, err := os.ReadFile(a.key() + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	state := func(address string) string {
		return strings.TrimSpace(a.run(t, "-s", address, "get-state").stdout)
	}
	t.Run("with a known key", func(t *testing.T) {
		p := newPhoneT(t, Config{Auth: Auth{Required: true, Keys: []string{string(key)}}})
		address := serveTCP(t, p)
		a.must(t, "connect", address)
		a.must(t, "-s", address, "wait-for-device")
		if _, ok := p.Prompt(); ok {
			t.Error("the phone asked its user about a key it knows")
		}
		noViolations(t, p)
	})
	t.Run("with a late answer", func(t *testing.T) {
		prompts := make(chan string, 1)
		p := newPhoneT(t, Config{Auth: Auth{Required: true}, OnPrompt: func(s string) { prompts <- s }})
		address := serveTCP(t, p)
		a.run(t, "connect", address)
		want, err := parsePublicKey(string(key))
		if err != nil {
			t.Fatal(err)
		}
		if got := <-prompts; got != want.fingerprint() {
			t.Errorf("asked about %s, want %s", got, want.fingerprint())
		}
		if r := a.run(t, "-s", address, "shell", "echo no"); r.exit == 0 || !strings.Contains(r.stderr, "unauthorized") {
			t.Errorf("shell before the answer gave %+v", r)
		}
		if !p.AcceptPrompt(true) {
			t.Error("there was no question to answer")
		}
		a.must(t, "-s", address, "wait-for-device")
		a.must(t, "disconnect", address)
		a.must(t, "connect", address)
		a.must(t, "-s", address, "wait-for-device")
		if len(prompts) > 0 {
			t.Error("asked again about a key that is always allowed")
		}
		noViolations(t, p)
	})
	t.Run("without success", func(t *testing.T) {
		p := newPhoneT(t, Config{Faults: Faults{Unauthorized: true}, Auth: Auth{Keys: []string{string(key)}}})
		address := serveTCP(t, p)
		a.run(t, "connect", address)
		if got := state(address); got == "device" {
			t.Error("adb got in")
		}
		noViolations(t, p)
	})
}
