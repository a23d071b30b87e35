package phone_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
)

func testApp(permissions ...string) []byte {
	return apktest.Build(apk.Manifest{
		Package: "com.example.test", VersionCode: 7, VersionName: "1.7", MinSDK: 21, TargetSDK: 30, Label: "Test", Permissions: permissions,
		Activities: []apk.Component{{Name: "com.example.test.Main", Actions: []string{"android.intent.action.MAIN"}, Categories: []string{"android.intent.category.LAUNCHER"}}},
	})
}

func TestInstallOnEachVersion(t *testing.T) {
	const camera = "android.permission.CAMERA"
	for version := range sdks {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				c := p.Under(live{})
				app := testApp(camera)
				for range 2 { // the second over the first
					if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); err != nil {
						t.Fatal(err)
					}
				}
				own, err := p.Installed(t.Context(), true)
				if !slices.ContainsFunc(own, func(a phone.Package) bool { return a.Name == "com.example.test" }) || err != nil {
					t.Errorf("installed %+v, %v", own, err)
				}
				for _, err := range []error{
					c.Grant(t.Context(), "com.example.test", camera), c.Revoke(t.Context(), "com.example.test", camera),
				} {
					if err != nil {
						t.Error(err)
					}
				}
				for err, want := range map[error]error{
					c.Grant(t.Context(), "com.example.test", "android.permission.READ_SMS"): phone.ErrRejected, // not asked for
					c.Grant(t.Context(), "com.example.none", camera):                        phone.ErrAppMissing,
				} {
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				s.device.ChangeFaults(func(f *android.Faults) { f.GrantDenied, f.InstallDenied = true, true })
				if err := c.Grant(t.Context(), "com.example.test", camera); !wire.Is(err, wire.PhoneSetup) {
					t.Errorf("grant: %v", err)
				}
				if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); !wire.Is(err, wire.PhoneSetup) {
					t.Errorf("install: %v", err)
				}
				s.device.ChangeFaults(func(f *android.Faults) { *f = android.Faults{StorageFull: true} })
				if err := c.Install(t.Context(), bytes.NewReader(app), int64(len(app))); !wire.Is(err, wire.InstallFailed) {
					t.Errorf("a full phone: %v", err)
				}
				s.device.ChangeFaults(func(f *android.Faults) { *f = android.Faults{} })
				text := "this is no app"
				if err := c.Install(t.Context(), strings.NewReader(text), int64(len(text))); !wire.Is(err, wire.InstallFailed) {
					t.Errorf("no app: %v", err)
				}
				if err := c.Uninstall(t.Context(), "com.example.test"); err != nil {
					t.Error(err)
				}
				if err := c.Uninstall(t.Context(), "com.example.test"); err == nil {
					t.Error("uninstalled twice")
				}
				// An APK that breaks off leaves nothing behind.
				if err := c.Install(t.Context(), bytes.NewReader(app[:len(app)/2]), int64(len(app))); !errors.Is(err, phone.ErrBadArgument) {
					t.Errorf("half an app: %v", err)
				}
				time.Sleep(time.Minute)
				if own, err := p.Packages(t.Context()); err != nil || slices.Contains(own, "com.example.test") {
					t.Errorf("half an app is installed, %v", err)
				}
			})
		})
	}
}

func TestResetsOnEachVersion(t *testing.T) {
	const pinyin = "com.google.android.inputmethod.pinyin/.PinyinIME"
	for version := range sdks {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			c := p.Under(live{})
			own := p.Strategies().Keyboard
			sh(t, s, "settings put system user_rotation 1; settings put system accelerometer_rotation 0; ime enable "+pinyin+"; ime set "+pinyin)
			if got := sh(t, s, "settings get secure default_input_method"); got != pinyin {
				t.Fatalf("input method %s", got)
			}
			if err := c.ResetRotation(t.Context()); err != nil || s.engine.Rotation() != 0 {
				t.Errorf("Android %d: rotation %d, %v", version, s.engine.Rotation(), err)
			}
			if err := c.ResetKeyboard(t.Context()); err != nil {
				t.Errorf("Android %d: %v", version, err)
			}
			if got := sh(t, s, "settings get secure default_input_method"); got != own || own == "" {
				t.Errorf("Android %d: input method %s, want %s", version, got, own)
			}
			s.device.ChangeFaults(func(f *android.Faults) { f.SettingsDenied = true })
			if err := c.ResetRotation(t.Context()); !errors.Is(err, phone.ErrRejected) && !errors.Is(err, phone.ErrDeviceSetup) {
				t.Errorf("Android %d, denied: %v", version, err)
			}
		})
	}
}

