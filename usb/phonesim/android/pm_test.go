package android

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
)

func sampleAPK(change func(*apk.Manifest)) []byte {
	m := apk.Manifest{
		Package: "com.example.app", VersionCode: 20, VersionName: "2.0", MinSDK: 21, TargetSDK: 30, Label: "Example",
		Permissions: []string{"android.permission.CAMERA", "android.permission.INTERNET", "android.permission.READ_SMS", "android.permission.SET_ANIMATION_SCALE"},
		Activities: []apk.Component{
			{Name: "com.example.app.Main", Actions: []string{"android.intent.action.MAIN"}, Categories: []string{"android.intent.category.LAUNCHER"}},
		},
	}
	if change != nil {
		change(&m)
	}
	return apktest.Build(m)
}

// feed runs a command line with standard input.
func (p *phone) feed(cmd string, in []byte) (stdout, stderr string, status int) {
	p.t.Helper()
	var out, errOut bytes.Buffer
	status = p.Run(p.t.Context(), cmd, bytes.NewReader(in), &out, &errOut)
	return out.String(), errOut.String(), status
}

// stream installs as adb does.
func (p *phone) stream(flags string, file []byte) (string, int) {
	p.t.Helper()
	out, errOut, status := p.feed(fmt.Sprintf("cmd 'package' 'install' %s -S %d", flags, len(file)), file)
	return out + errOut, status
}

func TestPackageIsInstalledAndUninstalled(t *testing.T) {
	for version := range releases {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p, engine := realPhone(t, version)
			if out, status := p.stream("-r -t", sampleAPK(nil)); out != "Success\n" || status != 0 {
				t.Fatalf("%q %d", out, status)
			}
			path := strings.TrimPrefix(p.ok("pm path com.example.app"), "package:")
			if size := p.ok("stat -c %s " + path); size != fmt.Sprintln(len(sampleAPK(nil))) {
				t.Errorf("the file has %s bytes", size)
			}
			wantContains(t, "list", p.ok("pm list packages -3"), "package:com.example.app\n", "package:com.phonerack.shop\n")
			wantContains(t, "list", p.ok("pm list packages -f -3 example"), "package:/data/app/", "/base.apk=com.example.app\n")
			if out := p.ok("pm list packages -i com.example"); out != "package:com.example.app  installer=null\n" {
				t.Errorf("installer: %q", out)
			}
			wantContains(t, "dump", p.ok("dumpsys package com.example.app"), "versionCode=20 minSdk=21 targetSdk=30\n", "versionName=2.0\n",
				"android.permission.CAMERA: granted=false", "android.permission.INTERNET: granted=true\n")
			if out := p.ok("cmd package resolve-activity --brief com.example.app | tail -1"); out != "com.example.app/.Main\n" {
				t.Errorf("activity: %q", out)
			}
			p.ok("am start -W -n com.example.app/.Main")
			if pkg, _ := engine.Focus(); pkg != "com.example.app" {
				t.Errorf("focus %s", pkg)
			}
			uid := p.ok("dumpsys package com.phonerack.shop | grep -E 'userId|appId'")
			if out := p.ok("pm uninstall com.example.app"); out != "Success\n" {
				t.Errorf("uninstall: %q", out)
			}
			if out, _, status := p.sh("pm path com.example.app; ls " + path); out != "" || status == 0 {
				t.Errorf("still there: %q", out)
			}
			if again := p.ok("dumpsys package com.phonerack.shop | grep -E 'userId|appId'"); again != uid {
				t.Errorf("another app's number changed from %s to %s", uid, again)
			}
			out, _, status := p.sh("pm uninstall com.example.app")
			if status == 0 || !strings.HasPrefix(out, "Failure [") {
				t.Errorf("uninstalled twice: %q %d", out, status)
			}
		})
	}
}

