package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	*Client
	rack   *actiontest.Rack
	leases *lease.Table
	stop   func()
}

func start(t *testing.T) *bench { return startWith(t, func(*Server) {}) }

func startWith(t *testing.T, change func(*Server)) *bench {
	t.Helper()
	b := &bench{rack: actiontest.New(), Client: &Client{Socket: filepath.Join(t.TempDir(), "run", "rackd.sock")}}
	began := time.Now()
	b.leases = lease.NewTable(lease.Options{Now: func() time.Duration { return time.Since(began) }})
	l, err := Listen(b.Socket, "")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	server := NewServer(action.New(b.rack, b.leases, log), log)
	change(server)
	go func() { done <- server.Serve(ctx, l) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the server does not stop")
		}
	}
	t.Cleanup(b.stop)
	return b
}

func TestCallsAndRefusals(t *testing.T) {
	b := start(t)
	var phones action.Phones
	if err := b.Call(t.Context(), "phones", nil, &phones); err != nil || len(phones.Phones) != 2 || phones.Phones[0].Serial != "R5CT" {
		t.Errorf("phones: %+v, %v", phones, err)
	}
	var o action.Observation
	if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: action.SlotArgs{Slot: 1}, Image: true}, &o); err != nil || string(o.Image) != "jpeg" {
		t.Errorf("observe: %+v, %v", o, err)
	}
	err := b.Call(t.Context(), "observe", action.SlotArgs{Slot: 2}, nil)
	if r, ok := errors.AsType[*wire.Refusal](err); !ok || r.Sentence("en") != "Slot 2 is empty because no phone is plugged in there; plug one in and check its cable." {
		t.Errorf("empty slot: %v", err)
	}
	if err := b.Call(t.Context(), "fly", nil, nil); !wire.Is(err, wire.UnknownAction) {
		t.Errorf("unknown action: %v", err)
	}
	if all, err := b.Definitions(t.Context()); err != nil || len(all) < 15 {
		t.Errorf("definitions: %d, %v", len(all), err)
	}
}

func TestActorIsTheUserAtTheOtherEnd(t *testing.T) {
	b := start(t)
	var state lease.State
	if err := b.Call(t.Context(), "hold", action.HoldArgs{SlotArgs: action.SlotArgs{Slot: 1}}, &state); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if state.Holder.Who != me.Username {
		t.Errorf("held by %q, want %q", state.Holder.Who, me.Username)
	}
}

func TestShellCarriesStreamsAndExitCode(t *testing.T) {
	b := start(t)
	run := func(cmd, stdin string) (stdout, stderr string, code int, err error) {
		var out, errOut bytes.Buffer
		var exit action.Exit
		err = b.Stream(t.Context(), "shell", action.ShellArgs{SlotArgs: action.SlotArgs{Slot: 1}, Command: cmd},
			action.Pipes{In: strings.NewReader(stdin), Out: &out, Err: &errOut}, &exit)
		return out.String(), errOut.String(), exit.Code, err
	}
	if out, errOut, code, err := run("fail", "never read"); out != "out\n" || errOut != "err\n" || code != 3 || err != nil {
		t.Errorf("fail: %q %q %d %v", out, errOut, code, err)
	}
	if out, _, code, err := run("cat", "one\ntwo\n"); out != "one\ntwo\n" || code != 0 || err != nil {
		t.Errorf("cat: %q %d %v", out, code, err)
	}
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	if out, _, _, err := run("cat", long); out != long || err != nil {
		t.Errorf("long cat: %d bytes, %v", len(out), err)
	}
	if _, _, _, err := run("fail", long); err != nil {
		t.Errorf("a command that reads nothing: %v", err)
	}
}

func TestClientThatGoesEndsTheCommandAndItsLease(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.Stream(ctx, "shell", action.ShellArgs{SlotArgs: action.SlotArgs{Slot: 1}, Command: "wait"}, action.Pipes{}, nil)
	}()
	held := func(want bool) bool {
		for range 500 {
			if _, held := b.leases.Lookup(1); held == want {
				return true
			}
			time.Sleep(10 * time.Millisecond)
		}
		return false
	}
	if !held(true) {
		t.Fatal("the command did not start")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if !held(false) {
		t.Error("the command still holds the slot")
	}
}

func TestLargeFilesGoThroughUnchanged(t *testing.T) {
	b := start(t)
	content := make([]byte, 20<<20)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(content)
	var sent, got action.Transfer
	err := b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: action.SlotArgs{Slot: 1}, Path: "/sdcard/film.mp4"},
		action.Pipes{In: bytes.NewReader(content)}, &sent)
	if err != nil || sent.Bytes != int64(len(content)) {
		t.Fatalf("push: %+v, %v", sent, err)
	}
	var back bytes.Buffer
	err = b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: action.SlotArgs{Slot: 1}, Path: "/sdcard/film.mp4"},
		action.Pipes{Out: &back}, &got)
	if err != nil || got.Bytes != int64(len(content)) || !bytes.Equal(back.Bytes(), content) {
		t.Fatalf("pull: %+v, %v", got, err)
	}
	err = b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: action.SlotArgs{Slot: 1}, Path: "/sdcard/none"}, action.Pipes{Out: &back}, nil)
	if !wire.Is(err, wire.FileMissing) {
		t.Errorf("absent file: %v", err)
	}
}

type brokenReader struct{ n int }

func (r *brokenReader) Read(p []byte) (int, error) {
	if r.n++; r.n > 3 {
		return 0, errors.New("disk failed")
	}
	return len(p), nil
}