func TestReport19_ClipboardOfThePhone(t *testing.T) {
	for _, version := range []int{7, 11, 15} {
		for _, lies := range []bool{true, false} {
			simulated(t, version, func(c *android.Config) { c.Faults.ClipboardLie = lies }, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				if err := p.Under(live{}).SetClipboard(t.Context(), "secret"); !wire.Is(err, wire.ClipboardFailed) {
					t.Errorf("Android %d, lies %t: %v", version, lies, err)
				}
			})
		}
	}
}

// TestReport16_WhatArrivesIsReadBack: where characters are lost the field shows
// it, and the slower pace is not a cure by itself.
func TestReport16_WhatArrivesIsReadBack(t *testing.T) {
	for _, version := range []int{7, 11, 15} {
		simulated(t, version, func(c *android.Config) { c.Faults.SwapFirst = true }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			s.field(t, p)
			const text = "hello world"
			c := p.Under(live{})
			if err := c.InputText(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t, p); got == text {
				t.Errorf("nothing was lost: %q", got)
			}
			if err := c.ClearText(t.Context(), len(text)); err != nil {
				t.Fatal(err)
			}
			if !c.Distrust(phone.Typing) {
				t.Fatal("there is no slower pace")
			}
			if err := c.InputText(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if got := s.text(t, p); got != text { // single characters have no neighbour to be swapped with
				t.Errorf("Android %d: slowly %q", version, got)
			}
		})
	}
}

func TestClearTextOfAField(t *testing.T) {
	for _, version := range []int{7, 12, 14} {
		for _, distrusted := range []bool{false, true} {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				p := s.attach(t, phone.Options{})
				s.field(t, p)
				c := p.Under(live{})
				if err := c.InputText(t.Context(), "blue socks"); err != nil {
					t.Fatal(err)
				}
				for range 4 {
					if err := c.Key(t.Context(), "left"); err != nil {
						t.Fatal(err)
					}
				}
				if distrusted {
					c.Distrust(phone.Clearing)
				}
				if err := c.ClearText(t.Context(), len("blue socks")); err != nil {
					t.Fatal(err)
				}
				if got := s.text(t, p); strings.Contains(got, "bl") || strings.Contains(got, "sock") { // the hint may stand there
					t.Errorf("Android %d, distrusted %t: %q", version, distrusted, got)
				}
			})
		}
	}
}

func TestPullFromPhones(t *testing.T) {
	for _, version := range []int{7, 9, 15} {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			sh(t, s, "echo 0123456789 > '/sdcard/a file.txt'")
			var got bytes.Buffer
			if err := p.Pull(t.Context(), "/sdcard/a file.txt", &got, 11); err != nil || got.String() != "0123456789\n" {
				t.Errorf("%q, %v", got.String(), err)
			}
			if err := p.Pull(t.Context(), "/sdcard/a file.txt", &got, 10); !wire.Is(err, wire.FileTooLarge) {
				t.Errorf("too large: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := p.Pull(ctx, "/dev/zero", &got, 1<<20); !wire.Is(err, wire.FileTooLarge) {
				t.Errorf("without end: %v", err)
			}
			for _, path := range []string{"/sdcard/none", "/sdcard", "/data/data/com.phonerack.shop/x"} {
				err := p.Pull(t.Context(), path, &got, 100)
				if _, ok := errors.AsType[*adb.SyncError](err); !ok {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestOpenURLThatNobodyTakes(t *testing.T) {
	for _, version := range []int{7, 15} {
		simulated(t, version, nil, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			err := p.Under(live{}).OpenURL(t.Context(), `nobody-takes-this://x?a=1&b='$(reboot)'`, "")
			if !errors.Is(err, phone.ErrAppMissing) {
				t.Errorf("Android %d: %v", version, err)
			}
		})
	}
}

// TestReport17_ALongTextTakesSeconds: the text goes through the phone's own
// command, not through a test's, which takes up to 20 seconds for a character.
func TestReport17_ALongTextTakesSeconds(t *testing.T) {
	for _, version := range []int{11, 15} {
		simulated(t, version, func(c *android.Config) { c.Latency = 1 }, func(t *testing.T, s *stage) {
			p := s.attach(t, phone.Options{})
			s.field(t, p)
			start := time.Now()
			if err := p.Under(live{}).InputText(t.Context(), strings.Repeat("lorem ipsum ", 37)); err != nil || time.Since(start) > 17*time.Second {
				t.Errorf("Android %d: %v after %s", version, err, time.Since(start))
			}
		})
	}
}