func TestShippedAppIsUninstalled(t *testing.T) {
	p, engine := realPhone(t, 14)
	p.ok("am start -n com.phonerack.shop/.MainActivity; sleep 1; pm uninstall com.phonerack.shop; sleep 1")
	if pkg, _ := engine.Focus(); pkg != "com.android.launcher3" {
		t.Errorf("focus %s", pkg)
	}
	if _, errOut, _ := p.sh("am start -n com.phonerack.shop/.MainActivity"); !strings.Contains(errOut, "does not exist") {
		t.Errorf("started: %q", errOut)
	}
	if out, _, status := p.sh("pm uninstall com.android.settings"); out != "Failure [DELETE_FAILED_INTERNAL_ERROR]\n" || status != 1 {
		t.Errorf("%q %d", out, status)
	}
}

func TestInstallationIsRefused(t *testing.T) {
	older := func(m *apk.Manifest) { m.VersionCode = 10 }
	for _, test := range []struct {
		name    string
		version int
		first   bool // version 20 is there
		flags   string
		file    []byte
		faults  Faults
		want    string
	}{
		{"no zip", 14, false, "-r", []byte("hello"), Faults{}, "Failure [INSTALL_PARSE_FAILED_NOT_APK: Failed to parse /data/app/vmdl"},
		{"no manifest", 14, false, "-r", []byte("PK\x05\x06" + strings.Repeat("\x00", 18)), Faults{}, "Failure [INSTALL_PARSE_FAILED_NOT_APK"},
		{"bad name", 14, false, "", sampleAPK(func(m *apk.Manifest) { m.Package = "x" }), Faults{}, "Failure [INSTALL_PARSE_FAILED_BAD_MANIFEST"},
		{"already there", 9, true, "", sampleAPK(nil), Faults{}, "Failure [INSTALL_FAILED_ALREADY_EXISTS: Attempt to re-install com.example.app without first uninstalling.]\n"},
		{"already there, asked for", 14, true, "-R", sampleAPK(nil), Faults{}, "Failure [INSTALL_FAILED_ALREADY_EXISTS"},
		{"already there, replaced", 9, true, "-r", sampleAPK(nil), Faults{}, "Success\n"},
		{"already there today", 10, true, "", sampleAPK(nil), Faults{}, "Success\n"},
		{"older", 9, true, "-r", sampleAPK(older), Faults{}, "Failure [INSTALL_FAILED_VERSION_DOWNGRADE]\n"},
		{"older", 14, true, "-r", sampleAPK(older), Faults{}, "Failure [INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code 10 is older than current 20]\n"},
		{"older, wanted", 9, true, "-r -d", sampleAPK(older), Faults{}, "Success\n"},
		{"older, wanted, not for debugging", 14, true, "-d", sampleAPK(older), Faults{}, "Failure [INSTALL_FAILED_VERSION_DOWNGRADE"},
		{"older, wanted, for debugging", 14, true, "-d", sampleAPK(func(m *apk.Manifest) { older(m); m.Debuggable = true }), Faults{}, "Success\n"},
		{"phone too old", 7, false, "", sampleAPK(func(m *apk.Manifest) { m.MinSDK = 26 }), Faults{}, "Failure [INSTALL_FAILED_OLDER_SDK: "},
		{
			"app too old", 14, false, "", sampleAPK(func(m *apk.Manifest) { m.MinSDK, m.TargetSDK = 9, 22 }),
			Faults{},
			"Failure [INSTALL_FAILED_DEPRECATED_SDK_VERSION: App package must target at least SDK version 23, but found 22]\n",
		},
		{"for tests", 14, false, "", sampleAPK(func(m *apk.Manifest) { m.TestOnly = true }), Faults{}, "Failure [INSTALL_FAILED_TEST_ONLY: installPackageLI]\n"},
		{"for tests, allowed", 14, false, "-t", sampleAPK(func(m *apk.Manifest) { m.TestOnly = true }), Faults{}, "Success\n"},
		{"MIUI", 11, false, "-r", sampleAPK(nil), Faults{InstallDenied: true}, "Failure [INSTALL_FAILED_USER_RESTRICTED: Install canceled by user]\n"},
		{"full", 7, false, "", sampleAPK(nil), Faults{StorageFull: true}, "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]\n"},
		{"full", 11, false, "", sampleAPK(nil), Faults{StorageFull: true}, "\nException occurred while executing 'install':\nandroid.os.ParcelableException: java.io.IOException: Requested internal only, but not enough space"},
		{"full", 14, false, "", sampleAPK(nil), Faults{StorageFull: true}, "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE: Failed to override installation location]\n"},
	} {
		t.Run(fmt.Sprintf("%s on %d", test.name, test.version), func(t *testing.T) {
			p := newPhone(t, test.version, nil)
			if test.first {
				if out, status := p.stream("", sampleAPK(nil)); status != 0 {
					t.Fatal(out)
				}
			}
			p.fault(func(f *Faults) { *f = test.faults })
			out, status := p.stream(test.flags, test.file)
			if !strings.HasPrefix(out, test.want) || (status == 0) != strings.HasPrefix(test.want, "Success") {
				t.Errorf("%q, status %d, want %q", out, status, test.want)
			}
		})
	}
}

