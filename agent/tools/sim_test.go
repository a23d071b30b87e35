package tools_test

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
	"phonerack/agent/tools"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/phonetest"
	"phonerack/usb/phonesim/screen"
)

const (
	shopApp     = "com.phonerack.shop"
	settingsApp = "com.android.settings"
)

// rig is a simulated phone, connected through the real host protocol, with
// everything that tools need.
type rig struct {
	engine *screen.Engine
	device *android.Device
	phone  *phone.Phone
	env    tools.Env
	gate   *gate
}

// gate is a fence that lets only so many writes through; -1 is all.
type gate struct {
	mu   sync.Mutex // guards left
	left int
}

func (g *gate) Check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left == 0 {
		return wire.Refuse(wire.NotLeased, map[string]any{"slot": 3})
	}
	g.left--
	return nil
}

func (g *gate) let(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = n
}

// simulated runs test with a phone of an Android version, in a time of its own.
func simulated(t *testing.T, version int, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := phonetest.Start(t, phonetest.Config{Android: version, Serial: "SIM3"})
		conn, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p, err := phone.Attach(t.Context(), conn, phone.Options{})
		if err != nil {
			t.Fatal(err)
		}
		observer := perception.NewObserver(p, perception.Options{})
		r := &rig{engine: sim.Engine, device: sim.Device, phone: p, gate: &gate{left: -1}}
		r.env = tools.Env{
			Controls: p.Under(r.gate), Phone: p, Permissions: tools.Permissions(), Slot: 3, Serial: "SIM3",
			Look: func(ctx context.Context) (*perception.Scene, error) {
				return observer.Observe(ctx, perception.Want{ImageIfThin: true})
			},
		}
		test(t, r)
	})
}

// do looks and calls a tool; $gen in its arguments is the screen's number.
func (r *rig) do(t *testing.T, tool, args string) (tools.Outcome, error) {
	t.Helper()
	scene, err := r.env.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.env.Scene = scene
	return do(t, r.env, tool, strings.ReplaceAll(args, "$gen", fmt.Sprint(scene.Generation)))
}

// well calls a tool that has to succeed.
func (r *rig) well(t *testing.T, tool, args string) tools.Outcome {
	t.Helper()
	out, err := r.do(t, tool, args)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, args, err, r.env.Scene.Prompt())
	}
	return out
}

// search starts the shop and returns the arguments that name its search field.
func (r *rig) search(t *testing.T) (field string) {
	t.Helper()
	r.well(t, "launch_app", `{"package":"`+shopApp+`"}`)
	out := r.well(t, "wait_for", `{"package":"`+shopApp+`"}`)
	i := slices.IndexFunc(out.Scene.Elements, func(e perception.Element) bool { return e.Editable })
	if i < 0 {
		t.Fatalf("no field in %s", out.Scene.Prompt())
	}
	return fmt.Sprintf(`"element":%d,"generation":$gen`, i)
}

func TestTypingOnSimulatedPhones(t *testing.T) {
	const words = `it's 5 "%s" $HOME; \ and & more`
	for _, version := range []int{7, 9, 12, 15} {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, func(t *testing.T, r *rig) {
				field := r.search(t)
				out := r.well(t, "input_text", fmt.Sprintf(`{"text":%q,%s}`, words, field))
				if out.Text != tools.TextVerified || out.Scene == nil || !out.Scene.Keyboard {
					t.Errorf("%+v", out)
				}
				if out := r.well(t, "input_text", `{"text":" it is"}`); out.Text != tools.TextVerified {
					t.Errorf("behind it: %+v", out)
				}
				if out := r.well(t, "clear_text", `{`+field+`}`); out.Text == tools.TextFailed || tools.FocusedField(out.Scene) == nil {
					t.Errorf("emptied: %+v", out)
				}
				out = r.well(t, "input_text", `{"text":"kettle","submit":true,`+field+`}`)
				if out.Text != tools.TextVerified {
					t.Errorf("sent: %+v", out)
				}
				r.well(t, "wait_for", `{"text":"kettle"}`)
			})
		})
	}
}

