package runner_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/runner"
	"phonerack/agent/runner/cleanup"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
)

func packages(t *testing.T, r *rig) []string {
	t.Helper()
	names, err := r.phone.Packages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestAPhoneIsPutInOrderAfterATask: whatever the task has left, the next one
// finds the phone as the first one did.
func TestAPhoneIsPutInOrderAfterATask(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		name := "after the task"
		if crashed {
			name = "after a crash, with the baseline of the record"
		}
		t.Run(name, func(t *testing.T) {
			simulated(t, options{}, func(t *testing.T, r *rig) {
				baseline := packages(t, r)
				result, steps := r.run(t, runner.Task{Goal: switchGoal}, nil)
				r.wantEnd(t, result, steps, switchGoal, "")

				left := apktest.Build(apk.Manifest{Package: "com.example.left", VersionCode: 1, VersionName: "1", MinSDK: 21, TargetSDK: 34})
				controls := r.phone.Under(live{})
				if err := controls.Install(t.Context(), bytes.NewReader(left), int64(len(left))); err != nil {
					t.Fatal(err)
				}
				if err := controls.StopAnimations(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.engine.SetRotation(1)

				known := cleanup.Known{Baseline: baseline, Used: result.Apps}
				if crashed {
					known.Used = nil
				}
				report, err := cleanup.Run(t.Context(), r.phone, controls, known)
				if err != nil {
					t.Fatalf("%v, %+v", err, report)
				}
				if now := packages(t, r); !slices.Equal(now, baseline) {
					t.Errorf("packages %q, want %q", now, baseline)
				}
				state := r.phone.State(t.Context())
				if state.Focus.Package != "com.android.launcher3" || state.Display.Rotation != 0 || state.Keyboard.Shown || r.phone.AnimationsStopped() {
					t.Errorf("%+v", state)
				}
				if slices.Contains(r.engine.Running(), "com.android.settings") {
					t.Errorf("running: %q", r.engine.Running())
				}
				if again, err := cleanup.Run(t.Context(), r.phone, controls, known); err != nil || len(again.Failed) > 0 {
					t.Errorf("a second time: %+v, %v", again, err)
				}
			})
		})
	}
}

func TestACleanUpSaysWhatItCouldNotDo(t *testing.T) {
	simulated(t, options{faults: android.Faults{SettingsDenied: true}}, func(t *testing.T, r *rig) {
		report, err := cleanup.Run(t.Context(), r.phone, r.phone.Under(live{}), cleanup.Known{Used: []string{}})
		if !errors.Is(err, cleanup.ErrNotClean) || !strings.Contains(err.Error(), "rotation: ") || len(report.Failed) != 1 || len(report.Done) != 3 {
			t.Errorf("%v, %+v", err, report)
		}
	})
}
