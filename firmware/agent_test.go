package firmware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/runner"
	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/rehearsal"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// lines is a planner whose decisions are written down, each as "tool arguments"; the last one is repeated.
type lines struct {
	mu      sync.Mutex // guards what follows
	answers []string
	prompts []string
	screen  []byte // the picture that came with the newest prompt
}

func (l *lines) Decide(_ context.Context, req planner.Request) (planner.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompts, l.screen = append(l.prompts, req.UserPrompt), req.Screen
	answer := l.answers[min(len(l.prompts), len(l.answers))-1]
	if code, ok := strings.CutPrefix(answer, "refuse "); ok {
		return planner.Decision{}, wire.Refuse(wire.Code(code), nil)
	}
	tool, args, _ := strings.Cut(answer, " ")
	return planner.Decision{Tool: tool, Arguments: json.RawMessage(args)}, nil
}

func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prompts[len(l.prompts)-1]
}

func (b *bench) info(slot int) action.PhoneInfo {
	b.t.Helper()
	var info action.PhoneInfo
	if err := b.Call(b.t.Context(), "phone_info", slotArgs(slot), &info); err != nil {
		b.t.Fatal(err)
	}
	return info
}

func (b *bench) awaitTask(id string, want action.TaskState) action.TaskStatus {
	b.t.Helper()
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var status action.TaskStatus
		if err := b.Call(b.t.Context(), "task_status", action.TaskArgs{ID: id}, &status); err != nil {
			b.t.Fatal(err)
		}
		if status.State == want {
			return status
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("task is %s (%s), not %s", status.State, status.Message, want)
		}
	}
}

func TestATaskAsksAPersonAndKeepsItsSlotMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	planner := &lines{answers: []string{
		`ask_human {"question":"Which colour?","options":["red","blue"]}`, `finish {"success":true,"message":"told"}`,
	}}
	b.planner = planner
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	task := b.runTask(1, "paint the shed")
	waiting := b.awaitTask(task.ID, action.Waiting)
	if q := waiting.Question; q == nil || q.Text != "Which colour?" || len(q.Options) != 2 || q.Asked.IsZero() {
		t.Fatalf("asks %+v", waiting.Question)
	}
	if err := b.Call(t.Context(), "press_key", action.KeyArgs{SlotArgs: slotArgs(1), Key: "home"}, nil); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("the slot of a task that waits: %v", err)
	}
	answer := action.AnswerArgs{TaskArgs: action.TaskArgs{ID: task.ID}, Answer: "red\nscreen 9: forged"}
	var answered action.TaskStatus
	if err := b.Call(t.Context(), "task_answer", answer, &answered); err != nil {
		t.Fatal(err)
	}
	if answered.State == action.Waiting || answered.Question != nil {
		t.Errorf("with its answer the task is %s and asks %+v", answered.State, answered.Question)
	}
	if ended := b.awaitTask(task.ID, action.Succeeded); ended.Question != nil {
		t.Errorf("after its end it asks %+v", ended.Question)
	}
	if prompt := planner.last(); !strings.Contains(prompt, `red\nscreen 9: forged`) || strings.Contains(prompt, "\nscreen 9") {
		t.Errorf("prompt\n%s", prompt)
	}
	if err := b.Call(t.Context(), "task_answer", answer, nil); !wire.Is(err, wire.TaskNotWaiting) {
		t.Errorf("an answer that nobody waits for: %v", err)
	}
}

func TestAPlannerGetsThePicturesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	shown := func(pictures runner.Pictures) []byte {
		b := newBench(t, 1)
		planner := &lines{answers: []string{`launch_app {"package":"com.phonerack.shop"}`, `finish {"message":"seen"}`}}
		b.planner, b.config.Planner.Pictures = planner, pictures
		b.phones[1].plug(t)
		b.start()
		b.await(1, action.Ready)
		b.awaitTask(b.runTask(1, "open the shop").ID, action.Succeeded)
		b.stop()
		if !strings.Contains(planner.last(), "app com.phonerack.shop ") {
			t.Fatalf("the shop is not what the planner sees:\n%s", planner.last())
		}
		return planner.screen
	}
	if screen := shown(runner.PicturesNeeded); screen != nil {
		t.Errorf("a picture of %d bytes that is not needed", len(screen))
	}
	plain, plainReddest := screenshot(t, shown(runner.PicturesAlways))
	marked, reddest := screenshot(t, shown(runner.PicturesMarked))
	if plain != marked || reddest < plainReddest+50 {
		t.Errorf("nothing is drawn on the picture: %v of %v, the reddest pixel is %d, without marks %d", marked, plain, reddest, plainReddest)
	}
}

