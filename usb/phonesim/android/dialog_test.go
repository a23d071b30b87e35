package android

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Dialogs of others are windows of others, wherever the phone tells of windows.
func TestReport04_DialogOfAnotherPackage(t *testing.T) {
	for version := range releases {
		p, engine := realPhone(t, version)
		p.ok("am start -W -n com.phonerack.stage/.StageActivity")
		args := map[string]string{"label": "Stage", "package": "com.phonerack.stage", "permission": "android.permission.CAMERA"}
		if err := engine.ShowDialog("permission", args, time.Second); err != nil {
			t.Fatal(err)
		}
		p.ok("sleep 2")
		const activity = "com.android.permissioncontroller/com.android.permissioncontroller.permission.ui.GrantPermissionsActivity"
		out := p.ok("dumpsys window")
		wantContains(t, "focus", out, "mCurrentFocus=Window{", " u0 "+activity+"}\n")
		entry := windowEntry(t, out, activity)
		frame := engine.Tree().Bounds
		wantContains(t, "window", entry, "package=com.android.permissioncontroller ", fmt.Sprintf("[%d,%d][%d,%d]", frame.Min.X, frame.Min.Y, frame.Max.X, frame.Max.Y))
		dump := p.ok("uiautomator dump /dev/tty")
		wantContains(t, "dump", dump, "com.android.permissioncontroller:id/permission_deny_button")
		if strings.Contains(dump, "com.phonerack.stage") {
			t.Error("the dump shows the window below")
		}
	}
}

func TestPermissionThatTheUserGives(t *testing.T) {
	for button, granted := range map[string]bool{"permission_allow_one_time_button": true, "permission_deny_button": false} {
		p, engine := realPhone(t, 14)
		args := map[string]string{"label": "Stage", "package": "com.phonerack.stage", "permission": "android.permission.CAMERA"}
		if err := engine.ShowDialog("permission", args, 0); err != nil {
			t.Fatal(err)
		}
		p.ok("sleep 1")
		b := find(engine.Tree(), "com.android.permissioncontroller:id/"+button).Bounds
		p.ok(fmt.Sprintf("input tap %d %d", b.Min.X+5, b.Min.Y+5))
		wantContains(t, button, p.ok("dumpsys package com.phonerack.stage"), fmt.Sprintf("android.permission.CAMERA: granted=%t", granted))
		p.ok("pm revoke com.phonerack.stage android.permission.CAMERA")
		wantContains(t, "revoked", p.ok("dumpsys package com.phonerack.stage"), "android.permission.CAMERA: granted=false")
	}
}

func TestReport03_EndlessMotionAndDumps(t *testing.T) {
	p, engine := realPhone(t, 14)
	p.ok("am start -W -n com.phonerack.stage/.StageActivity; settings put global transition_animation_scale 1")
	b := find(engine.Tree(), "com.phonerack.stage:id/open_motion").Bounds
	p.ok(fmt.Sprintf("input tap %d %d; sleep 1", b.Min.X+5, b.Min.Y+5))
	if _, errOut, status := p.sh("uiautomator dump"); errOut != "ERROR: could not get idle state.\n" || status != 0 {
		t.Errorf("%q %d", errOut, status)
	}
	p.ok("settings put global window_animation_scale 0; settings put global transition_animation_scale 0; settings put global animator_duration_scale 0")
	wantContains(t, "without animations", p.ok("uiautomator dump /dev/tty"), "com.phonerack.stage:id/progress")
}
