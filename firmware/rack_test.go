package firmware_test

import (
	"archive/tar"
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/mcp/clienttest"
	"phonerack/agent/planner"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/control"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

func TestMain(m *testing.M) {
	clienttest.Main() // if a test has started this program as an MCP server
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most of them wait for a phone, not for a processor
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// A simPhone is a simulated phone that answers at a unix socket while it is plugged in.
type simPhone struct {
	*phonesim.Phone
	engine *screen.Engine
	device *android.Device
	path   string

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  chan struct{}
}

func newSimPhone(t testing.TB, path, serial string, version int, auth phonesim.Auth) *simPhone {
	t.Helper()
	return newSimPhoneWith(t, path, serial, version, auth, nil)
}

// newSimPhoneWith is one with other apps than the shipped ones.
func newSimPhoneWith(t testing.TB, path, serial string, version int, auth phonesim.Auth, apps fs.FS) *simPhone {
	t.Helper()
	engine, err := screen.New(screen.Config{Width: 360, Height: 800, Density: 160, Apps: apps})
	if err != nil {
		t.Fatal(err)
	}
	device, err := android.New(android.Config{Version: version, Serial: serial, Screen: engine})
	if err != nil {
		t.Fatal(err)
	}
	p := &simPhone{engine: engine, device: device, path: path}
	if p.Phone, err = phonesim.New(phonesim.Config{Android: version, Serial: serial, System: device, Auth: auth}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.unplug)
	return p
}

func (p *simPhone) plug(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	p.mu.Lock()
	p.cancel, p.ended = cancel, ended
	p.mu.Unlock()
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.ServeStream(ctx, conn)
		}
	}()
}

func (p *simPhone) unplug() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
		<-p.ended
		p.cancel = nil
	}
}

// A bench is a running rack with the client that a person would use.
type bench struct {
	*control.Client
	t       *testing.T
	phones  map[int]*simPhone
	config  *config.Config
	adb     adb.Options                    // zero unless a test is in a hurry
	clock   func() time.Duration           // of the leases, the board's own if nil
	room    int                            // bytes of the database, the usual if 0
	planner planner.Planner                // that of the configuration if nil
	log     *slog.Logger                   // the test's if nil
	level   *slog.LevelVar                 // of log; nil: it stays
	read    func() (*config.Config, error) // reads the configuration anew; nil: nobody does
	change  func(*firmware.Options)        // nil: they stay
	rack    *firmware.Rack
	cancel  context.CancelFunc
	ended   chan error
}

func newBench(t *testing.T, phones int) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "rack") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bench{t: t, phones: map[int]*simPhone{}}
	var text strings.Builder
	text.WriteString("[rack]\nid = \"bench\"\nstate = \"state\"\nruntime = \"run\"\n[usb]\nenabled = false\n")
	for n := 1; n <= phones; n++ {
		path := filepath.Join(dir, fmt.Sprintf("%d.sock", n))
		fmt.Fprintf(&text, "[[stream]]\nslot = %d\naddress = \"unix:%s\"\n", n, path)
		b.phones[n] = newSimPhone(t, path, fmt.Sprintf("SIM%04d", n), 14, phonesim.Auth{})
	}
	file := filepath.Join(dir, "rackd.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if b.config, err = config.Load(file); err != nil {
		t.Fatal(err)
	}
	b.Client = &control.Client{Socket: b.config.Control.Socket}
	return b
}

func (b *bench) start() {
	b.t.Helper()
	log := b.log
	if log == nil {
		log = logger(b.t)
	}
	o := firmware.Options{
		Config: b.config, Planner: b.planner, Logger: log, Level: b.level, ReadConfig: b.read,
		ADB: b.adb, Clock: b.clock, StoreSize: b.room,
	}
	if b.change != nil {
		b.change(&o)
	}
	b.run(o)
	b.t.Cleanup(func() { b.stop() })
}