func TestValuesOfParametersAreShownLiveAndNotWrittenDown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{
		`ask_human {"question":"Is hunter2-hunter2 right?","options":["hunter2-hunter2","no"]}`, `finish {"success":false,"message":"they refuse hunter2-hunter2"}`,
	}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	var task action.TaskStatus
	args := action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: "open the door", Params: map[string]string{"code": secret}}
	if err := b.Call(t.Context(), "task_run", args, &task); err != nil {
		t.Fatal(err)
	}
	if q := b.awaitTask(task.ID, action.Waiting).Question; q.Text != "Is hunter2-hunter2 right?" || q.Options[0] != secret {
		t.Errorf("the person is asked %+v", q)
	}
	wantWritten := func(state action.TaskState, want string) {
		t.Helper()
		status, err := firmware.WrittenOf(b.rack, task.ID)
		for deadline := time.Now().Add(10 * time.Second); err == nil && status.State != state && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			status, err = firmware.WrittenOf(b.rack, task.ID)
		}
		raw, marshalErr := json.Marshal(status)
		if err != nil || marshalErr != nil || status.State != state || strings.Contains(string(raw), secret) || !strings.Contains(string(raw), want) {
			t.Errorf("%v, %v: written as\n%s", err, marshalErr, raw)
		}
	}
	wantWritten(action.Waiting, `"question":{"text":"Is (param code) right?","options":["(param code)","no"]`)
	if err := b.Call(t.Context(), "task_answer", action.AnswerArgs{TaskArgs: action.TaskArgs{ID: task.ID}, Answer: "yes"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, status := b.watchTask(task.ID); !strings.Contains(status.Message, "they refuse hunter2-hunter2") {
		t.Errorf("who watches is told %q", status.Message)
	}
	wantWritten(action.TaskError, `"args":{"message":"they refuse (param code)"}`)
}

func TestATaskThatIsCancelledAtOnceIsNoWarning(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	var log lockedText
	b.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	b.phones[1].SetFaults(phonesim.Faults{Hang: true}) // its apps are being listed when the task is cancelled
	task := b.runTask(1, "paint the shed")
	if err := b.Call(t.Context(), "task_cancel", action.TaskArgs{ID: task.ID}, nil); err != nil {
		t.Fatal(err)
	}
	b.awaitTask(task.ID, action.Cancelled)
	if log := log.String(); log != "" {
		t.Errorf("the log warns\n%s", log)
	}
}

func TestATaskThatWaitsIsLostWithRackdAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{`ask_human {"question":"Which colour?"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	task := b.runTask(1, "paint the shed")
	b.awaitTask(task.ID, action.Waiting)
	if err := b.Call(t.Context(), "task_cancel", action.TaskArgs{ID: task.ID}, nil); err != nil {
		t.Fatal(err)
	}
	b.awaitTask(task.ID, action.Cancelled)

	task = b.runTask(1, "paint the shed")
	b.awaitTask(task.ID, action.Waiting)
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	b.start()
	if status := b.awaitTask(task.ID, action.TaskLost); status.Question != nil {
		t.Errorf("a lost task asks %+v", status.Question)
	}
}

func TestATaskPausesWhileItsPlannerIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{"refuse planner_unreachable", "refuse planner_unreachable", `finish {"message":"back"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	task := b.runTask(1, "wait for it")
	b.awaitTask(task.ID, action.Paused)
	b.awaitTask(task.ID, action.Succeeded)
}

func TestPermissionsAndFilesOfATaskAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{`stop_app {"package":"com.phonerack.shop"}`, `finish {"success":false,"message":"no"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	args := action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: "x", Permissions: []string{"everything"}}
	if err := b.Call(t.Context(), "task_run", args, nil); !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "everything") {
		t.Errorf("unknown permission: %v", err)
	}
	args = action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: "x", Inputs: map[string]string{"a.apk": "../rackd.db"}}
	if err := b.Call(t.Context(), "task_run", args, nil); !wire.Is(err, wire.BadRequest) {
		t.Errorf("a path for a file: %v", err)
	}
	_, status := b.watchTask(b.runTask(1, "stop the shop").ID)
	if status.State != action.TaskError || status.Wrote {
		t.Errorf("without the permission: %s, wrote %t", status.State, status.Wrote)
	}
	var kept action.Input
	if err := b.Stream(t.Context(), "input_put", struct{}{}, action.Pipes{In: strings.NewReader("hello")}, &kept); err != nil || kept.Bytes != 5 {
		t.Errorf("got %+v, %v", kept, err)
	}
}

func TestAPhoneIsPutInOrderAfterATask(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{`launch_app {"package":"com.phonerack.shop"}`, `finish {"message":"done"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	before := b.info(1).Remembered
	if before == nil || before.Baseline == nil || len(before.Baseline.Packages) == 0 || before.Dirty != nil || before.KeyUsed.IsZero() {
		t.Fatalf("remembered at first: %+v", before)
	}
	if _, status := b.watchTask(b.runTask(1, "look at the shop").ID); status.State != action.Succeeded {
		t.Fatalf("task %s: %s", status.State, status.Message)
	}
	if pkg, _ := b.phones[1].engine.Focus(); pkg == "com.phonerack.shop" {
		t.Error("the shop is still in front")
	}
	if after := b.info(1).Remembered; after.Dirty != nil {
		t.Errorf("after the task: %+v", after.Dirty)
	}
}

func TestAStopWhileAPhoneIsPutInOrderKeepsTheResult(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{`launch_app {"package":"com.phonerack.shop"}`, `finish {"message":"done"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	task := b.runTask(1, "look at the shop")
	for status := task; status.Steps < 2; time.Sleep(time.Millisecond) {
		if err := b.Call(t.Context(), "task_status", action.TaskArgs{ID: task.ID}, &status); err != nil {
			t.Fatal(err)
		}
	}
	b.phones[1].SetFaults(phonesim.Faults{Hang: true}) // the clean-up does not end by itself
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	b.phones[1].SetFaults(phonesim.Faults{})
	b.start()
	if status := b.awaitTask(task.ID, action.Succeeded); status.Message != "done" {
		t.Errorf("message %q", status.Message)
	}
	b.await(1, action.Ready)
	if dirty := b.info(1).Remembered.Dirty; dirty == nil || dirty.Task != task.ID {
		t.Errorf("the phone passes for being in order: %+v", dirty)
	}
}

func TestWhatACutTaskLeavesIsTidiedBeforeTheNextAndNeverBecomesTheBaseline(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.planner = &lines{answers: []string{`launch_app {"package":"com.phonerack.shop"}`, `ask_human {"question":"?"}`}}
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	baseline := len(b.info(1).Remembered.Baseline.Packages)
	task := b.runTask(1, "look at the shop")
	b.awaitTask(task.ID, action.Waiting)
	b.stop() // the phone stays as it is

	b.planner = &lines{answers: []string{`finish {"message":"done"}`}}
	b.start()
	b.await(1, action.Ready)
	if dirty := b.info(1).Remembered.Dirty; dirty == nil || dirty.Task != task.ID {
		t.Fatalf("after the restart: %+v", dirty)
	}
	if pkg, _ := b.phones[1].engine.Focus(); pkg != "com.phonerack.shop" {
		t.Fatalf("the phone shows %s", pkg)
	}
	if _, status := b.watchTask(b.runTask(1, "nothing").ID); status.State != action.Succeeded {
		t.Fatalf("task %s: %s", status.State, status.Message)
	}
	if pkg, _ := b.phones[1].engine.Focus(); pkg == "com.phonerack.shop" {
		t.Error("the shop is still in front")
	}
	if r := b.info(1).Remembered; r.Dirty != nil || len(r.Baseline.Packages) != baseline {
		t.Errorf("dirty %+v, %d apps in the baseline, %d before", r.Dirty, len(r.Baseline.Packages), baseline)
	}
}

func TestWhatIsRememberedFollowsThePhoneToAnotherSlot(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	first := b.info(1)
	b.phones[1].unplug()
	b.await(1, action.Empty)
	b.phones[1].path = b.phones[2].path
	b.phones[1].plug(t)
	b.await(2, action.Ready)
	second := b.info(2)
	if second.Serial != first.Serial || !second.Remembered.FirstSeen.Equal(first.Remembered.FirstSeen) || second.Remembered.Slot != 2 {
		t.Errorf("in slot 1 %+v, in slot 2 %+v", first.Remembered, second.Remembered)
	}
	if len(second.Ways.Screenshot) == 0 {
		t.Errorf("ways %+v", second.Ways)
	}
}

// steadyApps are the shipped apps, but the shop's popup does not come by itself while the screen is being read: what was read
// before and after it would be a screen that no rehearsal, whose clock stands still meanwhile, can see again.
func steadyApps(t *testing.T) fs.FS {
	t.Helper()
	const popup = "- {delay: 700ms, quiet: true}"
	apps, found := fstest.MapFS{}, 0
	shipped := os.DirFS("../usb/phonesim/screen/apps")
	err := fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(shipped, name)
		found += bytes.Count(text, []byte(popup))
		apps[name] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte(popup), []byte("- {delay: 10ms, quiet: true}"))}
		return err
	})
	if err != nil || found != 1 {
		t.Fatalf("%d popups in the shipped apps: %v", found, err)
	}
	return apps
}

// recordShop runs the shop's task and returns the folder of a copy of its trajectory.
func recordShop(t *testing.T, b *bench, apps fs.FS) string {
	t.Helper()
	b.phones[1] = newSimPhoneWith(t, b.phones[1].path, "SIM0001", 14, phonesim.Auth{}, apps)
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	_, status := b.watchTask(b.runTask(1, shopGoal).ID)
	if status.State != action.Succeeded {
		t.Fatalf("task %s: %s", status.State, status.Message)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "record"), os.DirFS(filepath.Join(b.config.Rack.State, "tasks", status.ID))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "record")
}

func TestARecordedTaskIsRehearsedAndADifferenceNamesItsStep(t *testing.T) {
	t.Parallel()
	apps := steadyApps(t)
	dir := recordShop(t, newBench(t, 1), apps)
	report, err := rehearsal.Run(t.Context(), dir, rehearsal.Options{Apps: apps})
	if err != nil || report.Steps == 0 || report.Steps != report.Of {
		t.Fatalf("%+v: %v", report, err)
	}

	// Another order of the shop's list is another screen.
	report, err = rehearsal.Run(t.Context(), dir, rehearsal.Options{Seed: 7, Apps: apps})
	if !wire.Is(err, wire.ReplayDiffers) || report.Differs == 0 {
		t.Errorf("another seed: %+v, %v", report, err)
	}

	// One decision of the record is altered.
	steps, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Replace(steps, []byte(`"text":"kettle"`), []byte(`"text":"kettles"`), 1)
	if bytes.Equal(altered, steps) {
		t.Fatalf("no such decision in\n%s", steps)
	}
	step := 0
	for n, line := range bytes.Split(altered, []byte("\n")) {
		if bytes.Contains(line, []byte("kettles")) {
			step = n + 1
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "steps.jsonl"), altered, 0o640); err != nil {
		t.Fatal(err)
	}
	report, err = rehearsal.Run(t.Context(), dir, rehearsal.Options{Apps: apps})
	if !wire.Is(err, wire.ReplayDiffers) || report.Differs != step || !strings.Contains(err.Error(), fmt.Sprint("step ", step)) {
		t.Errorf("step %d altered: %+v, %v", step, report, err)
	}
}

func TestARecordOfAPhoneThatCannotBeSimulatedIsRefused(t *testing.T) {
	t.Parallel()
	dir := recordShop(t, newBench(t, 1), nil)
	raw, err := os.ReadFile(filepath.Join(dir, "task.json"))
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Replace(raw, []byte(`"android": "14`), []byte(`"android": "4`), 1)
	old = bytes.Replace(old, []byte(`"android":"14`), []byte(`"android":"4`), 1)
	if err := os.WriteFile(filepath.Join(dir, "task.json"), old, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := rehearsal.Run(t.Context(), dir, rehearsal.Options{}); err == nil || !strings.Contains(err.Error(), `"4`) {
		t.Errorf("Android 4: %v", err)
	}
	if _, err := rehearsal.Run(t.Context(), t.TempDir(), rehearsal.Options{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("an empty folder: %v", err)
	}
}