// Faults of phones that swallow, change and hold what is typed: it is never
// called verified, and enter is not pressed.
func TestReport16_FaultyTypingOnSimulatedPhones(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		faults func(*android.Faults)
		want   string
		old    bool
	}{
		"the first is lost":         {"kettle", func(f *android.Faults) { f.DropFirst = true }, tools.TextFailed, true},
		"two are swapped":           {"kettle", func(f *android.Faults) { f.SwapFirst = true }, tools.TextFailed, false},
		"some are lost":             {"a red electric kettle", func(f *android.Faults) { f.DropText = 0.5 }, tools.TextFailed, false},
		"some are swapped":          {"a red electric kettle", func(f *android.Faults) { f.SwapText = 0.5 }, tools.TextFailed, false},
		"composing":                 {"kettle", func(f *android.Faults) { f.Composing = true }, tools.TextFailed, true},
		"composing, some pass":      {"a1b2", func(f *android.Faults) { f.Composing = true }, tools.TextFailed, false},
		"composing, committed":      {"kettle ", func(f *android.Faults) { f.Composing = true }, tools.TextFailed, false},
		"capitals":                  {"kettle", func(f *android.Faults) { f.Capitalize = true }, tools.TextFailed, false},
		"corrections":               {"teh kettle", func(f *android.Faults) { f.Autocorrect = true }, tools.TextFailed, false},
		"late":                      {"kettle", func(f *android.Faults) { f.TextDelay = 1500 * time.Millisecond }, tools.TextVerified, true},
		"too late":                  {"kettle", func(f *android.Faults) { f.TextDelay = 20 * time.Second }, tools.TextFailed, false},
		"one that is not disturbed": {"KETTLE 12", func(f *android.Faults) { f.Capitalize, f.Autocorrect = true, true }, tools.TextVerified, false},
	} {
		versions := []int{14}
		if c.old {
			versions = append(versions, 7) // which shows the hint of an empty field as its text
		}
		for _, version := range versions {
			t.Run(fmt.Sprintf("%s, Android %d", name, version), func(t *testing.T) {
				simulated(t, version, func(t *testing.T, r *rig) {
					field := r.search(t)
					r.device.ChangeFaults(c.faults)
					before, _ := r.engine.Focus()
					out, err := r.do(t, "input_text", fmt.Sprintf(`{"text":%q,"submit":true,%s}`, c.text, field))
					if out.Text != c.want || wire.Is(err, wire.TextDiffers) != (c.want == tools.TextFailed) {
						t.Errorf("%q: %+v, %v", c.text, out.Text, err)
					}
					if c.want != tools.TextFailed {
						return
					}
					scene, err := r.env.Look(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if after, _ := r.engine.Focus(); after != before || tools.FocusedField(scene) == nil {
						t.Errorf("it was sent: %s", scene.Prompt())
					}
				})
			})
		}
	}
}

// The next text goes another way after one that was garbled.
func TestGarbledTypingIsMended(t *testing.T) {
	simulated(t, 14, func(t *testing.T, r *rig) {
		field := r.search(t)
		r.device.ChangeFaults(func(f *android.Faults) { f.SwapFirst = true }) // of each command: one character cannot be swapped
		if out, err := r.do(t, "input_text", `{"text":"kettle",`+field+`}`); !wire.Is(err, wire.TextDiffers) || out.Text != tools.TextFailed {
			t.Fatalf("%+v, %v", out, err)
		}
		r.well(t, "clear_text", `{`+field+`}`)
		if out := r.well(t, "input_text", `{"text":"kettle",`+field+`}`); out.Text != tools.TextVerified {
			t.Errorf("%+v", out)
		}
	})
}

func TestReport05_TextThatThePhoneCannotTypeIsRefused(t *testing.T) {
	simulated(t, 11, func(t *testing.T, r *rig) {
		field := r.search(t)
		out, err := r.do(t, "input_text", `{"text":"水壶 🍵",`+field+`}`)
		wantRefusal(t, err, wire.CannotType, "plain ASCII")
		if out.Text != "" {
			t.Errorf("%+v", out)
		}
		scene, err := r.env.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f := tools.FocusedField(scene); f == nil || strings.Contains(f.Text, "水") {
			t.Errorf("%+v", f)
		}
	})
}