// stop ends the rack and returns how long that took.
func (b *bench) stop() time.Duration {
	b.t.Helper()
	if b.cancel == nil {
		return 0
	}
	began := time.Now()
	b.cancel()
	b.cancel = nil
	select {
	case err := <-b.ended:
		if err != nil {
			b.t.Errorf("rack: %v", err)
		}
	case <-time.After(20 * time.Second):
		b.t.Error("the rack does not stop")
	}
	return time.Since(began)
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (b *bench) state(slot int) action.PhoneState {
	b.t.Helper()
	var phones action.Phones
	if err := b.Call(b.t.Context(), "phones", nil, &phones); err != nil {
		b.t.Fatal(err)
	}
	for _, p := range phones.Phones {
		if p.Slot == slot {
			return p
		}
	}
	b.t.Fatalf("no slot %d in %+v", slot, phones)
	return action.PhoneState{}
}

func (b *bench) await(slot int, want action.State) action.PhoneState {
	b.t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // seventeen phones at once on a loaded machine
	for {
		state := b.state(slot)
		if state.State == want {
			return state
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("slot %d is %s (%s), not %s", slot, state.State, state.Reason, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func slotArgs(slot int) action.SlotArgs { return action.SlotArgs{Slot: slot} }

func (b *bench) shell(slot int, cmd, stdin string) (stdout string, code int, err error) {
	var out, errOut strings.Builder
	var exit action.Exit
	err = b.Stream(b.t.Context(), "shell", action.ShellArgs{SlotArgs: slotArgs(slot), Command: cmd},
		action.Pipes{In: strings.NewReader(stdin), Out: &out, Err: &errOut}, &exit)
	return out.String(), exit.Code, err
}

func (b *bench) runTask(slot int, goal string) action.TaskStatus {
	b.t.Helper()
	var status action.TaskStatus
	if err := b.Call(b.t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(slot), Goal: goal}, &status); err != nil {
		b.t.Fatal(err)
	}
	return status
}

func (b *bench) watchTask(id string) (lines string, status action.TaskStatus) {
	b.t.Helper()
	var out strings.Builder
	if err := b.Stream(b.t.Context(), "task_watch", action.TaskArgs{ID: id}, action.Pipes{Out: &out}, &status); err != nil {
		b.t.Fatal(err)
	}
	return out.String(), status
}

func TestPhoneIsFoundUsedAndLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].plug(t)
	b.start()
	if state := b.await(1, action.Ready); state.Serial != "SIM0001" || state.Android != "14" {
		t.Errorf("state %+v", state)
	}
	if _, _, err := b.shell(2, "true", ""); !wire.Is(err, wire.SlotEmpty) {
		t.Errorf("empty slot: %v", err)
	}
	if out, code, err := b.shell(1, "echo hello; exit 7", ""); out != "hello\n" || code != 7 || err != nil {
		t.Errorf("shell: %q %d %v", out, code, err)
	}
	if out, code, err := b.shell(1, "cat", "through and back"); out != "through and back" || code != 0 || err != nil {
		t.Errorf("cat: %q %d %v", out, code, err)
	}

	b.phones[2].plug(t)
	b.await(2, action.Ready)
	b.phones[1].unplug()
	b.await(1, action.Empty)
	if out, _, err := b.shell(2, "echo still here", ""); out != "still here\n" || err != nil {
		t.Errorf("the other slot: %q %v", out, err)
	}
	b.phones[1].plug(t)
	b.await(1, action.Ready)
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestFilesAndScreen(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)

	content := strings.Repeat("0123456789abcdef", 20<<16) // 20 MiB
	var sent, got action.Transfer
	if err := b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: "/sdcard/Download/film.mp4"},
		action.Pipes{In: strings.NewReader(content)}, &sent); err != nil || sent.Bytes != int64(len(content)) {
		t.Fatalf("push: %+v %v", sent, err)
	}
	var back strings.Builder
	if err := b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(1), Path: "/sdcard/Download/film.mp4"},
		action.Pipes{Out: &back}, &got); err != nil || back.String() != content {
		t.Fatalf("pull: %d bytes, %v", back.Len(), err)
	}
	err := b.Stream(t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(1), Path: "/sdcard/none"}, action.Pipes{}, nil)
	if !wire.Is(err, wire.FileMissing) || !strings.Contains(err.Error(), "/sdcard/none") {
		t.Errorf("absent file: %v", err)
	}
	err = b.Stream(t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(1), Path: "/system/x"}, action.Pipes{In: strings.NewReader("x")}, nil)
	if !wire.Is(err, wire.FileDenied) || !strings.Contains(err.Error(), "/system/x") {
		t.Errorf("read-only folder: %v", err)
	}

	if err := b.Call(t.Context(), "launch_app", action.AppArgs{SlotArgs: slotArgs(1), App: "com.phonerack.shop"}, nil); err != nil {
		t.Fatal(err)
	}
	var o action.Observation
	if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1), Image: true}, &o); err != nil {
		t.Fatal(err)
	}
	if o.Package != "com.phonerack.shop" || !strings.Contains(o.Screen, "[0] ") || len(o.Image) < 1000 {
		t.Errorf("observation of %s, %d bytes of picture:\n%s", o.Package, len(o.Image), o.Screen)
	}
	var marked action.Observation
	if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1), Marks: true}, &marked); err != nil {
		t.Fatal(err)
	}
	plain, _ := screenshot(t, o.Image)
	drawn, reddest := screenshot(t, marked.Image)
	if plain != drawn || reddest < 100 {
		t.Errorf("the marks are not on the picture: %v of %v, the reddest pixel is %d", drawn, plain, reddest)
	}
	var lined action.Observation
	if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1), Grid: true}, &lined); err != nil {
		t.Fatal(err)
	}
	if black := blackInColumn(t, lined.Image, plain.X/10); black < plain.Y/4 {
		t.Errorf("the grid is not on the picture: %d of %d pixels are black where the columns A and B meet", black, plain.Y)
	}
	if black := blackInColumn(t, o.Image, plain.X/10); black >= plain.Y/4 {
		t.Errorf("a grid is on the plain picture: %d of %d pixels are black", black, plain.Y)
	}
	o = lined
	stale := action.TapArgs{SlotArgs: slotArgs(1), Element: new(int), Generation: o.Generation + 1}
	if err := b.Call(t.Context(), "tap", stale, nil); !wire.Is(err, wire.StaleElement) {
		t.Errorf("stale element: %v", err)
	}
	if err := b.Call(t.Context(), "launch_app", action.AppArgs{SlotArgs: slotArgs(1), App: "com.example.none"}, nil); !wire.Is(err, wire.AppMissing) {
		t.Errorf("absent app: %v", err)
	}
	far := map[string]any{"slot": 1, "x": 5000, "y": 5000}
	if err := b.Call(t.Context(), "tap", far, nil); !wire.Is(err, wire.BadRequest) {
		t.Errorf("off the screen: %v", err)
	}
}

