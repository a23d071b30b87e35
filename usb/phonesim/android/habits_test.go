package android

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/phonesim/screen"
)

func TestReport01And02_FailedDumpLeavesTheOldFile(t *testing.T) {
	tests := []struct {
		name   string
		fault  func(*Faults)
		stderr string
	}{
		{"null root", func(f *Faults) { f.Dump = DumpNullRoot }, "ERROR: null root node returned by UiTestAutomationBridge.\n"},
		{"no idle", func(f *Faults) { f.Dump = DumpNoIdle }, "ERROR: could not get idle state.\n"},
		{"animation", func(f *Faults) { f.NeverIdle = true }, "ERROR: could not get idle state.\n"},
		{"silent", func(f *Faults) { f.Dump = DumpSilent }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPhone(t, 14, nil)
			p.ok("uiautomator dump")
			old := p.ok("cat /sdcard/window_dump.xml")
			p.screen.set(func() { p.screen.tree.Children = nil })
			p.fault(tt.fault)
			out, errOut, status := p.sh("uiautomator dump")
			if out != "" || errOut != tt.stderr || status != 0 {
				t.Errorf("%q %q %d", out, errOut, status)
			}
			if p.ok("cat /sdcard/window_dump.xml") != old {
				t.Error("the file changed")
			}
			p.fault(func(f *Faults) { *f = Faults{} })
			p.ok("uiautomator dump")
			if p.ok("cat /sdcard/window_dump.xml") == old {
				t.Error("the file did not change")
			}
		})
	}
}

func TestDumpWaitsForAnIdleScreen(t *testing.T) {
	p := newPhone(t, 14, func(c *Config) { c.Latency = 1 })
	start := p.clock.Now()
	p.ok("uiautomator dump")
	if d := p.clock.Now().Sub(start); d < time.Second || d > 2*time.Second {
		t.Errorf("an idle screen took %v", d)
	}
	p.screen.set(func() { p.screen.restless = true })
	start = p.clock.Now()
	_, errOut, _ := p.sh("uiautomator dump")
	if d := p.clock.Now().Sub(start); d < 10*time.Second || errOut != "ERROR: could not get idle state.\n" {
		t.Errorf("%v %q", d, errOut)
	}
	p.screen.set(func() { p.screen.restless = false })
	p.fault(func(f *Faults) { f.NeverIdle = true; f.SlowTree = 7 * time.Second })
	start = p.clock.Now()
	p.ok("uiautomator dump --compressed")
	if d := p.clock.Now().Sub(start); d < 8*time.Second {
		t.Errorf("a slow tree took %v", d)
	}
	p.ok("for s in window transition; do settings put global ${s}_animation_scale 0; done; settings put global animator_duration_scale 0")
	if out := p.ok("uiautomator dump"); !strings.HasPrefix(out, "UI hierchary dumped") {
		t.Errorf("without animations: %q", out)
	}
}

func TestDumpFailsAtItsRate(t *testing.T) {
	run := func() string {
		p := newPhone(t, 14, func(c *Config) { c.Faults = Faults{Dump: DumpNullRoot, DumpRate: 0.3} })
		var b strings.Builder
		for range 60 {
			out, _, _ := p.sh("uiautomator dump")
			if out == "" {
				b.WriteByte('x')
			} else {
				b.WriteByte('.')
			}
		}
		return b.String()
	}
	first := run()
	if n := strings.Count(first, "x"); n < 8 || n > 30 {
		t.Errorf("%d of 60 failed", n)
	}
	if first != run() {
		t.Error("the same seed fails differently")
	}
}

func TestDumpOfTerminalAndCutOff(t *testing.T) {
	p := newPhone(t, 9, nil)
	out := p.ok("uiautomator dump /dev/tty")
	if !strings.HasSuffix(out, "</hierarchy>UI hierchary dumped to: /dev/tty\n") {
		t.Errorf("%q", out[max(0, len(out)-80):])
	}
	p.fault(func(f *Faults) { f.NoTTY = true })
	out, errOut, status := p.sh("uiautomator dump /dev/tty")
	if out != "" || !strings.HasPrefix(errOut, "java.io.FileNotFoundException: /dev/tty") || status != 0 {
		t.Errorf("%q %q %d", out, errOut, status)
	}
	p.fault(func(f *Faults) { *f = Faults{Dump: DumpCutOff} })
	p.ok("uiautomator dump")
	if text := p.ok("cat /sdcard/window_dump.xml"); strings.Contains(text, "</hierarchy>") {
		t.Error("the document is whole")
	}
}

