package appium

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/phonetest"
	"phonerack/usb/phonesim/screen"
)

const shop = "com.phonerack.shop"

// stage is a simulated phone, connected through the real host protocol.
type stage struct {
	conn   *adb.Conn
	engine *screen.Engine
	device *android.Device
}

// simulated runs test with a simulated phone, in a time of its own.
func simulated(t *testing.T, version int, test func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := phonetest.Start(t, phonetest.Config{Android: version})
		conn, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		test(t, &stage{conn: conn, engine: sim.Engine, device: sim.Device})
	})
}

// packed is the pinned release with packages that a simulated phone takes: zip
// files with a binary manifest.
func packed(t *testing.T) ([]Package, fstest.MapFS) {
	t.Helper()
	server, tests := apktest.Server()
	manifests := map[string]apk.Manifest{serverID: server, testID: tests, settingsID: apktest.Settings()}
	packages, files := Packages(), fstest.MapFS{}
	for i := range packages {
		p := &packages[i]
		for j := range p.Apps {
			a := &p.Apps[j]
			b := apktest.Build(manifests[a.ID])
			sum := sha256.Sum256(b)
			a.Size, a.SHA256 = int64(len(b)), hex.EncodeToString(sum[:])
			files[p.Folder()+"/"+a.File] = &fstest.MapFile{Data: b}
		}
	}
	return packages, files
}

// user is whoever uses the phone: a phone with a helper.
type user struct {
	*stage
	helper   *Helper
	phone    *phone.Phone
	controls *phone.Controls
	observer *perception.Observer
	files    fstest.MapFS
}

func (s *stage) user(t *testing.T) *user {
	t.Helper()
	u := &user{stage: s, helper: New(s.conn, Options{})}
	u.helper.packages, u.files = packed(t)
	var err error
	if u.phone, err = phone.Attach(t.Context(), s.conn, phone.Options{Helpers: u.helper}); err != nil {
		t.Fatal(err)
	}
	u.controls = u.phone.Under(live())
	u.observer = perception.NewObserver(u.phone, perception.Options{})
	return u
}

// start starts the server as its owner does: while nobody reads the screen.
func (u *user) start(t *testing.T) {
	t.Helper()
	err := u.phone.Still(t.Context(), func(ctx context.Context) error { return u.helper.Start(ctx, live()) })
	if err != nil {
		t.Fatal(err)
	}
}

func (u *user) observe(t *testing.T) *perception.Scene {
	t.Helper()
	s, err := u.observer.Observe(t.Context(), perception.Want{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fieldOf(t *testing.T, s *perception.Scene) perception.Element {
	t.Helper()
	i := slices.IndexFunc(s.Elements, func(e perception.Element) bool { return e.Role == perception.RoleEdit })
	if i < 0 {
		t.Fatalf("no field in %s", s.Prompt())
	}
	return s.Elements[i]
}

// byServer reports who gave a tree: the server names elements after their
// classes.
func byServer(tree []byte) bool { return !strings.Contains(string(tree), "<node ") }

// TestLifeOnASimulatedPhone: install, start, read, type, copy, stop, read in the
// phone's own way, remove.
func TestLifeOnASimulatedPhone(t *testing.T) {
	for _, version := range []int{8, 10, 14} {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, func(t *testing.T, s *stage) {
				u := s.user(t)
				if err := u.helper.Install(t.Context(), live(), u.files); err != nil {
					t.Fatal(err)
				}
				if status, err := u.helper.Status(t.Context()); err != nil || !installed(status) || status.Listening {
					t.Fatalf("%+v, %v", status, err)
				}
				if err := u.controls.Launch(t.Context(), shop); err != nil {
					t.Fatal(err)
				}
				before, err := u.phone.Tree(t.Context())
				if err != nil || byServer(before) {
					t.Fatalf("the phone's own dumper: %v", err)
				}

				u.start(t)
				tree, err := u.phone.Tree(t.Context())
				if err != nil || !byServer(tree) {
					t.Fatalf("%v, %s", err, tree)
				}
				u.sameScreen(t, before, tree)
				u.typesEverything(t)
				u.copies(t)

				if err := u.helper.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tree, err = u.phone.Tree(t.Context()); err != nil || byServer(tree) {
					t.Errorf("the phone's own dumper afterwards: %v", err)
				}
				if err := u.helper.Remove(t.Context(), live()); err != nil {
					t.Fatal(err)
				}
				status, err := u.helper.Status(t.Context())
				if err != nil || slices.ContainsFunc(status.Apps, func(i Installed) bool { return i.Present }) || ours(status.Keyboard) || status.Listening {
					t.Errorf("%+v, %v", status, err)
				}
				if r, err := s.conn.Shell(t.Context(), "ls /data/local/tmp"); err != nil || len(r.Stdout) != 0 {
					t.Errorf("files are left: %q, %v", r.Stdout, err)
				}
			})
		})
	}
}

