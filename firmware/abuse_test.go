package firmware_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// Whoever talks nonsense to the control socket, or goes away in the middle, disturbs nobody.
func TestAbuseOfTheControlSocket(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(1, action.Ready)
	b.await(2, action.Ready)
	stop := b.exercise()
	for range 200 { // connections that say nothing, or say it slowly
		conn := b.dial()
		io.WriteString(conn, "POST /v1/actions/phones HTT")
	}
	for name, c := range map[string]struct{ request, want string }{
		"garbage":       {"\x00\xff\xfe garbage\r\n\r\n", "400 Bad Request"},
		"huge header":   {"GET /v1/actions HTTP/1.1\r\nHost: r\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431 "},
		"huge body":     {post("tap", strings.Repeat(" ", 2<<20)), "payload_too_large"},
		"another path":  {"GET /etc/passwd HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n", "unknown_action"},
		"another verb":  {"DELETE /v1/actions HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n", "unknown_action"},
		"unknown field": {post("tap", `{"slot":2,"x":1,"y":1,"force":true}`), "force"},
		"wrong type":    {post("tap", `{"slot":"two","x":1,"y":1}`), "bad_request"},
		"no object":     {post("tap", `[2]`), "bad_request"},
		"two objects":   {post("tap", `{"slot":2,"x":1,"y":1}{}`), "bad_request"},
		"deep":          {post("tap", strings.Repeat("[", 100_000)), "bad_request"},
		"huge number":   {post("tap", `{"slot":1e99,"x":1,"y":1}`), "bad_request"},
		"no such slot":  {post("tap", `{"slot":-1,"x":1,"y":1}`), "slot_unknown"},
		"no action":     {post("self_destruct", `{}`), "unknown_action"},
		"bad parameter": {post("task_run", `{"slot":2,"goal":"x","params":{"My Key":"v"}}`), "My Key"},
	} {
		if got := b.say(c.request); !strings.Contains(got, c.want) {
			t.Errorf("%s: %.300q lacks %q", name, got, c.want)
		}
	}
	// A client that is gone in the middle of a file leaves no file, and one that is gone from a shell frees the slot.
	upgrade := "Connection: Upgrade\r\nUpgrade: phonerack-stream\r\n"
	for _, c := range []string{
		post("push", `{"slot":2,"path":"/sdcard/half"}`, upgrade) + "\x01\x00\x00\x00\x04half",
		post("shell", `{"slot":2,"command":"sleep 100"}`, upgrade),
		post("shell", `{"slot":2,"command":"cat /dev/zero"}`, upgrade),
	} {
		conn := b.dial()
		io.WriteString(conn, c)
		io.ReadFull(conn, make([]byte, 12)) // it has begun
		conn.Close()
	}
	b.works(2)
	if err := b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(2), Path: "/sdcard/half"}, action.Pipes{}, nil); !wire.Is(err, wire.FileMissing) {
		t.Errorf("half a file: %v", err)
	}
	stop()
}

// dial connects to the control socket until the test ends.
func (b *bench) dial() net.Conn {
	b.t.Helper()
	conn, err := net.Dial("unix", b.Socket)
	if err != nil {
		b.t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	b.t.Cleanup(func() { conn.Close() })
	return conn
}

// say sends a request and returns all that comes back.
func (b *bench) say(request string) string {
	conn := b.dial()
	defer conn.Close()
	io.WriteString(conn, request) // a server that has heard enough hangs up before the end
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func post(action, body string, header ...string) string {
	h := "Connection: close\r\n"
	if len(header) > 0 {
		h = header[0]
	}
	return fmt.Sprintf("POST /v1/actions/%s HTTP/1.1\r\nHost: r\r\n%sContent-Length: %d\r\n\r\n%s", action, h, len(body), body)
}

func TestOddFilesAndOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[2] = newSimPhone(t, b.phones[2].path, serialOf(2), 7, phonesim.Auth{})
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(1, action.Ready)
	for _, name := range []string{"it's \"quoted\"", "two\nlines", "-rf", "--help", "水壶 ☕ إبريق", "$(reboot); `id`", "100%s\\", strings.Repeat("n", 200)} {
		file := "/sdcard/Download/" + name
		if err := b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: file}, action.Pipes{In: strings.NewReader(name)}, nil); err != nil {
			t.Errorf("push %q: %v", name, err)
			continue
		}
		var back strings.Builder
		if err := b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(1), Path: file}, action.Pipes{Out: &back}, nil); err != nil || back.String() != name {
			t.Errorf("pull %q: %q, %v", name, back.String(), err)
		}
	}
	err := b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: "relative"}, action.Pipes{In: strings.NewReader("x")}, nil)
	if !wire.Is(err, wire.BadRequest) {
		t.Errorf("relative path: %v", err)
	}
	err = b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: "/sdcard/" + strings.Repeat("n", 5000)}, action.Pipes{In: strings.NewReader("x")}, nil)
	if wire.Is(err, wire.Internal) || err == nil {
		t.Errorf("endless name: %v", err)
	}
	err = b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(1), Path: "/sdcard/Download"}, action.Pipes{}, nil)
	if wire.Is(err, wire.Internal) || err == nil {
		t.Errorf("pull of a folder: %v", err)
	}
	if _, _, err := b.shell(1, "echo "+strings.Repeat("x", 600_000), ""); err != nil {
		t.Errorf("long command: %v", err)
	}
	b.await(2, action.Ready)
	if _, _, err := b.shell(2, "echo "+strings.Repeat("x", 300_000), ""); !wire.Is(err, wire.BadRequest) {
		t.Errorf("endless command: %v", err)
	}
	b.wantRefusal(1, b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(1), Path: "/sdcard/none"}, action.Pipes{}, nil), wire.FileMissing)
	source := io.MultiReader(strings.NewReader("begin"), iotest.ErrReader(errDisk))
	err = b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: "/sdcard/unread"}, action.Pipes{In: source}, nil)
	if !errors.Is(err, errDisk) {
		t.Errorf("source that cannot be read: %v", err)
	}
	b.works(1)
	if _, code, err := b.shell(1, "ls /sdcard/unread", ""); code == 0 || err != nil {
		t.Errorf("half a file is there: %d, %v", code, err)
	}
	if out, code, err := b.shell(1, "head -c 3000000 /dev/zero", ""); len(out) != 3_000_000 || code != 0 || err != nil {
		t.Errorf("large output: %d bytes, %d, %v", len(out), code, err)
	}
	err = b.Stream(t.Context(), "shell", action.ShellArgs{SlotArgs: slotArgs(1), Command: "cat /dev/zero"}, action.Pipes{Out: fullDisk{}}, nil)
	if !errors.Is(err, errDisk) {
		t.Errorf("output that cannot be written: %v", err)
	}
	b.works(1)
}

var errDisk = errors.New("input/output error")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errDisk }