func TestReport11_SurrogatesByVersion(t *testing.T) {
	for version, want := range map[int]string{7: "&#55357;&#56832;", 9: "..", 11: "&#128512;", 15: "&#128512;"} {
		p := newPhone(t, version, nil)
		p.ok("uiautomator dump")
		text := p.ok("cat /sdcard/window_dump.xml")
		wantContains(t, "dump", text, `text="café 中`+want+`&#10;new."`)
		if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
			t.Errorf("Android %d: %v", version, err)
		}
	}
}

func TestTypedTextIsLostAndSwapped(t *testing.T) {
	p := newPhone(t, 14, nil)
	p.fault(func(f *Faults) { f.DropText = 0.3 })
	p.ok("input text abcdefghijklmnopqrstuvwxyz")
	if did := p.screen.take(); len(did) > 5+26 || len(did) < 15 {
		t.Errorf("dropped: %s", did)
	}
	p.fault(func(f *Faults) { *f = Faults{SwapText: 0.5} })
	p.ok("input text abcdefghijklmnopqrstuvwxyz")
	if did := p.screen.take(); len(did) != len(`type ""`)+26 || strings.Contains(did, "abcdefghijklmnopqrstuvwxyz") {
		t.Errorf("swapped: %s", did)
	}
}

func TestReport18_RefusedInput(t *testing.T) {
	for version, want := range map[int]string{9: "Injecting to another application", 14: "Injecting input events requires"} {
		p := newPhone(t, version, func(c *Config) { c.Faults.InjectDenied = true })
		for _, cmd := range []string{"input tap 1 1", "input swipe 1 1 2 2", "input text x", "input keyevent 3"} {
			_, errOut, status := p.sh(cmd)
			wantContains(t, cmd, errOut, "java.lang.SecurityException: "+want, "INJECT_EVENTS")
			if status == 0 {
				t.Errorf("%s: status 0", cmd)
			}
		}
		if did := p.screen.take(); did != "" {
			t.Errorf("did %s", did)
		}
	}
	p := newPhone(t, 14, func(c *Config) { c.Faults.SettingsDenied = true })
	for _, cmd := range []string{"settings put global x 1", "ime set " + latinIME} {
		_, errOut, status := p.sh(cmd)
		wantContains(t, cmd, errOut, "java.lang.SecurityException", "WRITE_SECURE_SETTINGS")
		if status != 255 {
			t.Errorf("%s: status %d", cmd, status)
		}
	}
}

func TestClipboardSaysNothingOrLies(t *testing.T) {
	p := newPhone(t, 14, nil)
	if _, errOut, status := p.sh("cmd clipboard set-text x"); errOut != "No shell command implementation.\n" || status != 0 {
		t.Errorf("%q %d", errOut, status)
	}
	p.fault(func(f *Faults) { f.ClipboardLie = true })
	p.ok("cmd clipboard set-text x")
}

func TestScreenshots(t *testing.T) {
	p := newPhone(t, 14, nil)
	img, err := png.Decode(strings.NewReader(p.ok("screencap -p")))
	if err != nil {
		t.Fatal(err)
	}
	want := p.screen.Render()
	got, ok := img.(*image.NRGBA)
	if !ok || got.Rect != want.Rect || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("a picture of %T, %v", img, img.Bounds())
	}
	p.fault(func(f *Faults) { f.Black = true })
	raw := p.ok("screencap")
	if len(raw) != 16+108*240*4 || strings.Count(raw[16:], "\x00\x00\x00\xff") != 108*240 {
		t.Error("not black")
	}
	p.fault(func(f *Faults) { *f = Faults{Truncate: 1000} })
	if got := p.ok("screencap"); len(got) != 1000 {
		t.Errorf("%d bytes", len(got))
	}
	p.fault(func(f *Faults) { *f = Faults{DisplayWarning: true} })
	_, errOut, status := p.sh("screencap -p")
	if !strings.HasPrefix(errOut, "[Warning] Multiple displays were found") || status != 0 {
		t.Errorf("%q %d", errOut, status)
	}
	p.ok("screencap -p -d $(dumpsys SurfaceFlinger --display-id | head -1 | cut -d' ' -f2)")
	two := newPhone(t, 15, func(c *Config) { c.Second = true })
	if out := two.ok("dumpsys SurfaceFlinger --display-id"); strings.Count(out, "\n") != 2 {
		t.Errorf("displays: %q", out)
	}
}