// sameScreen: what can be touched or read in the phone's own tree is in the
// server's, too.
func (u *user) sameScreen(t *testing.T, own, server []byte) {
	t.Helper()
	for _, attribute := range []string{"text=", "content-desc=", "resource-id="} {
		for part := range strings.SplitSeq(string(own), attribute+`"`) {
			value, _, ok := strings.Cut(part, `"`)
			if ok && value != "" && !strings.HasPrefix(value, "<") && !strings.Contains(string(server), `"`+value+`"`) {
				t.Errorf("%s%q is missing", attribute, value)
			}
		}
	}
}

// typesEverything types into the shop's search field and reads it back.
func (u *user) typesEverything(t *testing.T) {
	t.Helper()
	field := fieldOf(t, u.observe(t))
	at := field.Bounds.Min.Add(field.Bounds.Max).Div(2)
	if err := u.controls.Tap(t.Context(), at.X, at.Y); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, text := range []string{"价格", " مرحبا", " שלום", " \U0001F600\U0001F469\u200D\U0001F467", " R&D 100%s"} {
		if err := u.controls.InputText(t.Context(), text); err != nil {
			t.Fatalf("type %q: %v", text, err)
		}
		want += text
		if field := fieldOf(t, u.observe(t)); field.Text != want {
			t.Fatalf("typed %q, want %q", field.Text, want)
		}
	}
	k, err := u.helper.conn.keyboards(t.Context())
	if err != nil || ours(k.current) || slices.Contains(k.enabled, unicodeIME) || k.recorded != "" {
		t.Errorf("keyboards %+v, %v", k, err)
	}
}

func (u *user) copies(t *testing.T) {
	t.Helper()
	const text = "复制 \U0001F600\n&"
	if err := u.controls.SetClipboard(t.Context(), text); err != nil {
		t.Errorf("set the clipboard: %v", err)
	}
	if got, err := u.phone.Clipboard(t.Context()); err != nil || got != text {
		t.Errorf("clipboard %q, %v", got, err)
	}
}

// TestOldPhoneIsRefused in one sentence, and works as before.
func TestOldPhoneIsRefused(t *testing.T) {
	simulated(t, 7, func(t *testing.T, s *stage) {
		u := s.user(t)
		err := u.helper.Install(t.Context(), live(), u.files)
		if !errors.Is(err, ErrNotSupported) || !wire.Is(err, wire.AndroidTooOld) || !strings.Contains(err.Error(), "8.0") {
			t.Errorf("install: %v", err)
		}
		if err := u.helper.Start(t.Context(), live()); !errors.Is(err, ErrNotSupported) {
			t.Errorf("start: %v", err)
		}
		if tree, err := u.phone.Tree(t.Context()); err != nil || byServer(tree) {
			t.Errorf("tree: %v", err)
		}
	})
}

