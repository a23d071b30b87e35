package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/phonetest"
	"phonerack/usb/phonesim/screen"
)

// rig is a simulated phone behind the real host protocol, in a bubble's time.
type rig struct {
	sim    *phonetest.Phone
	engine *screen.Engine
	device *android.Device
	conn   *adb.Conn
	phone  *phone.Phone
}

// options of a rig.
type options struct {
	version  int // 14 if zero
	language string
	seed     int64
	faults   android.Faults
	small    bool // a third of the pixels, where it is not the picture that counts
	change   func(*android.Config)
}

// simulated runs test with a simulated phone.
func simulated(t *testing.T, o options, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		display := screen.Config{Width: phonetest.Width, Height: phonetest.Height, Density: 140, Language: o.language, Seed: o.seed}
		if o.small {
			display.Width, display.Height, display.Density = 206, 458, 80
		}
		sim := phonetest.Start(t, phonetest.Config{
			Android: o.version, Display: display,
			Change: func(c *android.Config) {
				c.Faults, c.Seed = o.faults, uint64(o.seed)
				if o.change != nil {
					o.change(c)
				}
			},
		})
		conn, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p, err := phone.Attach(t.Context(), conn, phone.Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, &rig{sim, sim.Engine, sim.Device, conn, p})
	})
}

// live is a fence that is always open.
type live struct{}

func (live) Check() error { return nil }

// run works on a task with the shipped rules and returns how it went.
func (r *rig) run(t *testing.T, task runner.Task, change func(*runner.Runner)) (runner.Result, []runner.Step) {
	t.Helper()
	rules, err := script.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	var steps []runner.Step
	work := &runner.Runner{
		Observer: perception.NewObserver(r.phone, perception.Options{}), Controls: r.phone.Under(live{}), Reads: r.phone,
		Planner: rules, Slot: 1, Phone: "SIM7", Gone: r.conn.Done(), OnStep: func(s runner.Step) { steps = append(steps, s) },
	}
	if change != nil {
		change(work)
	}
	result, err := work.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return result, steps
}

func (r *rig) journal() string { return strings.Join(r.engine.Journal(), "; ") }

// told is steps as a person reads them.
func told(steps []runner.Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%d %s%s %s on %s: %s %s, %s %s\n", s.N, s.Kind, s.Tool, s.Arguments, s.Target, s.Outcome, s.Code(), s.Effect, s.Text)
	}
	return b.String()
}

const (
	shopGoal    = "search the shop for a kettle and put it in the basket"
	messageGoal = "Send the message 'hello, I am late' to Mei Lin"
	switchGoal  = "turn on Bluetooth"
)