// exec: and the old shell have one stream for both outputs.
func TestReport06_MultiDisplayWarningBeforePNG(t *testing.T) {
	for version, warns := range map[int]bool{11: false, 12: true, 15: true} {
		p := newPhone(t, version, func(c *Config) { c.Second = true })
		var merged bytes.Buffer
		if status := p.Run(t.Context(), "screencap -p", nil, &merged, &merged); status != 0 {
			t.Errorf("status %d", status)
		}
		if at := bytes.Index(merged.Bytes(), []byte("\x89PNG")); (at > 0) != warns || (merged.Bytes()[0] == '[') != warns {
			t.Errorf("Android %d: the picture begins at %d", version, at)
		}
	}
}

func TestRawScreenshotsOfOtherFormats(t *testing.T) {
	for format, test := range map[Pixels]struct {
		bytes int
		last  string // pixel, as it is in the file: red 107, green 239, blue 7
	}{
		PixelsRGBA:    {4, "\x6b\xef\x07\xff"},
		PixelsRGB565:  {2, "\x60\x6f"},
		Pixels1010102: {4, "\xad\xfd\xce\xc1"},
	} {
		for version, header := range map[int]int{9: 12, 10: 16, 15: 16} {
			p := newPhone(t, version, func(c *Config) { c.Faults.Pixels = format })
			raw := p.ok("screencap")
			if len(raw) != header+108*240*test.bytes || raw[8] != byte(format) || raw[len(raw)-test.bytes:] != test.last {
				t.Errorf("format %#x on Android %d: %d bytes, header % x, last pixel % x", format, version, len(raw), raw[:header], raw[len(raw)-test.bytes:])
			}
		}
	}
}

func TestReport21_SecureWindowIsBlackAndItsTreeIsNot(t *testing.T) {
	p, engine := realPhone(t, 14)
	p.ok("am start -n com.android.settings/.Settings; sleep 1; input swipe 360 1300 360 700; sleep 1")
	tap := func(text string) {
		t.Helper()
		n := findText(engine.Tree(), text)
		p.ok(fmt.Sprintf("input tap %d %d; sleep 1", n.Bounds.Min.X+5, n.Bounds.Min.Y+5))
	}
	tap("Security")
	tap("Screen lock")
	img, err := png.Decode(strings.NewReader(p.ok("screencap -p")))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := img.At(360, 400).RGBA(); r|g|b != 0 {
		t.Error("the secure window can be seen")
	}
	wantContains(t, "tree", p.ok("uiautomator dump /dev/tty"), "com.android.settings:id/pin_entry")
	wantContains(t, "windows", p.ok("dumpsys window windows"), " SECURE")
}

func findText(n *screen.Node, text string) *screen.Node {
	if n == nil || n.Text == text {
		return n
	}
	for _, c := range n.Children {
		if f := findText(c, text); f != nil {
			return f
		}
	}
	return nil
}

func TestReport14_FocusInTransitionAndOnTwoDisplays(t *testing.T) {
	p := newPhone(t, 14, nil)
	p.ok("am start -n com.phonerack.shop/.MainActivity; dumpsys window displays")
	p.screen.set(func() { p.screen.moving = true })
	wantContains(t, "focus", p.ok("dumpsys window displays"), "mCurrentFocus=null\n", "com.phonerack.shop/.MainActivity")
	wantContains(t, "resumed", p.ok("dumpsys activity activities"), "topResumedActivity=null")
	p.screen.set(func() { p.screen.moving = false })
	p.fault(func(f *Faults) { f.ExtraFocus = true })
	out := p.ok("dumpsys window displays")
	if strings.Count(out, "mCurrentFocus=") != 3 || strings.Count(out, "mCurrentFocus=null") != 1 {
		t.Errorf("focus lines in\n%s", out)
	}
	p.fault(func(f *Faults) { *f = Faults{NullFocus: true} })
	wantContains(t, "focus", p.ok("dumpsys window"), "mCurrentFocus=null\n")
}