func TestReport22_PermissionsAndInstallationsThatMakersRestrict(t *testing.T) {
	for _, test := range []struct {
		version        int
		cmd, want      string
		granted, fault bool
	}{
		{version: 14, cmd: "pm grant com.example.app android.permission.CAMERA", granted: true},
		{version: 14, cmd: "pm grant com.example.app android.permission.SET_ANIMATION_SCALE"},
		{version: 14, cmd: "pm grant none android.permission.CAMERA", want: "java.lang.IllegalArgumentException: Unknown package: none"},
		{version: 7, cmd: "pm grant none android.permission.CAMERA", want: "Bad argument: java.lang.IllegalArgumentException: Unknown package: none\n"},
		{version: 14, cmd: "pm grant com.example.app com.none.X", want: "IllegalArgumentException: Unknown permission: com.none.X"},
		{version: 14, cmd: "pm grant com.example.app android.permission.CALL_PHONE", want: "SecurityException: Package com.example.app has not requested permission android.permission.CALL_PHONE"},
		{version: 7, cmd: "pm grant com.example.app android.permission.CALL_PHONE", want: "Operation not allowed: java.lang.SecurityException: Package com.example.app has not requested"},
		{version: 14, cmd: "pm grant com.example.app android.permission.INTERNET", want: "is not a changeable permission type"},
		{version: 14, cmd: "pm grant com.example.app android.permission.CAMERA", fault: true, want: "SecurityException: Neither user 2000 nor current process has android.permission.GRANT_RUNTIME_PERMISSIONS."},
		{version: 14, cmd: "pm grant com.example.app", want: "Error: no permission specified"},
	} {
		p := newPhone(t, test.version, nil)
		p.stream("", sampleAPK(nil))
		p.fault(func(f *Faults) { f.GrantDenied = test.fault })
		out, errOut, status := p.sh(test.cmd)
		if out != "" || !strings.Contains(errOut, test.want) || (errOut == "") != (test.want == "") || (status == 0) != (test.want == "") {
			t.Errorf("Android %d: %s: %q %q %d, want %q", test.version, test.cmd, out, errOut, status, test.want)
		}
		wantContains(t, test.cmd, p.ok("dumpsys package com.example.app"), fmt.Sprintf("android.permission.CAMERA: granted=%t", test.granted))
	}
	p := newPhone(t, 12, nil)
	p.stream("-g", sampleAPK(nil))
	wantContains(t, "-g", p.ok("dumpsys package com.example.app"), "android.permission.CAMERA: granted=true", "      android.permission.READ_SMS: restricted=true\n")
	p.ok("pm revoke com.example.app android.permission.CAMERA")
	wantContains(t, "revoke", p.ok("dumpsys package com.example.app"), "android.permission.CAMERA: granted=false")
	p.stream("-r", sampleAPK(nil))
	wantContains(t, "update", p.ok("dumpsys package com.example.app"), "android.permission.READ_SMS: granted=true")
}