// TestTasksOnPhonesWithFaults: a fault may cost a task its success, never its
// honesty: what is reported as done is done, and nothing else was.
func TestTasksOnPhonesWithFaults(t *testing.T) {
	const now = .2 // now and then
	for _, c := range []struct {
		name   string
		faults android.Faults
		goal   string
		ends   wire.Code // "" for success
	}{
		{"none", android.Faults{}, shopGoal, ""},
		{"Dump of a null root now and then", android.Faults{Dump: android.DumpNullRoot, DumpRate: now}, shopGoal, ""},
		{"Dump of a null root", android.Faults{Dump: android.DumpNullRoot}, shopGoal, wire.LoopDetected},
		{"Dump not idle now and then", android.Faults{Dump: android.DumpNoIdle, DumpRate: now}, shopGoal, ""},
		{"Dump not idle", android.Faults{Dump: android.DumpNoIdle}, shopGoal, wire.LoopDetected},
		{"Dump silent now and then", android.Faults{Dump: android.DumpSilent, DumpRate: now}, messageGoal, ""},
		{"Dump silent", android.Faults{Dump: android.DumpSilent}, messageGoal, wire.LoopDetected},
		{"Dump cut off now and then", android.Faults{Dump: android.DumpCutOff, DumpRate: now}, switchGoal, ""},
		{"Dump cut off", android.Faults{Dump: android.DumpCutOff}, switchGoal, wire.TaskFailed},
		{"SlowTree", android.Faults{SlowTree: 6 * time.Second}, shopGoal, ""},
		{"NeverIdle", android.Faults{NeverIdle: true}, shopGoal, ""},
		{"NoTTY", android.Faults{NoTTY: true}, switchGoal, ""},
		{"TextDelay", android.Faults{TextDelay: time.Second}, messageGoal, ""},
		{"TextDelay of a minute", android.Faults{TextDelay: time.Minute}, messageGoal, wire.TaskFailed},
		{"InjectDenied", android.Faults{InjectDenied: true}, shopGoal, wire.PhoneSetup},
		{"ClipboardLie", android.Faults{ClipboardLie: true}, shopGoal, ""},
		{"SettingsDenied", android.Faults{SettingsDenied: true}, switchGoal, ""},
		{"InstallDenied", android.Faults{InstallDenied: true}, switchGoal, ""},
		{"GrantDenied", android.Faults{GrantDenied: true}, switchGoal, ""},
		{"NoKeys", android.Faults{NoKeys: true}, switchGoal, ""},
		{"Black", android.Faults{Black: true}, switchGoal, ""},
		{"Truncate", android.Faults{Truncate: 5000}, switchGoal, ""},
		{"Pixels of 16 bits", android.Faults{Pixels: android.PixelsRGB565}, switchGoal, ""},
		{"Pixels of 10 bits a colour", android.Faults{Pixels: android.Pixels1010102}, switchGoal, ""},
		{"Thermal zeros", android.Faults{Thermal: android.ThermalZeros}, switchGoal, ""},
		{"Thermal without a service behind", android.Faults{Thermal: android.ThermalNoHAL}, switchGoal, ""},
		{"DisplayWarning", android.Faults{DisplayWarning: true}, switchGoal, ""},
		{"Battery", android.Faults{Battery: android.BatteryFaults{Repeat: true, OddUnits: true}}, switchGoal, ""},
		{"Battery absurd", android.Faults{Battery: android.BatteryFaults{Absurd: true}}, switchGoal, ""},
		{"Battery absent", android.Faults{Battery: android.BatteryFaults{Absent: true}}, switchGoal, ""},
		{"StorageFull", android.Faults{StorageFull: true}, shopGoal, ""},
		{"ExtraFocus", android.Faults{ExtraFocus: true}, shopGoal, ""},
		{"NullFocus", android.Faults{NullFocus: true}, shopGoal, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{small: true}, func(t *testing.T, r *rig) {
				r.device.ChangeFaults(func(f *android.Faults) { *f = c.faults })
				begun := time.Now()
				result, steps := r.run(t, runner.Task{Goal: c.goal}, nil)
				r.wantEnd(t, result, steps, c.goal, c.ends)
				if took := time.Since(begun); took > 10*time.Minute {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// done is what the apps' journal says when a goal is reached.
var done = map[string]string{
	shopGoal:    "basket: Kettle x1",
	messageGoal: "message sent to Mei Lin: hello, I am late",
	switchGoal:  "bluetooth: on",
}

// wantEnd wants an end, and a journal that agrees with it.
func (r *rig) wantEnd(t *testing.T, result runner.Result, steps []runner.Step, goal string, code wire.Code) {
	t.Helper()
	var is wire.Code
	if result.Refusal != nil {
		is = result.Refusal.Code
	}
	want := ""
	if code == "" {
		want = done[goal]
	}
	if (result.Outcome == runner.Succeeded) != (code == "") || is != code || r.journal() != want {
		t.Errorf("%s %s (%s), want %q; the apps say %q, want %q\n%s", result.Outcome, is, result.Message, code, r.journal(), want, told(steps))
	}
}

// TestReport16_CharactersLostAreNeverReportedAsTyped: letters that are lost,
// swapped, held back or changed make the text failed, and nothing is sent.
func TestReport16_CharactersLostAreNeverReportedAsTyped(t *testing.T) {
	const teh = "Send the message 'teh bus is late' to Mei Lin"
	for _, c := range []struct {
		name   string
		faults android.Faults
		goal   string
	}{
		{"DropText", android.Faults{DropText: .2}, messageGoal},
		{"SwapText", android.Faults{SwapText: .3}, messageGoal},
		{"DropFirst", android.Faults{DropFirst: true}, messageGoal},
		{"SwapFirst", android.Faults{SwapFirst: true}, messageGoal},
		{"Composing", android.Faults{Composing: true}, messageGoal},
		{"Capitalize", android.Faults{Capitalize: true}, messageGoal},
		{"Autocorrect", android.Faults{Autocorrect: true}, teh},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{seed: 2, small: true}, func(t *testing.T, r *rig) {
				r.device.ChangeFaults(func(f *android.Faults) { *f = c.faults })
				result, steps := r.run(t, runner.Task{Goal: c.goal}, nil)
				code := wire.TaskFailed
				if result.Outcome == runner.Succeeded {
					code = "" // a slower way of typing has helped
				}
				r.wantEnd(t, result, steps, c.goal, code)
				var typed []string
				for _, s := range steps {
					if s.Tool == "input_text" {
						typed = append(typed, s.Outcome+" "+string(s.Code())+" "+s.Text)
					}
				}
				for i, how := range typed {
					last := i == len(typed)-1 && code == ""
					if want := map[bool]string{true: "done  verified", false: "failed text_differs failed"}[last]; how != want {
						t.Errorf("typing %d came to %s", i+1, how)
					}
				}
				if len(typed) < 2 {
					t.Errorf("typed %d times", len(typed))
				}
			})
		})
	}
	t.Run("TextDelay", func(t *testing.T) { // letters that come late are waited for
		simulated(t, options{small: true}, func(t *testing.T, r *rig) {
			r.device.ChangeFaults(func(f *android.Faults) { f.TextDelay = 2 * time.Second })
			result, steps := r.run(t, runner.Task{Goal: messageGoal}, nil)
			r.wantEnd(t, result, steps, messageGoal, "")
		})
	})
}

// TestReport18_ForbiddenInputEndsTheTaskAtOnce: agents went on for ever.
func TestReport18_ForbiddenInputEndsTheTaskAtOnce(t *testing.T) {
	simulated(t, options{small: true, faults: android.Faults{InjectDenied: true}}, func(t *testing.T, r *rig) {
		result, steps := r.run(t, runner.Task{Goal: shopGoal}, nil)
		r.wantEnd(t, result, steps, shopGoal, wire.PhoneSetup)
		if result.Steps > 2 {
			t.Errorf("%d steps", result.Steps)
		}
	})
}

// TestReport21_BlackPicturesAreNotShown: the tree is used, and the planner is told.
func TestReport21_BlackPicturesAreNotShown(t *testing.T) {
	simulated(t, options{faults: android.Faults{Black: true}}, func(t *testing.T, r *rig) {
		var asked []planner.Request
		result, steps := r.run(t, runner.Task{Goal: switchGoal}, func(work *runner.Runner) {
			work.Pictures = runner.PicturesAlways
			work.Planner = listening{work.Planner, &asked}
		})
		r.wantEnd(t, result, steps, switchGoal, "")
		for i, req := range asked {
			if req.Screen != nil || !strings.Contains(req.UserPrompt, " secure") {
				t.Errorf("request %d has a picture of %d bytes:\n%s", i+1, len(req.Screen), req.UserPrompt)
			}
		}
	})
}

// listening keeps what a planner is asked.
type listening struct {
	planner.Planner
	asked *[]planner.Request
}

func (l listening) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	*l.asked = append(*l.asked, req)
	return l.Planner.Decide(ctx, req)
}

// says is a planner of one answer after the other, each "tool arguments".
type says []string

func (s *says) Decide(_ context.Context, req planner.Request) (planner.Decision, error) {
	if len(*s) == 0 {
		return planner.Decision{}, wire.Refuse(wire.ProviderAuth, nil)
	}
	answer := (*s)[0]
	*s = (*s)[1:]
	_, at, _ := strings.Cut(req.UserPrompt, "\nscreen ")
	generation, _, _ := strings.Cut(at, ":")
	tool, args, _ := strings.Cut(strings.ReplaceAll(answer, "$gen", generation), " ")
	return planner.Decision{Tool: tool, Arguments: []byte(args)}, nil
}

func TestSleepingAndLockedPhonesAreWoken(t *testing.T) {
	for _, c := range []struct {
		name string
		lock func(*android.Config)
		off  bool
		ends wire.Code
		did  string
	}{
		{"awake", nil, false, "", ""},
		{"asleep", nil, true, "", "wake done "},
		{"locked without a PIN", func(c *android.Config) { c.Locked = true }, false, "", "wake done "},
		{"asleep and locked without a PIN", func(c *android.Config) { c.Locked = true }, true, "", "wake done "},
		{"locked with a PIN", func(c *android.Config) { c.Locked, c.PIN = true, "4711" }, false, wire.LoopDetected, "wake refused phone_locked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{change: c.lock, small: true}, func(t *testing.T, r *rig) {
				if c.off {
					r.engine.SetScreenOn(false)
				}
				result, steps := r.run(t, runner.Task{Goal: switchGoal}, nil)
				var did []string
				for _, s := range steps {
					if s.Kind == record.Wake {
						did = append(did, s.Tool+" "+s.Outcome+" "+string(s.Code()))
					}
				}
				r.wantEnd(t, result, steps, switchGoal, c.ends)
				if strings.Join(did, "; ") != c.did {
					t.Errorf("did %q\n%s", did, told(steps))
				}
			})
		})
	}
}

