package appium

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

func TestInstallPutsWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		there map[string]string
		want  int
	}{
		"nothing there":   {nil, 3},
		"all there":       {map[string]string{serverID: "10.6.6 278", testID: "- 0", settingsID: "8.0.10 192"}, 0},
		"older server":    {map[string]string{serverID: "10.6.5 277", testID: "- 0", settingsID: "8.0.10 192"}, 2},
		"no companion":    {map[string]string{serverID: "10.6.6 278", settingsID: "8.0.10 192"}, 1},
		"newer settings":  {map[string]string{serverID: "10.6.6 278", testID: "- 0", settingsID: "9.0.0 300"}, 1},
		"same name, code": {map[string]string{serverID: "10.6.6 999", testID: "- 0", settingsID: "8.0.10 192"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				if c.there != nil {
					f.apps = c.there
				}
				h, files := helperOf(t, f)
				fence := live()
				if err := h.Install(t.Context(), fence, files); err != nil {
					t.Fatal(err)
				}
				installs := f.did("cmd package install")
				if len(installs) != c.want || fence.asked != c.want {
					t.Errorf("%d installations, %d questions to the fence, want %d", len(installs), fence.asked, c.want)
				}
				if s, err := h.Status(t.Context()); err != nil || !installed(s) {
					t.Errorf("%+v, %v", s, err)
				}
				for _, cmd := range f.writes() {
					if !strings.HasPrefix(cmd, "cmd package install -r -t -S ") {
						t.Errorf("changed the phone by %q", cmd)
					}
				}
			})
		})
	}
}

// TestInstallTakesPinnedFilesOnly: a file is checked right before it is sent,
// and what is checked is what is sent.
func TestInstallTakesPinnedFilesOnly(t *testing.T) {
	for name, spoil := range map[string]func(fstest.MapFS, string){
		"missing": func(files fstest.MapFS, at string) { delete(files, at) },
		"altered": func(files fstest.MapFS, at string) { files[at].Data[7] ^= 1 },
		"longer":  func(files fstest.MapFS, at string) { files[at].Data = append(files[at].Data, 0) },
		"shorter": func(files fstest.MapFS, at string) { files[at].Data = files[at].Data[1:] },
		"empty":   func(files fstest.MapFS, at string) { files[at].Data = nil },
		"a folder": func(files fstest.MapFS, at string) {
			files[at] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				h, files := helperOf(t, f)
				spoil(files, h.packages[0].Folder()+"/"+h.packages[0].Apps[0].File)
				err := h.Install(t.Context(), live(), files)
				if !errors.Is(err, ErrBadFile) || !wire.Is(err, wire.HelperFile) || len(f.writes()) != 0 {
					t.Errorf("error %v, writes %q", err, f.writes())
				}
			})
		})
	}
}

func TestInstallOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		phone func(*fake)
		is    error // nil for success
	}{
		"the installer refuses":           {func(f *fake) { f.verdict = "Failure [INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match]\n" }, phone.ErrRejected},
		"no room":                         {func(f *fake) { f.verdict = "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]\n" }, phone.ErrRejected},
		"an exception":                    {func(f *fake) { f.verdict = "Exception occurred while executing 'install':\n" }, phone.ErrRejected},
		"cut while bytes are sent":        {func(f *fake) { f.swallow = 5 }, phone.ErrRejected},
		"no answer, and not installed":    {func(f *fake) { f.verdict, f.mute = "Failure [X]\n", true }, phone.ErrUnknownOutcome},
		"no answer, but it is there":      {func(f *fake) { f.mute = true }, nil},
		"too old":                         {func(f *fake) { f.sdk = 24 }, ErrNotSupported},
		"the version cannot be read":      {func(f *fake) { f.sdk = 0 }, phone.ErrMalformed},
		"the shell is cut while it looks": {func(f *fake) { f.answering = cutting("pm path") }, errCut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				c.phone(f)
				h, files := helperOf(t, f)
				err := h.Install(t.Context(), live(), files)
				if strings.Contains(f.verdict, "INCOMPATIBLE") && !strings.Contains(err.Error(), "remove the helper apps first") {
					t.Errorf("error %v", err)
				}
				if strings.Contains(f.verdict, "INSTALL_FAILED") != wire.Is(err, wire.InstallFailed) {
					t.Errorf("error %v", err)
				}
				if !errors.Is(err, c.is) || errors.Is(err, phone.ErrUnknownOutcome) != (c.is == phone.ErrUnknownOutcome) {
					t.Errorf("error %v, want %v", err, c.is)
				}
			})
		})
	}
}