// running is a user whose server runs, in front of the shop.
func (s *stage) running(t *testing.T) *user {
	t.Helper()
	u := s.user(t)
	if err := u.helper.Install(t.Context(), live(), u.files); err != nil {
		t.Fatal(err)
	}
	if err := u.controls.Launch(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	u.start(t)
	return u
}

func (u *user) faults(change func(*android.Faults)) { u.device.ChangeFaults(change) }

// TestReport03_VideoOnASimulatedPhone: a screen that never rests has a tree.
func TestReport03_VideoOnASimulatedPhone(t *testing.T) {
	simulated(t, 14, func(t *testing.T, s *stage) {
		u := s.running(t)
		u.faults(func(f *android.Faults) { f.NeverIdle = true })
		begun := time.Now()
		if tree, err := u.phone.Tree(t.Context()); err != nil || !byServer(tree) || time.Since(begun) > time.Second {
			t.Errorf("by the server %t after %s, %v", byServer(tree), time.Since(begun), err)
		}
		u.stop(t)
	})
}

func (u *user) stop(t *testing.T) {
	t.Helper()
	if err := u.helper.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFaultsOfASimulatedServer: whatever is wrong with the server, the phone
// still gives trees, and true ones.
func TestFaultsOfASimulatedServer(t *testing.T) {
	for name, fault := range map[string]func(*android.Faults){
		"crashes":                   func(f *android.Faults) { f.Server.Crash = true },
		"hangs":                     func(f *android.Faults) { f.Server.Hang = true },
		"UiAutomation disconnected": func(f *android.Faults) { f.Server.Error = 1 },
		"dead object":               func(f *android.Faults) { f.Server.Error = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, 14, func(t *testing.T, s *stage) {
				u := s.running(t)
				u.faults(fault)
				tree, err := u.phone.Tree(t.Context())
				if err != nil || byServer(tree) || u.helper.Running() {
					t.Errorf("running %t, by the server %t, %v", u.helper.Running(), byServer(tree), err)
				}
				u.faults(func(f *android.Faults) { *f = android.Faults{} })
				if err := pause(t.Context(), time.Minute); err != nil { // the phone has had enough of it for a while
					t.Fatal(err)
				}
				u.start(t)
				if tree, err = u.phone.Tree(t.Context()); err != nil || !byServer(tree) {
					t.Errorf("by the server %t, %v", byServer(tree), err)
				}
				u.stop(t)
			})
		})
	}
}

// TestReport09_StaleServerOnASimulatedPhone: the runner waits for an act to show;
// what it sees is what is there.
func TestReport09_StaleServerOnASimulatedPhone(t *testing.T) {
	simulated(t, 14, func(t *testing.T, s *stage) {
		u := s.running(t)
		before := u.observe(t)
		u.faults(func(f *android.Faults) { f.Server.Stale = true })
		if err := u.controls.Key(t.Context(), "home"); err != nil {
			t.Fatal(err)
		}
		if err := pause(t.Context(), 1500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		after := u.observe(t)
		if after.Hash == before.Hash || after.Package == shop || len(after.Elements) > 0 && after.Elements[0].Package == shop {
			t.Errorf("an old scene: %s", after.Prompt())
		}
		u.stop(t)
	})
}

// TestReport12_ServerOfAnEarlierProgram holds the phone's UiAutomation until
// somebody ends it.
func TestReport12_ServerOfAnEarlierProgram(t *testing.T) {
	simulated(t, 14, func(t *testing.T, s *stage) {
		first := s.running(t)
		second := New(s.conn, Options{})
		second.packages, _ = packed(t)
		if err := second.Recover(t.Context(), live()); err != nil {
			t.Fatal(err)
		}
		p, err := phone.Attach(t.Context(), s.conn, phone.Options{Helpers: second})
		if err != nil {
			t.Fatal(err)
		}
		if tree, err := p.Tree(t.Context()); err != nil || byServer(tree) {
			t.Errorf("by the server %t, %v", byServer(tree), err)
		}
		first.stop(t)
	})
}