func TestHalfAFileIsNotAFile(t *testing.T) {
	b := start(t)
	err := b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: action.SlotArgs{Slot: 1}, Path: "/sdcard/half"}, action.Pipes{In: &brokenReader{}}, nil)
	if err == nil || err.Error() != "disk failed" {
		t.Errorf("push: %v", err)
	}
	b.stop()
	if log := b.rack.Log(); strings.Contains(log, "half") {
		t.Errorf("the phone got half a file: %s", log)
	}
}

func TestTaskEventsComeLineByLine(t *testing.T) {
	b := start(t)
	var status action.TaskStatus
	if err := b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: action.SlotArgs{Slot: 1}, Goal: "buy a kettle"}, &status); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	if err := b.Stream(t.Context(), "task_watch", action.TaskArgs{ID: status.ID}, action.Pipes{Out: &lines}, &status); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(&lines)
	var events []action.TaskEvent
	for {
		var e action.TaskEvent
		if err := decoder.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if len(events) != 3 || string(events[0].Step) != `{"step":1}` || events[2].Status.State != action.Succeeded {
		t.Errorf("events %+v", events)
	}
}

func TestStopCancelsWhatRuns(t *testing.T) {
	b := start(t)
	done := make(chan error, 1)
	go func() {
		done <- b.Stream(t.Context(), "shell", action.ShellArgs{SlotArgs: action.SlotArgs{Slot: 1}, Command: "wait"}, action.Pipes{}, nil)
	}()
	for range 500 {
		if _, held := b.leases.Lookup(1); held {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.stop()
	if err := <-done; !wire.Is(err, wire.ShuttingDown) {
		t.Errorf("client: %v", err)
	}
	if err := b.Call(t.Context(), "phones", nil, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("after the stop: %v", err)
	}
	if _, err := os.Lstat(b.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left over: %v", err)
	}
}

func TestSocketModeAndStaleSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, ""); err == nil || !strings.Contains(err.Error(), "another program listens") {
		t.Errorf("live socket: %v", err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	l, err := Listen(path, "")
	if err != nil {
		t.Fatalf("stale socket: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	l.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, ""); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("file: %v", err)
	}
	if _, err := Listen(filepath.Join(t.TempDir(), "t"), "no-such-group"); err == nil {
		t.Error("unknown group was accepted")
	}
}

// TestMalformedClients speaks to the socket by hand.
func TestMalformedClients(t *testing.T) {
	b := start(t)
	speak := func(request string) string {
		conn, err := net.Dial("unix", b.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.WriteString(conn, request); err != nil {
			return "write: " + err.Error()
		}
		all, _ := io.ReadAll(conn)
		return string(all)
	}
	post := func(action string, length int, body string, more ...string) string {
		return fmt.Sprintf("POST /v1/actions/%s HTTP/1.1\r\nHost: rackd\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s",
			action, strings.Join(more, ""), length, body)
	}
	large := strings.Repeat(" ", maxArgs+1)
	upgrade := "Connection: Upgrade\r\nUpgrade: " + upgradeName + "\r\n"
	shell := `{"slot":1,"command":"cat"}`
	for name, c := range map[string]struct{ request, want string }{
		"no HTTP":        {"hello\r\n\r\n", "400 Bad Request"},
		"large header":   {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", ""},
		"large body":     {post("tap", len(large), large), "payload_too_large"},
		"not JSON":       {post("tap", 3, "{{{"), "bad_request"},
		"no upgrade":     {post("shell", len(shell), shell), "bad_request"},
		"wrong path":     {"GET /etc/passwd HTTP/1.1\r\nHost: rackd\r\nConnection: close\r\n\r\n", "404"},
		"huge packet":    {post("shell", len(shell), shell, upgrade) + "\x01\xff\xff\xff\xff", "101 Switching"},
		"unknown packet": {post("shell", len(shell), shell, upgrade) + "\x63\x00\x00\x00\x00", "101 Switching"},
	} {
		if got := speak(c.request); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %.200q, want %q in it", name, got, c.want)
		}
	}
	if err := b.Call(t.Context(), "phones", nil, nil); err != nil {
		t.Errorf("the server suffered: %v", err)
	}
}

func TestTooManyCallsAtOnceAreRefused(t *testing.T) {
	b := start(t)
	b.rack.Block = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan error, maxCalls+8)
	for range maxCalls + 8 {
		go func() {
			results <- b.Call(ctx, "tap", map[string]any{"slot": 1, "x": 1, "y": 1}, nil)
		}()
	}
	refused := 0
	for refused < 8 {
		select {
		case err := <-results:
			if !wire.Is(err, wire.LimitExceeded) {
				t.Fatalf("call: %v", err)
			}
			refused++
		case <-time.After(5 * time.Second):
			t.Fatalf("only %d calls were refused", refused)
		}
	}
	close(b.rack.Block)
	for range maxCalls {
		if err := <-results; err != nil {
			t.Errorf("call: %v", err)
		}
	}
}

func TestCallMayTakeLongerThanItsRequest(t *testing.T) {
	b := startWith(t, func(s *Server) { s.readTimeout = 50 * time.Millisecond })
	b.rack.Block = make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { close(b.rack.Block) })
	if err := b.Call(t.Context(), "tap", map[string]any{"slot": 1, "x": 1, "y": 1}, nil); err != nil {
		t.Error(err)
	}
}

func TestStatusOfEachRefusalIsAnError(t *testing.T) {
	for _, code := range []wire.Code{wire.BadRequest, wire.SlotBusy, wire.Internal, wire.PhoneLost, "never_seen"} {
		if s := status(code); s < http.StatusBadRequest {
			t.Errorf("%s: %d", code, s)
		}
	}
}
