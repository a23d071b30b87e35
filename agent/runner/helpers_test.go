package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/phone/appium"
	"phonerack/agent/runner"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/android/uia2"
)

// helped attaches to the rig's phone anew, with the helper apps installed and
// running.
func (r *rig) helped(t *testing.T) (stop func()) {
	t.Helper()
	server, tests := apktest.Server()
	for _, m := range []apk.Manifest{server, tests, apktest.Settings()} {
		b := apktest.Build(m)
		if err := r.phone.Under(live{}).Install(t.Context(), bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatal(err)
		}
	}
	helper := appium.New(r.conn, appium.Options{})
	var err error
	if r.phone, err = phone.Attach(t.Context(), r.conn, phone.Options{Helpers: helper}); err != nil {
		t.Fatal(err)
	}
	if err := r.phone.Still(t.Context(), func(ctx context.Context) error { return helper.Start(ctx, live{}) }); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := helper.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestShippedTasksWithHelpersAndWithout: where the text can be typed it is; where
// it cannot, the shop is looked through, and a message is not sent.
func TestShippedTasksWithHelpersAndWithout(t *testing.T) {
	for _, c := range []struct {
		language, goal, journal string
		ascii                   bool // all that is typed is
		browses                 bool // there is a way without typing
	}{
		{"en", shopGoal, "basket: Kettle x1", true, true},
		{"en", messageGoal, "message sent to Mei Lin: hello, I am late", true, true},
		{"en", switchGoal, "bluetooth: on", true, true},
		{"en", "Send the message 'señor Łukasz 😀 is late' to Mei Lin", "message sent to Mei Lin: señor Łukasz 😀 is late", false, false},
		{"zh", "在商店搜索水壶并放入购物车", "basket: Kettle x1", false, true},
		{"zh", "给王芳发消息“我晚点到”", "message sent to Wang Fang: 我晚点到", false, false},
		{"zh", "打开飞行模式", "airplane mode: on", true, true},
		{"ar", "ابحث في المتجر عن غلاية وضعها في السلة", "basket: Kettle x1", false, true},
		{"ar", "أرسل الرسالة «سأتأخر قليلا» إلى بافل", "message sent to Pavel: سأتأخر قليلا", false, false},
		{"ar", "شغّل البلوتوث", "bluetooth: on", true, true},
	} {
		for _, helped := range []bool{false, true} {
			name := c.goal + " without helpers"
			if helped {
				name = c.goal + " with helpers"
			}
			t.Run(name, func(t *testing.T) {
				simulated(t, options{language: c.language, small: helped}, func(t *testing.T, r *rig) {
					if helped {
						defer r.helped(t)()
					}
					result, steps := r.run(t, runner.Task{Goal: c.goal}, nil)
					outcome, journal := runner.Succeeded, c.journal
					if !helped && !c.browses {
						outcome, journal = runner.Failed, ""
					}
					if result.Outcome != outcome || outcome == runner.Failed && result.Refusal.Code != wire.TaskFailed || r.journal() != journal {
						t.Errorf("%s: %s; the apps say %q, want %q\n%s", result.Outcome, result.Message, r.journal(), journal, told(steps))
					}
					typed := ""
					for _, s := range steps {
						if s.Tool == "input_text" {
							typed += s.Outcome + " " + string(s.Code()) + " " + s.Text + ";"
						}
					}
					want := ""
					switch types := !strings.Contains(c.journal, "bluetooth") && !strings.Contains(c.journal, "airplane"); {
					case types && (helped || c.ascii):
						want = "done  verified;"
					case types:
						want = "failed cannot_type ;" // the cursor was put into the field
					}
					if typed != want {
						t.Errorf("typing came to %q, want %q\n%s", typed, want, told(steps))
					}
				})
			})
		}
	}
}

// TestTasksWhoseHelperFails: whatever becomes of the server in the middle of a
// task, the task goes on without it.
func TestTasksWhoseHelperFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  int // steps
		faults uia2.Faults
	}{
		{"crashes", 2, uia2.Faults{Crash: true}},
		{"hangs", 2, uia2.Faults{Hang: true}},
		{"not connected", 2, uia2.Faults{Error: uia2.NotConnected}},
		{"stale object", 2, uia2.Faults{Error: uia2.StaleObject}},
		{"dead object", 2, uia2.Faults{Error: uia2.DeadObject}},
		{"tree stands still after the first step", 1, uia2.Faults{Stale: true}},
		{"tree stands still after the second step", 2, uia2.Faults{Stale: true}},
		{"tree stands still after the third step", 3, uia2.Faults{Stale: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{small: true}, func(t *testing.T, r *rig) {
				defer r.helped(t)()
				turns := 0
				var steps []runner.Step
				result, _ := r.run(t, runner.Task{Goal: shopGoal}, func(work *runner.Runner) {
					work.OnStep = func(s runner.Step) {
						steps = append(steps, s)
						if turns++; turns == c.after {
							r.device.ChangeFaults(func(f *android.Faults) { f.Server = c.faults })
						}
					}
				})
				if turns <= c.after {
					t.Errorf("%d turns: the fault came too late", turns)
				}
				r.wantEnd(t, result, steps, shopGoal, "")
			})
		})
	}
}

// TestReport09_NothingIsDoneTwiceOverAnOldScreen: from whichever step on a server
// shows what it showed before, each task does what it should, once.
func TestReport09_NothingIsDoneTwiceOverAnOldScreen(t *testing.T) {
	for _, goal := range []string{shopGoal, messageGoal, switchGoal} {
		for after := range 5 {
			t.Run(fmt.Sprintf("%s after %d steps", goal, after), func(t *testing.T) {
				simulated(t, options{small: true}, func(t *testing.T, r *rig) {
					defer r.helped(t)()
					var steps []runner.Step
					freeze := func() {
						if len(steps) == after {
							r.device.ChangeFaults(func(f *android.Faults) { f.Server = uia2.Faults{Stale: true} })
						}
					}
					freeze()
					result, _ := r.run(t, runner.Task{Goal: goal}, func(work *runner.Runner) {
						work.OnStep = func(s runner.Step) {
							steps = append(steps, s)
							freeze()
						}
					})
					r.wantEnd(t, result, steps, goal, "")
				})
			})
		}
	}
}

// TestTasksWhoseHelperIsSlow: a server that takes its time, and an input method
// that cannot be enabled at once, cost time and nothing else.
func TestTasksWhoseHelperIsSlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults android.Faults
	}{
		{"SlowStart", android.Faults{Server: uia2.Faults{SlowStart: 8 * time.Second}}},
		{"LateMethod", android.Faults{LateMethod: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, options{language: "zh", small: true}, func(t *testing.T, r *rig) {
				r.device.ChangeFaults(func(f *android.Faults) { *f = c.faults })
				defer r.helped(t)()
				result, steps := r.run(t, runner.Task{Goal: "给王芳发消息“我晚点到”"}, nil)
				if result.Outcome != runner.Succeeded || r.journal() != "message sent to Wang Fang: 我晚点到" {
					t.Errorf("%s: %s; the apps say %q\n%s", result.Outcome, result.Message, r.journal(), told(steps))
				}
			})
		})
	}
}
