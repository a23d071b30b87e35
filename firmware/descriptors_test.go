package firmware_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/systemd"
)

// TestALineIsStoredAndDroppedBySystemd reads what a service manager would be sent.
func TestALineIsStoredAndDroppedBySystemd(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	kept := filepath.Join(dir, "line")
	if err := os.WriteFile(kept, []byte("the line"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	store := firmware.SystemdStore{Manager: systemd.FromEnvironment()}
	if err := store.Store("rackd-hub-1-1.2", f); err != nil {
		t.Fatal(err)
	}
	hear := func() (string, []int) {
		buf, oob := make([]byte, 512), make([]byte, 512)
		l.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, oobn, _, _, err := l.ReadMsgUnix(buf, oob)
		if err != nil {
			t.Fatal(err)
		}
		var fds []int
		messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			more, err := syscall.ParseUnixRights(&m)
			if err != nil {
				t.Fatal(err)
			}
			fds = append(fds, more...)
		}
		return string(buf[:n]), fds
	}
	if said, fds := hear(); said != "FDSTOREREMOVE=1\nFDNAME=rackd-hub-1-1.2" || len(fds) != 0 {
		t.Errorf("first said %q with %v", said, fds)
	}
	said, fds := hear()
	if said != "FDSTORE=1\nFDNAME=rackd-hub-1-1.2" || len(fds) != 1 {
		t.Fatalf("then said %q with %v", said, fds)
	}
	copied := os.NewFile(uintptr(fds[0]), "copy")
	defer copied.Close()
	content := make([]byte, 8)
	if _, err := copied.ReadAt(content, 0); err != nil || string(content) != "the line" {
		t.Errorf("the stored file holds %q, %v", content, err)
	}
	for _, name := range []string{"", "a:b", "two\nlines", "ü", strings.Repeat("x", 256)} {
		if store.Store(name, f) == nil || store.Drop(name) == nil {
			t.Errorf("%q was taken as a name", name)
		}
	}
}

// TestWhatSystemdHasKeptIsTakenOver starts this program again as systemd does, with files behind the standard ones.
func TestWhatSystemdHasKeptIsTakenOver(t *testing.T) {
	if os.Getenv("RACK_TEST_KEPT") != "" {
		tellKept(t)
		return
	}
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"a", "b", "a"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	for _, c := range []struct{ who, want string }{
		{"self", "a=a b=b "}, // a second file of a name is closed
		{"other", ""},        // they are for another process
	} {
		script := `export LISTEN_PID=$$; [ "$1" = other ] && export LISTEN_PID=1; exec "$0" -test.run=TestWhatSystemdHasKeptIsTakenOver`
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, os.Args[0], c.who)
		cmd.ExtraFiles = files
		out := filepath.Join(dir, "told")
		cmd.Env = append(os.Environ(), "RACK_TEST_KEPT="+out, "LISTEN_FDS=3", "LISTEN_FDNAMES=a:b:a")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		told, err := os.ReadFile(out)
		if err != nil || string(told) != c.want {
			t.Errorf("%s took %q, want %q (%v)", c.who, told, c.want, err)
		}
	}
}

// tellKept writes what was taken over: the names with the files behind them.
func tellKept(t *testing.T) {
	kept, err := firmware.AdoptLines()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, name := range []string{"a", "b", "unknown"} {
		p := kept[name]
		if p == nil {
			continue
		}
		link, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(p.Fd()))))
		if err != nil {
			t.Fatal(err)
		}
		told.WriteString(name + "=" + filepath.Base(link) + " ")
		p.Close()
	}
	if os.Getenv("LISTEN_FDS") != "" {
		told.WriteString("children would think the files theirs")
	}
	if err := os.WriteFile(os.Getenv("RACK_TEST_KEPT"), []byte(told.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