func TestPackageFromAFileAndInSessions(t *testing.T) {
	p := newPhone(t, 14, nil)
	file := sampleAPK(nil)
	w, err := p.CreateFile("/data/local/tmp/x.apk", 0o644, p.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.Write(file)
	w.Close()
	if out := p.ok("pm install -r -i com.shop /data/local/tmp/x.apk; pm list packages -i com.example"); out != "Success\npackage:com.example.app  installer=com.shop\n" {
		t.Errorf("%q", out)
	}
	_, errOut, status := p.sh("pm install /data/local/tmp/none.apk")
	if status != 255 || !strings.HasPrefix(errOut, "Error: Unable to open file: /data/local/tmp/none.apk\nConsider using a file under /data/local/tmp/\n") {
		t.Errorf("%q %d", errOut, status)
	}
	created := p.ok("pm install-create -r -S " + fmt.Sprint(len(file)))
	var id int
	if _, err := fmt.Sscanf(created, "Success: created install session [%d]", &id); err != nil {
		t.Fatalf("%q: %v", created, err)
	}
	out, _, status := p.feed(fmt.Sprintf("pm install-write -S %d %d base.apk -", len(file), id), file)
	if out != fmt.Sprintf("Success: streamed %d bytes\n", len(file)) || status != 0 {
		t.Errorf("%q", out)
	}
	if out := p.ok(fmt.Sprintf("pm install-commit %d", id)); out != "Success\n" {
		t.Errorf("%q", out)
	}
	if _, errOut, status := p.sh(fmt.Sprintf("pm install-commit %d", id)); status == 0 || !strings.Contains(errOut, "Caller has no access to session") {
		t.Errorf("committed twice: %q", errOut)
	}
	fmt.Sscanf(p.ok("pm install-create"), "Success: created install session [%d]", &id)
	if out, _, _ := p.sh(fmt.Sprintf("pm install-commit %d", id)); !strings.HasPrefix(out, "Failure [INSTALL_FAILED_INVALID_APK: No packages staged") {
		t.Errorf("%q", out)
	}
	fmt.Sscanf(p.ok("pm install-create"), "Success: created install session [%d]", &id)
	p.ok(fmt.Sprintf("pm install-abandon %d", id))
	if _, errOut, status := p.sh("pm install -S"); status == 0 || errOut == "" {
		t.Errorf("%q %d", errOut, status)
	}
}

// What the host does not send is zeros in a file that has its size from the beginning.
func TestInstallationWhoseStreamEndsEarly(t *testing.T) {
	p := newPhone(t, 14, nil)
	file := sampleAPK(nil)
	out, _, status := p.feed(fmt.Sprintf("cmd package install -S %d", len(file)), file[:len(file)/2])
	if status != 1 || !strings.HasPrefix(out, "Failure [INSTALL_PARSE_FAILED_NOT_APK") {
		t.Errorf("%q %d", out, status)
	}
	out, _, status = p.feed(fmt.Sprintf("cmd package install -S %d", 1<<40), nil)
	if status != 1 || !strings.HasPrefix(out, "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE") {
		t.Errorf("%q %d", out, status)
	}
	if status := p.Run(t.Context(), "cmd package install", strings.NewReader(""), io.Discard, io.Discard); status != 1 {
		t.Errorf("no size: %d", status)
	}
}

func TestKeyboardOfANewPackageIsKnownLate(t *testing.T) {
	keyboard := sampleAPK(func(m *apk.Manifest) {
		m.Services = []apk.Component{{Name: "com.example.app.Keys", Permission: "android.permission.BIND_INPUT_METHOD", Actions: []string{"android.view.InputMethod"}}}
	})
	for _, late := range []bool{false, true} {
		p := newPhone(t, 14, func(c *Config) {
			if c.Faults.LateMethod = late; !late {
				c.Latency = 1
			}
		})
		p.stream("", keyboard)
		_, errOut, status := p.sh("ime enable com.example.app/.Keys")
		if errOut != "Unknown input method com.example.app/.Keys cannot be enabled for user #0\n" || status != 0 {
			t.Errorf("%q %d", errOut, status)
		}
		p.ok("sleep 1")
		if out := p.ok("ime enable com.example.app/.Keys; ime set com.example.app/.Keys; settings get secure default_input_method"); !strings.HasSuffix(out, "\ncom.example.app/.Keys\n") {
			t.Errorf("%q", out)
		}
		wantContains(t, "windows", p.ok("dumpsys window InputMethod"), "package=com.example.app ")
		p.ok("pm uninstall com.example.app")
		if out := p.ok("settings get secure default_input_method; ime list -s -a"); strings.Contains(out, "example") || !strings.HasPrefix(out, latinIME) {
			t.Errorf("%q", out)
		}
	}
}
