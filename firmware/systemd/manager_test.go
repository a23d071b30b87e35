package systemd

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen is systemd's end of the socket that the environment names.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	return conn
}

// heard is the next message with its descriptor, nil without one.
func heard(t *testing.T, conn *net.UnixConn) (string, *os.File) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) == 0 {
		return string(buf[:n]), nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(messages) != 1 || len(fds) != 1 {
		t.Fatalf("%d control messages with %d descriptors, %v", len(messages), len(fds), err)
	}
	return string(buf[:n]), os.NewFile(uintptr(fds[0]), "received")
}

func TestTheManagerIsToldStates(t *testing.T) {
	conn := listen(t)
	m := FromEnvironment()
	for _, c := range []struct {
		say  func() error
		want string
	}{
		{func() error { return m.Ready("") }, "READY=1"},
		{func() error { return m.Ready("40 slots") }, "READY=1\nSTATUS=40 slots"},
		{func() error { return m.Status("slot 7 lost\nREADY=1\x00") }, "STATUS=slot 7 lost READY=1 "},
		{func() error { return m.Status(strings.Repeat("é", 200)) }, "STATUS=" + strings.Repeat("é", 150)},
		{m.Stopping, "STOPPING=1"},
		{func() error { return m.Remove("gpio-hub-a") }, "FDSTOREREMOVE=1\nFDNAME=gpio-hub-a"},
	} {
		if err := c.say(); err != nil {
			t.Fatal(err)
		}
		if got, f := heard(t, conn); got != c.want || f != nil {
			t.Errorf("heard %q with %v, want %q", got, f, c.want)
		}
	}
}

func TestAReloadCarriesTheMonotonicClock(t *testing.T) {
	conn := listen(t)
	var before, after unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
	if err := FromEnvironment().Reloading(); err != nil {
		t.Fatal(err)
	}
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
	got, _ := heard(t, conn)
	usec, ok := strings.CutPrefix(got, "RELOADING=1\nMONOTONIC_USEC=")
	at, err := strconv.ParseInt(usec, 10, 64)
	if !ok || err != nil || at < before.Nano()/1000 || at > after.Nano()/1000 {
		t.Errorf("heard %q between %d and %d", got, before.Nano()/1000, after.Nano()/1000)
	}
}

func TestAStoredDescriptorIsTheFileItself(t *testing.T) {
	conn := listen(t)
	m := FromEnvironment()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := m.Store("gpio-hub-a", read); err != nil {
		t.Fatal(err)
	}
	got, f := heard(t, conn)
	if got != "FDSTORE=1\nFDNAME=gpio-hub-a" || f == nil {
		t.Fatalf("heard %q with %v", got, f)
	}
	defer f.Close()
	write.WriteString("kept")
	write.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "kept" {
		t.Errorf("read %q, %v through the duplicate", text, err)
	}
	for _, name := range []string{"", "a:b", "a\nFDSTOREREMOVE=1", "é", strings.Repeat("x", maxName+1)} {
		if m.Store(name, read) == nil || m.Remove(name) == nil {
			t.Errorf("%q was taken for a name", name)
		}
	}
}

func TestWithoutAManagerNothingIsSent(t *testing.T) {
	conn := listen(t)
	path := os.Getenv("NOTIFY_SOCKET")
	t.Setenv("NOTIFY_SOCKET", "")
	m := FromEnvironment()
	if err := m.Ready(""); err != nil || m.Watches() {
		t.Errorf("without systemd: %v", err)
	}
	if err := m.Watch(t.Context(), func() string { return "" }); err != nil {
		t.Errorf("a watchdog that nobody wants: %v", err)
	}
	conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 64)); err == nil {
		t.Errorf("systemd heard %d bytes", n)
	}
	for _, socket := range []string{path + ".gone", "vsock:2:1234"} {
		t.Setenv("NOTIFY_SOCKET", socket)
		if err := FromEnvironment().Ready(""); err == nil {
			t.Errorf("%s was reached", socket)
		}
	}
}

func TestTheWatchdogIsFedByProgressAlone(t *testing.T) {
	conn := listen(t)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var late []string // what late answers, one after the other, and then always the last
	for range 2 {
		late = append(late, "")
	}
	late = append(late, "slot 7", "slot 7", "", "", "slot 7", "slot 8")
	asked := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() {
		done <- FromEnvironment().Watch(ctx, func() string {
			next := late[0]
			if len(late) > 1 {
				late = late[1:]
			}
			asked <- struct{}{}
			return next
		})
	}()
	const again = "WATCHDOG=1\nSTATUS=every part makes progress again"
	for _, want := range []string{"WATCHDOG=1", "WATCHDOG=1", "STATUS=no progress: slot 7", again, "WATCHDOG=1", "STATUS=no progress: slot 7", "STATUS=no progress: slot 8"} {
		if got, _ := heard(t, conn); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	for range 11 { // eight answers are behind; three more, and nobody is told
		<-asked
	}
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := conn.Read(make([]byte, 64)); err == nil {
		t.Error("fed without progress")
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
}

func TestAWatchdogOfAnotherProcessIsNotFed(t *testing.T) {
	for name, env := range map[string][2]string{
		"another process": {"30000000", "1"}, "no number": {"-5", ""}, "more than a day": {"86400000001", ""}, "none": {"", ""},
	} {
		listen(t)
		t.Setenv("WATCHDOG_USEC", env[0])
		t.Setenv("WATCHDOG_PID", env[1])
		if m := FromEnvironment(); m.period != 0 {
			t.Errorf("%s: a period of %v", name, m.period)
		}
	}
}