// TestCancellationLeavesNoFingerDown: a short touch ends by itself, a long one
// that is broken off is taken back.
func TestCancellationLeavesNoFingerDown(t *testing.T) {
	for _, c := range []struct {
		version int
		lasts   time.Duration
	}{{9, 800 * time.Millisecond}, {9, 4 * time.Second}, {14, 800 * time.Millisecond}, {14, 4 * time.Second}} {
		t.Run(fmt.Sprintf("Android %d for %s", c.version, c.lasts), func(t *testing.T) {
			simulated(t, options{version: c.version, small: true}, func(t *testing.T, r *rig) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var steps []runner.Step
				work := &runner.Runner{
					Observer: perception.NewObserver(r.phone, perception.Options{}), Slot: 1, OnStep: func(s runner.Step) { steps = append(steps, s) },
					Planner: &says{`long_press {"element":2,"generation":$gen}`, `wait {"ms":100}`},
				}
				work.Controls = pressing{r.phone.Under(live{}), c.lasts, func() { cancel(wire.Refuse(wire.TaskCancelled, nil)) }}
				result, err := work.Run(ctx, runner.Task{Goal: "press"})
				if err != nil || result.Outcome != runner.Cancelled || !result.Wrote {
					t.Errorf("%+v, %v\n%s", result, err, told(steps))
				}
				time.Sleep(time.Second)
				r.engine.Key(3) // home
				time.Sleep(time.Second)
				r.engine.Touch(screen.TouchUp, 0, 0) // a finger that is still there taps where it went down
				time.Sleep(time.Second)
				if pkg, _ := r.engine.Focus(); pkg != "com.android.launcher3" {
					t.Errorf("%s in front: a finger was left\n%s", pkg, told(steps))
				}
			})
		})
	}
}