func TestReport18_InputThatIsForbiddenIsSaid(t *testing.T) {
	simulated(t, 11, func(t *testing.T, r *rig) {
		field := r.search(t)
		r.device.ChangeFaults(func(f *android.Faults) { f.InjectDenied = true })
		for tool, args := range map[string]string{"tap": `{` + field + `}`, "input_text": `{"text":"x",` + field + `}`, "press_key": `{"key":"home"}`} {
			out, err := r.do(t, tool, args)
			wantRefusal(t, err, wire.PhoneSetup, "Security settings")
			if out.Wrote {
				t.Errorf("%s: %+v", tool, out)
			}
		}
	})
}

// Each write of a tool asks the fence: once it is closed nothing more is sent.
func TestTheFenceClosesInTheMiddleOfATool(t *testing.T) {
	for let, want := range map[int]string{0: "nothing", 1: "focused", 2: "typed"} {
		simulated(t, 11, func(t *testing.T, r *rig) {
			field := r.search(t)
			r.gate.let(let)
			out, err := r.do(t, "input_text", `{"text":"kettle","submit":true,`+field+`}`)
			wantRefusal(t, err, wire.NotLeased, "slot 3")
			scene, lookErr := r.env.Look(t.Context())
			if lookErr != nil {
				t.Fatal(lookErr)
			}
			is := "nothing"
			if f := tools.FocusedField(scene); f != nil {
				if is = "focused"; f.Text == "kettle" {
					is = "typed"
				}
			}
			if is != want || out.Wrote != (let > 0) {
				t.Errorf("after %d writes: %s, %+v", let, is, out)
			}
		})
	}
}

func TestScrollingOnSimulatedPhones(t *testing.T) {
	for _, version := range []int{7, 15} {
		simulated(t, version, func(t *testing.T, r *rig) {
			r.well(t, "launch_app", `{"package":"`+settingsApp+`"}`)
			r.well(t, "wait_for", `{"package":"`+settingsApp+`"}`)
			out := r.well(t, "scroll_to", `{"text":"About phone","direction":"down"}`)
			if out.Scene == nil || out.Settle {
				t.Errorf("Android %d: %+v", version, out)
			}
			e, err := out.Scene.Find(out.Scene.Generation, out.Target.Index)
			if err != nil || !strings.Contains(e.Text, "About phone") {
				t.Fatalf("Android %d: %+v, %v", version, e, err)
			}
			out, err = r.do(t, "scroll_to", `{"text":"kettle","direction":"up"}`)
			wantRefusal(t, err, wire.ElementMissing, "up to the end of the list")
			if len(out.Points) != 2 || out.Scene == nil {
				t.Errorf("Android %d: %+v", version, out)
			}
			r.well(t, "scroll_to", `{"text":"Network","direction":"up"}`)
		})
	}
}

func TestOtherToolsOnASimulatedPhone(t *testing.T) {
	simulated(t, 14, func(t *testing.T, r *rig) {
		if out := r.well(t, "list_apps", `{"filter":"shop"}`); !strings.Contains(out.Result, shopApp) {
			t.Errorf("%q", out.Result)
		}
		r.search(t)
		r.well(t, "stop_app", `{"package":"`+shopApp+`"}`)
		if pkg, _ := r.engine.Focus(); pkg == shopApp {
			t.Error("the shop was not stopped")
		}
		_, err := r.do(t, "launch_app", `{"package":"com.phonerack.none"}`)
		wantRefusal(t, err, wire.AppMissing, "com.phonerack.none")
		_, err = r.do(t, "set_clipboard", `{"text":"5 kg"}`)
		wantRefusal(t, err, wire.ClipboardFailed, "helper")
		env := newDesk().env(tools.PermitFiles)
		env.Phone = r.phone
		_, err = do(t, env, "pull_file", `{"path":"/sdcard/none.pdf"}`)
		wantRefusal(t, err, wire.FileMissing, "/sdcard/none.pdf")
		out, err := r.do(t, "wait_for", `{"text":"nowhere","timeout_ms":1500}`)
		wantRefusal(t, err, wire.ElementMissing, "within 1.5s")
		if out.Scene == nil {
			t.Errorf("%+v", out)
		}
	})
}
