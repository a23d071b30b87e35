package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/control"
	"phonerack/firmware/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a rack without phones behind a real control socket.
type bench struct {
	t      *testing.T
	socket string
	rack   *actiontest.Rack
	leases *lease.Table
}

func start(t *testing.T) *bench {
	t.Helper()
	rack := actiontest.New()
	b := serve(t, rack)
	b.rack = rack
	return b
}

// serve puts any rack behind the socket.
func serve(t *testing.T, rack action.Rack) *bench {
	t.Helper()
	b := &bench{t: t, socket: filepath.Join(t.TempDir(), "s")}
	began := time.Now()
	b.leases = lease.NewTable(lease.Options{Now: func() time.Duration { return time.Since(began) }})
	l, err := control.Listen(b.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(action.New(rack, b.leases, log), log).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) rackctl(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errOut bytes.Buffer
	code = run(b.t.Context(), append([]string{"--socket", b.socket}, args...), strings.NewReader(stdin), &out, &errOut)
	return out.String(), errOut.String(), code
}

func TestWhatIsPrinted(t *testing.T) {
	const phones = `SLOT  PORT   STATE  SERIAL  MODEL    ANDROID  HELD BY  REMARK
1     1-1.1  ready  R5CT    Pixel 7  14       -        -
2     1-1.2  empty  -       -        -        -        -
`
	const helpers = `APP                 STATE
io.appium.settings  not installed
server              does not run
`
	const warning = "Warning: the helper server listens on all network interfaces of the phone without authentication: " +
		"whoever reaches the phone over its network can read its screen and operate it.\n"
	for _, c := range []struct {
		args, stdin, stdout, stderr string
		code                        int
	}{
		{args: "phones", stdout: phones},
		{args: "observe 1", stdout: "[0] button \"Add\"\n"},
		{args: "tap 1 10 20", stdout: "touched 10 20\n"},
		{args: "tap 1 --element 3 --generation 7", stdout: "touched 103 200\n"},
		{args: "tap 1 --text Add", stdout: "touched 3 300\n"},
		{args: "swipe 1 1 2 3 4", stdout: "done\n"},
		{args: "type 1 kettle", stdout: "typed; text verified\n"},
		{args: "shell 1 cat", stdin: "in", stdout: "in"},
		{args: "shell 1 fail", stdout: "out\n", stderr: "err\n", code: 3},
		{args: "shell 1 no --such-flag", code: 127},
		{args: "hold 1 --release", stdout: "done\n"},
		{args: "helpers status 1", stdout: helpers},
		{args: "helpers install 1", stdout: helpers, stderr: warning},
		{args: "helpers remove 1", stdout: helpers},
		{args: "tap 1", stderr: "The request was refused because exactly one of element with generation, text, or x with y must be given; correct it and send it again.\n", code: 1},
		{args: "observe 2", stderr: "Slot 2 is empty because no phone is plugged in there; plug one in and check its cable.\n", code: 1},
		{args: "observe 2 --lang zh", stderr: "插槽 2 是空的，因为没有插入手机；请插入手机并检查数据线。\n", code: 1},
		{args: "task show none", stderr: "There is no task none because it was never started here or is forgotten; check the id.\n", code: 1},
		{args: "observe two", stderr: "rackctl: <slot>: expected a valid 64 bit int but got \"two\"; see rackctl --help\n", code: 2},
		{args: "fly", stderr: "rackctl: unexpected argument fly, did you mean \"key\"?; see rackctl --help\n", code: 2},
	} {
		stdout, stderr, code := start(t).rackctl(c.stdin, strings.Fields(c.args)...)
		if stdout != c.stdout || stderr != c.stderr || code != c.code {
			t.Errorf("rackctl %s\ngot  %d %q %q\nwant %d %q %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

func TestJSONForPrograms(t *testing.T) {
	b := start(t)
	out, _, code := b.rackctl("", "phones", "--json")
	var phones action.Phones
	if err := json.Unmarshal([]byte(out), &phones); err != nil || code != 0 || phones.Phones[0].Model != "Pixel 7" {
		t.Errorf("phones: %d %s", code, out)
	}
	out, _, code = b.rackctl("", "observe", "2", "--json")
	var refused struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(out), &refused); err != nil || code != 1 || refused.Error.Code != "slot_empty" {
		t.Errorf("refusal: %d %s", code, out)
	}
}

func TestHoldSaysUntilWhenAndForWhom(t *testing.T) {
	b := start(t)
	if out, stderr, code := b.rackctl("", "hold", "1", "--for", "10m"); code != 0 || !strings.HasPrefix(out, "slot 1 is yours until ") {
		t.Errorf("hold: %d %q %q", code, out, stderr)
	}
	if _, err := b.leases.Acquire(2, lease.Holder{Kind: lease.Hold, Who: "somebody else"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := b.rackctl("", "hold", "2")
	if code != 1 || !strings.HasPrefix(stderr, "Slot 2 is busy because it is held by somebody else until ") {
		t.Errorf("hold of another's slot: %d %q", code, stderr)
	}
	if _, stderr, code := b.rackctl("", "hold", "1", "--for", "9h"); code != 1 || !strings.Contains(stderr, "can be held for 15m0s at most") {
		t.Errorf("long hold: %d %q", code, stderr)
	}
}

func TestFilesAppearWholeOrNotAtAll(t *testing.T) {
	b := start(t)
	dir := t.TempDir()
	local := filepath.Join(dir, "film.mp4")
	if err := os.WriteFile(local, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := b.rackctl("", "push", "1", local, "/sdcard/"); code != 0 || out != "4 bytes to /sdcard/film.mp4\n" {
		t.Fatalf("push: %d %q %q", code, out, stderr)
	}
	if log := b.rack.Log(); !strings.Contains(log, "push /sdcard/film.mp4 600") {
		t.Errorf("the phone saw %s", log)
	}
	back := t.TempDir()
	if _, stderr, code := b.rackctl("", "pull", "1", "/sdcard/film.mp4", back); code != 0 {
		t.Fatalf("pull: %d %q", code, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(back, "film.mp4")); err != nil || string(got) != "film" {
		t.Errorf("pulled %q, %v", got, err)
	}
	if _, _, code := b.rackctl("", "pull", "1", "/sdcard/none", filepath.Join(back, "none")); code != 1 {
		t.Errorf("absent file: %d", code)
	}
	if entries, _ := os.ReadDir(back); len(entries) != 1 {
		t.Errorf("a failed pull left %v", entries)
	}
	taken := filepath.Join(back, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "film.mp4"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ remote, local, want string }{
		{"/sdcard/none", filepath.Join(back, "film.mp4"), "no such file"}, // the old one stays
		{"/sdcard/film.mp4", taken, "is a folder"},
		{"/sdcard/film.mp4", filepath.Join(back, "no", "such"), "no such file"},
		{"/sdcard/film.mp4", "/dev/full", "no space left"},
	} {
		if _, stderr, code := b.rackctl("", "pull", "1", c.remote, c.local); code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("pull to %s: %d %q", c.local, code, stderr)
		}
	}
	if got, err := os.ReadFile(filepath.Join(back, "film.mp4")); err != nil || string(got) != "film" {
		t.Errorf("a failed pull touched the old file: %q, %v", got, err)
	}
	for _, folder := range []string{back, taken} {
		if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) != 0 {
			t.Errorf("failed pulls left %v", left)
		}
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Fatal("a device was replaced by a file")
	}
	picture := filepath.Join(dir, "screen.jpg")
	if _, stderr, code := b.rackctl("", "observe", "1", "--image", picture); code != 0 {
		t.Errorf("observe: %d %q", code, stderr)
	}
	if got, err := os.ReadFile(picture); err != nil || string(got) != "jpeg" {
		t.Errorf("picture %q, %v", got, err)
	}
}

func TestTaskIsFollowedToItsEnd(t *testing.T) {
	out, stderr, code := start(t).rackctl("", "task", "run", "--slot", "1", "--goal", "buy a kettle", "--steps", "9")
	want := "task t1 on slot 1 ()\nstep 0: no decision -> ; \nstep 0: no decision -> ; \nsucceeded after 9 steps: done\n"
	if code != 0 || out != want {
		t.Errorf("%d %q %q", code, out, stderr)
	}
}

func TestTheEndIsToldEvenIfTheTrajectoryCannotBeCopied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"task", "run", "--slot", "1", "--goal", "buy a kettle", "--steps", "9", "--trajectory", filepath.Join(file, "folder")}
	out, stderr, code := start(t).rackctl("", args...)
	if code != 1 || !strings.HasSuffix(out, "succeeded after 9 steps: done\n") || !strings.Contains(stderr, "copy the trajectory: ") || !strings.Contains(stderr, "not a directory") {
		t.Errorf("%d %q %q", code, out, stderr)
	}
	out, stderr, code = start(t).rackctl("", append([]string{"--json"}, args...)...)
	var status action.TaskStatus
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != 1 || status.State != action.Succeeded || !strings.Contains(stderr, "copy the trajectory: ") {
		t.Errorf("%v, %d %q %q", err, code, out, stderr)
	}
}

func TestReplayTellsAFolderThatIsNotThereFromATask(t *testing.T) {
	const id = "01m8n6gt3c5bagyx2bedg82eyz"
	down := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		record, socket, stderr string
		code                   int
	}{
		{record: "demo-out/slot-7", socket: down, stderr: "rackctl: there is no folder demo-out/slot-7, nor is that the id of a task: ", code: 1},
		{record: id, stderr: "There is no task " + id + " because ", code: 1},
		{record: id, socket: down, stderr: "Check that rackd runs", code: 3},
	} {
		args := []string{"task", "replay", c.record}
		if c.socket != "" {
			args = append(args, "--socket", c.socket)
		}
		out, stderr, code := start(t).rackctl("", args...)
		if code != c.code || out != "" || strings.Count(stderr, c.stderr) != 1 || strings.Count(stderr, "cannot be reached") > 1 {
			t.Errorf("replay %s: %d %q %q", c.record, code, out, stderr)
		}
	}
}

func TestUnreachableIsSaidWithARemedy(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"--socket", filepath.Join(t.TempDir(), "none"), "phones"}, nil, &out, &errOut)
	if code != 3 || !strings.Contains(errOut.String(), "Check that rackd runs") {
		t.Errorf("%d %q", code, errOut.String())
	}
}

func TestAnEmptyWordIsNoWord(t *testing.T) {
	for _, args := range [][]string{
		{"task", "run", "--slot", "1", "--goal", "buy a kettle", "--skill", ""},
		{"task", "run", "--slot", "1", "--goal="},
		{"launch", "1", ""},
	} {
		_, stderr, code := start(t).rackctl("", args...)
		if code != exitUsage || !strings.Contains(stderr, "is empty: give it a value, or leave it out") {
			t.Errorf("%q: %d %q", args, code, stderr)
		}
	}
}