// pressing cancels the attempt while it presses, for longer than tools do.
type pressing struct {
	*phone.Controls
	lasts  time.Duration
	cancel func()
}

func (p pressing) LongPress(ctx context.Context, x, y int, _ time.Duration) error {
	stop := time.AfterFunc(300*time.Millisecond, p.cancel)
	err := p.Controls.LongPress(ctx, x, y, p.lasts)
	if stop.Stop() { // the phone goes on with it after it has answered
		p.cancel()
	}
	return err
}

// fence opens for some writes.
type fence struct {
	mu   sync.Mutex // guards left and asked
	left int
	n    int
}

func (f *fence) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.left == 0 {
		return wire.Refuse(wire.AttemptOver, nil)
	}
	f.left--
	return nil
}

func TestTheFenceIsAskedBeforeEachWrite(t *testing.T) {
	for _, writes := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprintf("%d writes", writes), func(t *testing.T) {
			simulated(t, options{small: true}, func(t *testing.T, r *rig) {
				f := &fence{left: writes}
				result, steps := r.run(t, runner.Task{Goal: messageGoal}, func(work *runner.Runner) { work.Controls = r.phone.Under(f) })
				if result.Outcome != runner.Failed || result.Refusal.Code != wire.AttemptOver && result.Refusal.Code != wire.PartlyTyped || r.journal() != "" || f.n > writes+2 {
					t.Errorf("%+v, the fence was asked %d times, the apps say %q\n%s", result, f.n, r.journal(), told(steps))
				}
			})
		})
	}
}

// TestLinksThatFail: whatever becomes of the cable, the attempt ends soon and
// says what happened.
func TestLinksThatFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults phonesim.Faults
		codes  []wire.Code
	}{
		{"UnplugAfterIn", phonesim.Faults{UnplugAfterIn: 200_000}, []wire.Code{wire.PhoneLost}},
		{"UnplugAfterOut", phonesim.Faults{UnplugAfterOut: 3000}, []wire.Code{wire.PhoneLost}},
		{"Hang", phonesim.Faults{Hang: true}, []wire.Code{wire.ObservationFailed, wire.PhoneLost}},
		{"DropOKAY", phonesim.Faults{DropOKAY: true}, []wire.Code{wire.ObservationFailed, wire.PhoneLost, ""}},
		{"Corrupt", phonesim.Faults{Corrupt: phonesim.WrongMagic, CorruptAfter: 40}, []wire.Code{wire.PhoneLost}},
		{"slow", phonesim.Faults{Latency: 20 * time.Millisecond, BytesPerSecond: 2 << 20}, []wire.Code{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{}, func(t *testing.T, r *rig) {
				r.sim.SetFaults(c.faults)
				begun := time.Now()
				result, steps := r.run(t, runner.Task{Goal: messageGoal}, nil)
				var is wire.Code
				if result.Refusal != nil {
					is = result.Refusal.Code
				}
				if !slices.Contains(c.codes, is) || (is == "") != (r.journal() == done[messageGoal]) {
					t.Errorf("%s %s: %s; the apps say %q\n%s", result.Outcome, is, result.Message, r.journal(), told(steps))
				}
				if took := time.Since(begun); took > 8*time.Minute {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}