// screenshot decodes a picture and tells its size, and by how much its reddest pixel is redder than green and blue.
func screenshot(t *testing.T, b []byte) (size image.Point, reddest int) {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			reddest = max(reddest, int(r>>8)-int(max(g, b)>>8))
		}
	}
	return img.Bounds().Size(), reddest
}

// blackInColumn counts the dark pixels of a picture from top to bottom.
func blackInColumn(t *testing.T, b []byte, x int) (black int) {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for y := range img.Bounds().Dy() {
		if c := color.GrayModel.Convert(img.At(x, y)).(color.Gray); c.Y < 0x40 {
			black++
		}
	}
	return black
}

const shopGoal = "search the shop for a kettle and put it in the basket"

func TestTaskSucceedsAndIsRemembered(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	started := b.runTask(1, shopGoal)
	if started.State != action.Running || started.Serial != "SIM0001" {
		t.Errorf("started %+v", started)
	}
	lines, status := b.watchTask(started.ID)
	if status.State != action.Succeeded || !status.Wrote || status.Steps < 3 {
		t.Fatalf("ended %+v", status)
	}
	popups := strings.Count(lines, `"kind":"popup"`) // steps, but no turns of the planner
	if n := strings.Count(lines, "\n"); n != status.Steps+popups+1 {
		t.Errorf("%d lines for %d steps", n, status.Steps)
	}
	if journal := strings.Join(b.phones[1].engine.Journal(), "\n"); !strings.Contains(strings.ToLower(journal), "kettle") {
		t.Errorf("the shop knows nothing of a kettle:\n%s", journal)
	}
	if again, _ := b.watchTask(started.ID); strings.Count(again, "\n") != status.Steps+popups+1 {
		t.Errorf("the trajectory replays as\n%s", again)
	}

	var archive strings.Builder
	if err := b.Stream(t.Context(), "task_files", action.TaskArgs{ID: started.ID}, action.Pipes{Out: &archive}, nil); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for r := tar.NewReader(strings.NewReader(archive.String())); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
	}
	for _, want := range []string{"steps.jsonl", "001.jpg", "index.html"} {
		if !names[want] {
			t.Errorf("no %s in the trajectory: %v", want, names)
		}
	}

	b.stop()
	b.start()
	var list action.TaskList
	if err := b.Call(t.Context(), "task_list", nil, &list); err != nil || len(list.Tasks) != 1 || list.Tasks[0].State != action.Succeeded {
		t.Errorf("after a restart: %+v, %v", list, err)
	}
}

