package firmware_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
)

// healthy is the slot of the phone that nothing is wrong with in every test of faults.
const healthy = 1

// on is the bench for a subtest.
func (b *bench) on(t *testing.T) *bench {
	sub := *b
	sub.t = t
	return &sub
}

// exercise uses the healthy phone until the returned function is called, which fails the test if that went wrong or
// ever took long.
func (b *bench) exercise() (stop func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	var worst time.Duration
	uses := 0
	var failure error
	go func() {
		defer close(ended)
		for failure == nil {
			began := time.Now()
			out, _, err := b.shell(healthy, "echo still here", "")
			if err == nil && out != "still here\n" {
				err = fmt.Errorf("the shell said %q", out)
			}
			if err == nil && uses%8 == 0 {
				err = b.observe(healthy, false)
			}
			worst, failure = max(worst, time.Since(began)), err
			uses++
			select {
			case <-ending:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(ending)
		<-ended
		if failure != nil || worst > 15*time.Second {
			b.t.Errorf("the healthy phone: %v after %d uses, the longest of %s", failure, uses, worst)
		}
	}
}

func (b *bench) observe(slot int, image bool) error {
	_, err := b.look(slot, image)
	return err
}

func (b *bench) look(slot int, image bool) (o action.Observation, err error) {
	err = b.Call(b.t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(slot), Image: image}, &o)
	return o, err
}

func (b *bench) echo(slot int) error {
	out, _, err := b.shell(slot, "echo x", "")
	if err == nil && out != "x\n" {
		err = fmt.Errorf("the shell said %q", out)
	}
	return err
}

func (b *bench) push(slot, size int) error {
	return b.Stream(b.t.Context(), "push", action.PushArgs{SlotArgs: slotArgs(slot), Path: "/sdcard/Download/film.mp4"},
		action.Pipes{In: strings.NewReader(strings.Repeat("x", size))}, nil)
}

func (b *bench) pull(slot int) error {
	return b.Stream(b.t.Context(), "pull", action.PullArgs{SlotArgs: slotArgs(slot), Path: "/sdcard/Download/film.mp4"}, action.Pipes{}, nil)
}

// wantRefusal holds an error to what every refusal about a phone owes to a technician.
func (b *bench) wantRefusal(slot int, err error, codes ...wire.Code) {
	b.t.Helper()
	refusal, ok := errors.AsType[*wire.Refusal](err)
	if !ok || !slices.Contains(codes, refusal.Code) {
		b.t.Fatalf("got %v, want one of %v", err, codes)
	}
	for _, part := range []string{fmt.Sprintf("slot %d (%s)", slot, serialOf(slot)), "; "} {
		if !strings.Contains(refusal.Error(), part) {
			b.t.Errorf("%q lacks %q", refusal, part)
		}
	}
}

func serialOf(slot int) string { return fmt.Sprintf("SIM%04d", slot) }

// linkFault is something wrong with the cable or the phone's daemon.
type linkFault struct {
	name    string
	android int // 14 if 0
	faults  phonesim.Faults
	state   action.State                   // that the slot enters when the fault meets the handshake; "": it meets a use
	before  func(b *bench, slot int) error // may be nil
	use     func(b *bench, slot int) error // echo if nil
	codes   []wire.Code                    // none: it works all the same
	within  time.Duration                  // until the error; 0 is not measured
}

// gone are the answers to who uses a phone at the moment when its connection ends.
var gone = []wire.Code{wire.PhoneLost, wire.PhoneOffline}

var linkFaults = []linkFault{
	{name: "garbage frame", faults: phonesim.Faults{Corrupt: phonesim.Garbage}, codes: gone, within: 2 * time.Second},
	{name: "wrong magic", faults: phonesim.Faults{Corrupt: phonesim.WrongMagic, CorruptAfter: 2}, codes: gone, within: 2 * time.Second},
	{name: "oversize length", faults: phonesim.Faults{Corrupt: phonesim.Oversize}, codes: gone, within: 2 * time.Second},
	{name: "garbage handshake", faults: phonesim.Faults{Corrupt: phonesim.Garbage}, state: action.Failed, codes: []wire.Code{wire.PhoneOffline}},
	{name: "oversize handshake", faults: phonesim.Faults{Corrupt: phonesim.Oversize}, state: action.Failed, codes: []wire.Code{wire.PhoneOffline}},
	{name: "missing OKAY", android: 11, faults: phonesim.Faults{DropOKAY: true}, use: pushFilm, codes: gone},
	{name: "late OKAY", android: 11, faults: phonesim.Faults{DelayOKAY: 20 * time.Millisecond}, use: pushFilm},
	{name: "hang in use", faults: phonesim.Faults{Hang: true}, codes: []wire.Code{wire.PhoneOffline}},
	{name: "hang in observation", faults: phonesim.Faults{Hang: true}, use: lookOnly, codes: []wire.Code{wire.ObservationFailed, wire.PhoneOffline}},
	{name: "hang in handshake", faults: phonesim.Faults{Hang: true}, state: action.Failed, codes: []wire.Code{wire.PhoneOffline}},
	{name: "unplug in push", faults: phonesim.Faults{UnplugAfterOut: filmSize / 4}, use: pushFilm, codes: gone, within: 2 * time.Second},
	{name: "unplug in pull", faults: phonesim.Faults{UnplugAfterIn: filmSize / 4}, before: pushFilm, use: (*bench).pull, codes: gone, within: 2 * time.Second},
	{name: "broken transfer", faults: phonesim.Faults{FailOut: phonesim.IOError, FailCount: 1}, codes: gone, within: 2 * time.Second},
	{name: "stale frames", faults: phonesim.Faults{StaleFrames: 6}, state: action.Ready},
	{name: "never authorised", faults: phonesim.Faults{Unauthorized: true}, state: action.Unauthorized, codes: []wire.Code{wire.PhoneUnauthorized}},
	{name: "far away", faults: phonesim.Faults{Latency: 20 * time.Millisecond, BytesPerSecond: 1 << 20}, use: lookOnly},
}

// filmSize is a file that takes a while, in bytes.
const filmSize = 1 << 20

func pushFilm(b *bench, slot int) error { return b.push(slot, filmSize) }
func lookOnly(b *bench, slot int) error { return b.observe(slot, false) }

func TestFaultsOfTheLinkStayInTheirSlot(t *testing.T) {
	// Not beside other tests: it is about times. Its phones are.
	b := newBench(t, healthy+len(linkFaults))
	b.adb = adb.Options{HandshakeTimeout: 4 * time.Second, OpenTimeout: 4 * time.Second, IdleTimeout: 5 * time.Second}
	for i, f := range linkFaults {
		if slot := healthy + 1 + i; f.android != 0 {
			b.phones[slot] = newSimPhone(t, b.phones[slot].path, serialOf(slot), f.android, phonesim.Auth{})
		}
	}
	for _, p := range b.phones {
		p.plug(t)
	}
	b.start()
	b.await(healthy, action.Ready)
	stop := b.exercise()
	var meetings sync.WaitGroup // not parallel tests, which are as many as the machine has cores
	for i, f := range linkFaults {
		meetings.Go(func() {
			t.Run(f.name, func(t *testing.T) { f.meet(b.on(t), healthy+1+i) })
		})
	}
	meetings.Wait()
	stop()
}

func (f linkFault) meet(b *bench, slot int) {
	b.await(slot, action.Ready)
	if f.before != nil {
		if err := f.before(b, slot); err != nil {
			b.t.Fatal(err)
		}
	}
	phone := b.phones[slot]
	if f.state != "" {
		phone.Unplug()
		b.awaitChange(slot)
	}
	phone.SetFaults(f.faults)
	if f.state != "" {
		if state := b.await(slot, f.state); f.state == action.Failed && (state.Reason == "" || state.Serial != serialOf(slot)) {
			b.t.Errorf("state %+v", state)
		}
	}
	use := f.use
	if use == nil {
		use = (*bench).echo
	}
	began := time.Now()
	err := use(b, slot)
	took := time.Since(began)
	if f.codes == nil && err != nil {
		b.t.Fatalf("it should work: %v", err)
	}
	if f.codes != nil {
		b.wantRefusal(slot, err, f.codes...)
		b.t.Logf("%s: %v", took.Round(time.Millisecond), err)
	}
	if f.within > 0 && took > f.within {
		b.t.Errorf("the error took %s", took)
	}
	phone.SetFaults(phonesim.Faults{})
	if f.state == action.Unauthorized {
		phone.Unplug() // the person pulls the cable and plugs it in again
	}
	b.works(slot)
}

// awaitChange waits until a slot has left the state ready.
func (b *bench) awaitChange(slot int) {
	b.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); b.state(slot).State == action.Ready; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("slot %d stays ready", slot)
		}
	}
}