// TestSilentInstallerOfAnAppWithoutAVersion: that it was there before proves
// nothing.
func TestSilentInstallerOfAnAppWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.apps[serverID], f.muteFor = "10.6.5 277", testID
		h, files := helperOf(t, f)
		if err := h.Install(t.Context(), live(), files); !errors.Is(err, phone.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
	})
}

// cutting fails commands that begin so.
func cutting(prefix string) func(string) (adb.Result, error, bool) {
	return func(cmd string) (adb.Result, error, bool) {
		return adb.Result{}, errCut, strings.HasPrefix(cmd, prefix)
	}
}

// TestReport22_InstallationForbidden: the sentence names the setting.
func TestReport22_InstallationForbidden(t *testing.T) {
	for verdict, setting := range map[string]string{
		"Failure [INSTALL_FAILED_USER_RESTRICTED: Install canceled by user]\n": "Install via USB",
		"Failure [INSTALL_FAILED_VERIFICATION_FAILURE]\n":                      "Verify apps over USB",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.verdict = verdict
			h, files := helperOf(t, f)
			err := h.Install(t.Context(), live(), files)
			if !errors.Is(err, ErrInstallBlocked) || !wire.Is(err, wire.PhoneSetup) || !strings.Contains(err.Error(), setting) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestInstallAsksTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		h, files := helperOf(t, f)
		if err := h.Install(t.Context(), &lease{left: 1}, files); !errors.Is(err, errOver) || len(f.writes()) != 1 {
			t.Errorf("error %v, writes %q", err, f.writes())
		}
		if err := h.Install(t.Context(), nil, files); !errors.Is(err, phone.ErrNoFence) || len(f.writes()) != 1 {
			t.Errorf("error %v, writes %q", err, f.writes())
		}
	})
}

// TestInstallEndsTheServer: the apps are not exchanged below a running server.
func TestInstallEndsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.apps[serverID] = "10.6.5 277" })
		_, files := helperOf(t, f)
		if err := h.Install(t.Context(), live(), files); err != nil || h.Running() {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
	})
}

func TestRemoveLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.ime, f.record = unicodeIME, latin+"\n" })
		if err := h.Remove(t.Context(), live()); err != nil {
			t.Fatal(err)
		}
		if len(f.apps) != 0 || f.ime != latin || f.record != "" || slices.Contains(f.enabled, unicodeIME) || h.Running() {
			t.Errorf("apps %v, input method %s of %q, record %q", f.apps, f.ime, f.enabled, f.record)
		}
		before := len(f.writes())
		if err := h.Remove(t.Context(), live()); err != nil || len(f.writes()) != before {
			t.Errorf("a second time: %v, %q", err, f.writes()[before:])
		}
	})
}

func TestRemoveOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		phone func(*fake)
		fence phone.Fence
		is    error
	}{
		"the phone keeps an app":           {func(f *fake) { f.keep = true }, live(), phone.ErrRejected},
		"no answer, and it is still there": {func(f *fake) { f.answering = cutting("pm uninstall") }, live(), phone.ErrUnknownOutcome},
		"something else listens":           {func(f *fake) { f.squatter = true }, live(), ErrStillThere},
		"lease over":                       {func(*fake) {}, &lease{}, errOver},
		"no lease":                         {func(*fake) {}, nil, phone.ErrNoFence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				c.phone(f)
				h, _ := helperOf(t, f)
				if err := h.Remove(t.Context(), c.fence); !errors.Is(err, c.is) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
	t.Run("no answer, but it is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			f.answering = func(cmd string) (adb.Result, error, bool) {
				id, ok := strings.CutPrefix(cmd, "pm uninstall ")
				if ok {
					f.set(func() { delete(f.apps, id) })
				}
				return adb.Result{}, context.DeadlineExceeded, ok
			}
			h, _ := helperOf(t, f)
			if err := h.Remove(t.Context(), live()); err != nil {
				t.Error(err)
			}
		})
	})
}