func TestFourTasksAtOnceAndAPhoneThatGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, 4)
	for _, p := range b.phones {
		p.plug(t)
	}
	b.start()
	ids := map[int]string{}
	for n := range b.phones {
		b.await(n, action.Ready)
	}
	for n := range b.phones {
		ids[n] = b.runTask(n, shopGoal).ID
	}
	for { // until the phone of slot 3 is in the middle of its task
		var status action.TaskStatus
		if err := b.Call(t.Context(), "task_status", action.TaskArgs{ID: ids[3]}, &status); err != nil {
			t.Fatal(err)
		}
		if status.Steps >= 2 || status.State != action.Running {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.phones[3].unplug()
	for n, id := range ids {
		_, status := b.watchTask(id)
		if n != 3 {
			if status.State != action.Succeeded {
				t.Errorf("slot %d: %+v", n, status)
			}
			continue
		}
		if status.State != action.TaskError || status.Refusal == nil || status.Refusal.Code != wire.PhoneLost {
			t.Fatalf("slot 3: %+v", status)
		}
		if !strings.Contains(status.Message, "slot 3") || status.Refusal.Args["serial"] != "SIM0003" {
			t.Errorf("slot 3: %q %v", status.Message, status.Refusal.Args)
		}
	}
	b.phones[3].plug(t)
	b.await(3, action.Ready)
	if _, _, err := b.shell(3, "true", ""); err != nil {
		t.Errorf("slot 3 after its phone is back: %v", err)
	}
}

func TestTaskHoldsItsSlotAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	task := b.runTask(1, shopGoal)
	_, _, err := b.shell(1, "true", "")
	if !wire.Is(err, wire.SlotBusy) || !strings.Contains(err.Error(), "task "+task.ID) {
		t.Errorf("shell during the task: %v", err)
	}
	if err := b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: shopGoal}, nil); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("second task: %v", err)
	}
	var status action.TaskStatus
	if err := b.Call(t.Context(), "task_cancel", action.TaskArgs{ID: task.ID}, &status); err != nil {
		t.Fatal(err)
	}
	if status.State != action.Cancelled || status.Refusal == nil || status.Refusal.Code != wire.TaskCancelled {
		t.Errorf("cancelled: %+v", status)
	}
	if _, _, err := b.shell(1, "true", ""); err != nil {
		t.Errorf("shell after the task: %v", err)
	}
}

func TestStopInTheMiddleOfATask(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(1, action.Ready)
	b.await(2, action.Ready)
	task := b.runTask(1, shopGoal)
	done := make(chan error, 1)
	go func() {
		_, _, err := b.shell(2, "sleep 60", "")
		done <- err
	}()
	time.Sleep(300 * time.Millisecond)
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if err := <-done; err == nil {
		t.Error("the command outlived the rack")
	}
	b.start()
	var status action.TaskStatus
	if err := b.Call(t.Context(), "task_status", action.TaskArgs{ID: task.ID}, &status); err != nil || status.State != action.TaskLost {
		t.Errorf("after a restart: %+v, %v", status, err)
	}
}

func TestPhoneThatNobodyAccepted(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].unplug()
	b.phones[1] = newSimPhone(t, b.phones[1].path, "SIM0001", 14, phonesim.Auth{Required: true})
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(1, action.Unauthorized)
	if _, _, err := b.shell(1, "true", ""); !wire.Is(err, wire.PhoneUnauthorized) {
		t.Errorf("shell: %v", err)
	}
	b.await(2, action.Ready)
	if !b.phones[1].AcceptPrompt(true) {
		t.Fatal("no prompt")
	}
	b.await(1, action.Ready)
}

func TestSilentPhoneDelaysNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].SetFaults(phonesim.Faults{Hang: true})
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(2, action.Ready)
	if _, _, err := b.shell(1, "true", ""); !wire.Is(err, wire.PhoneOffline) {
		t.Errorf("silent phone: %v", err)
	}
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