func TestBatteryReadings(t *testing.T) {
	p := newPhone(t, 14, nil)
	r := p.Battery()
	r.Level, r.Temperature, r.Status = 12, 391, 3
	p.SetBattery(r)
	wantContains(t, "battery", p.ok("dumpsys battery"), "  level: 12\n", "  temperature: 391\n", "  status: 3\n")
	p.ok("dumpsys battery set temp 100")
	r.Temperature = 450
	p.SetBattery(r)
	wantContains(t, "faked", p.ok("dumpsys battery"), "UPDATES STOPPED", "  temperature: 100\n")
	if p.Battery().Temperature != 450 {
		t.Error("the fake reached the battery")
	}
	p.ok("dumpsys battery reset")
	p.fault(func(f *Faults) { f.Battery.OddUnits = true })
	wantContains(t, "odd", p.ok("dumpsys battery"), "  voltage: 4\n", "  temperature: 45\n")
	p.fault(func(f *Faults) { f.Battery = BatteryFaults{Repeat: true} })
	if out := p.ok("dumpsys battery"); strings.Count(strings.ToLower(out), "charge counter:") != 2 || strings.Count(out, "  level:") != 2 {
		t.Errorf("no repeated keys in\n%s", out)
	}
	p.SetThermal(3)
	wantContains(t, "thermal", p.ok("dumpsys thermalservice"), "Thermal Status: 3\n", "mValue=45.0, mType=2")
}

func TestFullStorage(t *testing.T) {
	p := newPhone(t, 14, nil)
	p.ok("echo kept > /sdcard/old")
	p.fault(func(f *Faults) { f.StorageFull = true })
	_, errOut, status := p.sh("echo x > /data/local/tmp/x")
	if status != 1 || !strings.Contains(errOut, "No space left on device") {
		t.Errorf("%q %d", errOut, status)
	}
	if out, _, _ := p.sh("uiautomator dump; wc -c < /sdcard/window_dump.xml"); out != "UI hierchary dumped to: /sdcard/window_dump.xml\n0\n" {
		t.Errorf("a dump that does not fit: %q", out)
	}
	w, err := p.CreateFile("/data/local/tmp/push", 0o644, p.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("push: %v", err)
	}
	w.(interface{ Abandon() }).Abandon()
	wantContains(t, "df", p.ok("df"), "100% /data\n")
	p.fault(func(f *Faults) { f.StorageFull = false })
	p.ok("echo x > /data/local/tmp/x; cat /sdcard/old")
}

func TestCommandsTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPhone(t, 14, func(c *Config) { c.Latency, c.Clock, c.Sleep = 1, nil, nil })
		for cmd, want := range map[string]time.Duration{
			"input tap 1 1": 200 * time.Millisecond, "input swipe 1 1 1 90 1500": 1700 * time.Millisecond,
			"sleep 2.5": 2500 * time.Millisecond, "echo": 0,
		} {
			start := time.Now()
			p.ok(cmd)
			if d := time.Since(start); d != want {
				t.Errorf("%s took %v, want %v", cmd, d, want)
			}
		}
		if status := p.Run(t.Context(), "timeout 1 sleep 100", nil, io.Discard, io.Discard); status != 124 {
			t.Errorf("timeout: %d", status)
		}
	})
}

func TestRestart(t *testing.T) {
	p := newPhone(t, 14, nil)
	p.ok("echo x > /sdcard/kept; dumpsys battery set level 1; am start -n com.phonerack.shop/.MainActivity")
	id := p.ok("cat /proc/sys/kernel/random/boot_id")
	p.clock.Sleep(t.Context(), time.Hour)
	wantContains(t, "uptime", p.ok("cat /proc/uptime"), "3600.")
	p.Restart()
	if p.ok("cat /proc/sys/kernel/random/boot_id") == id {
		t.Error("same boot id")
	}
	wantContains(t, "uptime", p.ok("cat /proc/uptime"), "0.00 ")
	if out := p.ok("cat /sdcard/kept; dumpsys battery | grep -c STOPPED || true; pidof com.phonerack.shop || true"); out != "x\n0\n" {
		t.Errorf("after the restart: %q", out)
	}
	var target string
	q := newPhone(t, 14, func(c *Config) { c.Reboot = func(s string) { target = s } })
	q.ok("svc power reboot bootloader")
	if target != "bootloader" {
		t.Errorf("reboot to %q", target)
	}
}

func TestInteractiveShell(t *testing.T) {
	p := newPhone(t, 14, nil)
	var out, errOut bytes.Buffer
	const typed = "cd /sdcard\npwd\nexit 4\n"
	if status := p.Run(t.Context(), "", strings.NewReader(typed), &out, &errOut); status != 4 {
		t.Errorf("status %d", status)
	}
	if out.String() != "/sdcard\n" || errOut.String() != "" {
		t.Errorf("%q %q", &out, &errOut)
	}
	out.Reset()
	p.Run(t.Context(), "", strings.NewReader(typed), &out, &out)
	if out.String() != "rackone:/ $ rackone:/sdcard $ /sdcard\nrackone:/sdcard $ " {
		t.Errorf("on a terminal: %q", &out)
	}
}