// works holds a slot to working again once its fault is gone.
func (b *bench) works(slot int) {
	b.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := b.echo(slot)
		if err == nil {
			err = b.observe(slot, false)
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("slot %d after the fault: %v", slot, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// systemFault is something wrong with the Android of a phone.
type systemFault struct {
	name   string
	faults android.Faults
	use    func(b *bench, slot int) error // lookOnly if nil
	codes  []wire.Code                    // none: it works all the same
}

var unreadable = []wire.Code{wire.ObservationFailed}

var systemFaults = []systemFault{
	{name: "null root", faults: android.Faults{Dump: android.DumpNullRoot}, codes: unreadable},
	{name: "silent dump", faults: android.Faults{Dump: android.DumpSilent}, codes: unreadable},
	{name: "dump cut off", faults: android.Faults{Dump: android.DumpCutOff}, codes: unreadable},
	{name: "dump without idle", faults: android.Faults{Dump: android.DumpNoIdle}, codes: unreadable},
	{name: "dump that often fails", faults: android.Faults{Dump: android.DumpSilent, DumpRate: 0.5}},
	{name: "never idle", faults: android.Faults{NeverIdle: true}},
	{name: "slow tree", faults: android.Faults{SlowTree: time.Second}},
	{name: "truncated screenshot", faults: android.Faults{Truncate: 5000}, use: noPicture},
	{name: "black screenshot", faults: android.Faults{Black: true}, use: noPicture},
	{name: "display warning", faults: android.Faults{DisplayWarning: true}, use: picture},
	{name: "input denied", faults: android.Faults{InjectDenied: true}, use: tapMiddle, codes: []wire.Code{wire.PhoneSetup}},
	{name: "dropped letters", faults: android.Faults{DropText: 0.6}, use: typeKettle, codes: []wire.Code{wire.TextDiffers}},
	{name: "swapped letters", faults: android.Faults{SwapText: 0.8}, use: typeKettle, codes: []wire.Code{wire.TextDiffers}},
	{name: "storage full", faults: android.Faults{StorageFull: true}, use: pushFilm, codes: []wire.Code{wire.StorageFull}},
	{name: "null focus", faults: android.Faults{NullFocus: true}},
	{name: "two displays", faults: android.Faults{ExtraFocus: true}},
	{name: "lying clipboard", faults: android.Faults{ClipboardLie: true}, use: typeCJK, codes: []wire.Code{wire.CannotType}},
}

func noPicture(b *bench, slot int) error {
	o, err := b.look(slot, true)
	if err == nil && (len(o.Image) > 0 || !slices.Contains(o.Missing, "image") || !strings.Contains(o.Screen, "[0]")) {
		err = fmt.Errorf("%d bytes of picture, missing %v, elements\n%s", len(o.Image), o.Missing, o.Screen)
	}
	return err
}

func picture(b *bench, slot int) error {
	o, err := b.look(slot, true)
	if err == nil && len(o.Image) == 0 {
		err = fmt.Errorf("no picture, missing %v", o.Missing)
	}
	return err
}

func tapMiddle(b *bench, slot int) error {
	return b.Call(b.t.Context(), "tap", map[string]any{"slot": slot, "x": 180, "y": 400}, nil)
}

func typeKettle(b *bench, slot int) error {
	return b.typeText(slot, "a kettle with a whistle", nil)
}

func typeCJK(b *bench, slot int) error { return b.typeText(slot, "水壶", nil) }

func (b *bench) typeText(slot int, text string, typed *action.Typed) error {
	return b.Call(b.t.Context(), "input_text", action.TextArgs{SlotArgs: slotArgs(slot), Text: text}, typed)
}

var editLine = regexp.MustCompile(`(?m)^\[(\d+)\] edit `)

// toSearch opens the shop and puts the cursor into its search field.
func (b *bench) toSearch(slot int) {
	b.t.Helper()
	if err := b.Call(b.t.Context(), "launch_app", action.AppArgs{SlotArgs: slotArgs(slot), App: "com.phonerack.shop"}, nil); err != nil {
		b.t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		o, err := b.look(slot, false)
		if err != nil {
			b.t.Fatal(err)
		}
		if field := editLine.FindStringSubmatch(o.Screen); field != nil {
			index, _ := strconv.Atoi(field[1])
			at := action.TapArgs{SlotArgs: slotArgs(slot), Element: &index, Generation: o.Generation}
			if err := b.Call(b.t.Context(), "tap", at, nil); err != nil {
				b.t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("no field to search in:\n%s", o.Screen)
		}
	}
}

func TestFaultsOfTheSystemStayInTheirSlot(t *testing.T) {
	t.Parallel()
	b := newBench(t, healthy+len(systemFaults))
	for _, p := range b.phones {
		p.plug(t)
	}
	b.start()
	b.await(healthy, action.Ready)
	stop := b.exercise()
	var meetings sync.WaitGroup // not parallel tests, which are as many as the machine has cores
	for i, f := range systemFaults {
		meetings.Go(func() {
			t.Run(f.name, func(t *testing.T) { f.meet(b.on(t), healthy+1+i) })
		})
	}
	meetings.Wait()
	stop()
}

func (f systemFault) meet(b *bench, slot int) {
	b.await(slot, action.Ready)
	b.toSearch(slot)
	device := b.phones[slot].device
	device.ChangeFaults(func(now *android.Faults) { *now = f.faults })
	use := f.use
	if use == nil {
		use = lookOnly
	}
	err := use(b, slot)
	if f.codes == nil && err != nil {
		b.t.Errorf("it should work: %v", err)
	}
	if f.codes != nil {
		b.wantRefusal(slot, err, f.codes...)
		b.t.Log(err)
	}
	if f.codes != nil && slices.Equal(f.codes, unreadable) { // nothing of the old screen is taken for the new one
		if _, err := b.look(slot, false); err == nil {
			b.t.Error("a screen that cannot be read was read")
		}
	}
	device.ChangeFaults(func(now *android.Faults) { *now = android.Faults{} })
	b.works(slot)
	var typed action.Typed
	if err := b.typeText(slot, "tea", &typed); err != nil || typed.Text != "verified" {
		b.t.Errorf("typing after the fault: %+v, %v", typed, err)
	}
}

// A task on a phone that loses letters must not end as if they were there.
func TestTaskNeverTakesLostLettersForTyped(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	b.phones[1].device.ChangeFaults(func(f *android.Faults) { f.DropText = 0.5 })
	b.start()
	b.await(1, action.Ready)
	var started action.TaskStatus
	run := action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: shopGoal, Steps: 8}
	if err := b.Call(t.Context(), "task_run", run, &started); err != nil {
		t.Fatal(err)
	}
	lines, status := b.watchTask(started.ID)
	if journal := strings.ToLower(strings.Join(b.phones[1].engine.Journal(), "\n")); status.State == action.Succeeded && !strings.Contains(journal, "kettle") {
		t.Errorf("%+v, but the shop says\n%s", status, journal)
	}
	typed := 0
	for line := range strings.Lines(lines) {
		if !strings.Contains(line, `"tool":"input_text"`) {
			continue
		}
		typed++
		if strings.Contains(line, `"outcome":"done"`) && !strings.Contains(line, `"text":"verified"`) && !strings.Contains(line, `"text":"unverified"`) {
			t.Errorf("done as if right: %s", line)
		}
	}
	if typed == 0 {
		t.Errorf("nothing was typed:\n%s", lines)
	}
}

func TestLeasesBlockOthersAndEndTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	var ahead atomic.Int64
	b.clock = func() time.Duration { return lease.BootTime() + time.Duration(ahead.Load()) }
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	held, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Hold, Who: "anna"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"tap":   tapMiddle(b, 1),
		"shell": b.echo(1),
		"push":  b.push(1, 10),
		"hold":  b.Call(t.Context(), "hold", action.HoldArgs{SlotArgs: slotArgs(1)}, nil),
		"task":  b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: shopGoal}, nil),
	} {
		if !wire.Is(err, wire.SlotBusy) || !strings.Contains(err.Error(), "held by anna until 20") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.observe(1, false); err != nil {
		t.Errorf("looking needs no lease: %v", err)
	}
	held.Release()

	task := b.runTask(1, shopGoal)
	for status := task; status.Steps < 2; time.Sleep(5 * time.Millisecond) {
		if err := b.Call(t.Context(), "task_status", action.TaskArgs{ID: task.ID}, &status); err != nil || status.State != action.Running {
			t.Fatalf("%+v, %v", status, err)
		}
	}
	ahead.Store(int64(24 * time.Hour))
	lines, status := b.watchTask(task.ID)
	if status.State != action.TaskError || status.Refusal == nil || status.Refusal.Code != wire.NotLeased {
		t.Errorf("after the lease: %+v\n%s", status, lines)
	}
	if status.Steps > 4 {
		t.Errorf("%d steps although the lease ended in the third", status.Steps)
	}
	b.works(1)
}

func TestTaskOnARackWithoutRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.room = 256 << 10
	b.phones[1].plug(t)
	b.phones[2].plug(t)
	b.start()
	b.await(1, action.Ready)
	var err error
	last := action.TaskStatus{}
	for range 100 {
		var task action.TaskStatus
		args := action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: strings.Repeat("a long goal ", 330)}
		if err = b.Call(t.Context(), "task_run", args, &task); err != nil {
			break
		}
		if err = b.Call(t.Context(), "task_cancel", action.TaskArgs{ID: task.ID}, &last); err != nil || last.State == action.Running {
			t.Fatalf("%+v, %v", last, err)
		}
	}
	if !wire.Is(err, wire.RackFull) || !strings.Contains(err.Error(), "storage is full; free some space") {
		t.Fatalf("full database: %v", err)
	}
	var list action.TaskList
	if err := b.Call(t.Context(), "task_list", action.TaskListArgs{Limit: 500}, &list); err != nil {
		t.Fatal(err)
	}
	for _, task := range list.Tasks {
		if task.State != action.Cancelled {
			t.Errorf("%s is %s", task.ID, task.State)
		}
	}
	b.works(1)
	b.works(2)
}
