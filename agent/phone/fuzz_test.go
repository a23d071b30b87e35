package phone

import (
	"image"
	"strings"
	"testing"
	"unicode"
)

// FuzzState gives each parser of State anything.
func FuzzState(f *testing.F) {
	f.Add(windows8)
	f.Add(windows14 + displays14)
	f.Add("Display: mDisplayId=1\nmCurrentFocus=Window{1 u0 com.shop/com.shop.Main}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\nmTopFocusedDisplayId=1\n")
	f.Add("Physical size: 1080x2400\nOverride density: 280\nmCurrentRotation=ROTATION_90\n")
	f.Add("    init=1080x2400 420dpi base=720x1600 280dpi cur=1600x720 app=1x1\n  mRotation=1\n")
	f.Add("      showing=true\n      secure=true\n      interactiveState=INTERACTIVE_STATE_SLEEP\n deviceLocked=1\n")
	f.Add("  mInputShown=true\n  ResumedActivity: ActivityRecord{1 u0 com.shop/.Main t1}\n")
	f.Fuzz(func(t *testing.T, out string) {
		plain := func(what, s string, most int) {
			if len(s) > most || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != ' ' }) {
				t.Errorf("%s %q", what, s)
			}
		}
		within := func(what string, r image.Rectangle) {
			if r != r.Canon() || r.Min.X < -99999 || r.Max.Y > 99999 {
				t.Errorf("%s at %v", what, r)
			}
		}
		if focus, err := parseFocus(out, windowsOf(out).owners()); err == nil {
			if focus.Package == "" {
				t.Errorf("focus %+v", focus)
			}
			plain("focus", focus.Package+"/"+focus.Activity, maxComponent+1)
		}
		if focus, err := parseResumed(out); err == nil && focus.Package == "" {
			t.Errorf("resumed %+v", focus)
		}
		for _, d := range []func() (Display, error){
			func() (Display, error) { return parseSize(out) }, func() (Display, error) { return parseDisplays(out, out) },
		} {
			if d, err := d(); err == nil && (d.Width < 1 || d.Height < 1 || d.Width > maxEdge || d.Height > maxEdge || d.Rotation < 0 || d.Rotation > 3) {
				t.Errorf("display %+v", d)
			}
		}
		if turn, ok := parseRotation(out); ok && (turn < 0 || turn > 3) {
			t.Errorf("rotation %d", turn)
		}
		all := windowsOf(out)
		if all.err == nil && (len(all.all) == 0 || len(all.all) > maxWindows) {
			t.Errorf("%d windows", len(all.all))
		}
		if list, err := all.visible(focusedWindow(out)); err == nil {
			for _, w := range list {
				plain("title", w.Title, maxExcerpt+3)
				plain("package", w.Package, 256<<10)
				within("window", w.Bounds)
			}
		}
		within("keyboard", keyboardArea(all, out))
		_, _ = parseShown(out)
		if l, err := parseLock(out); err == nil && l.Secure && !l.Locked {
			t.Errorf("lock %+v", l)
		}
		_, _ = parseTrust(out)
	})
}

// FuzzReadings gives each parser of the other readings anything.
func FuzzReadings(f *testing.F) {
	f.Add(pixel)
	f.Add("  status: 2\n  level: 100\n  voltage: 13\n  temperature: 26\n")
	f.Add("Thermal Status: 1\nCurrent temperatures from HAL:\n\tTemperature{mValue=4.1E1, mType=0, mName=CPU0, mStatus=0}\n")
	f.Add("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 1000 1 999 1% /data\n4096 10 9\n")
	f.Add("  mWakefulness=Awake\nDisplay Power: state=ON\n  mStayOn=true\n")
	f.Add("package:com.shop versionCode:12\n    com.shop/.Main\n")
	f.Add("1.0 0.5\nnull 0 0 0")
	f.Add("com.own/.Ime\n")
	f.Fuzz(func(t *testing.T, out string) {
		if b, err := parseBattery(out); err == nil {
			if b.Level != Unknown && (b.Level < 0 || b.Level > 100) || b.Voltage != Unknown && (b.Voltage < minVoltage || b.Voltage > maxVoltage) ||
				b.Temperature != Unknown && (b.Temperature < minTemperature || b.Temperature > maxTemperature) {
				t.Errorf("battery %+v", b)
			}
		}
		if th, err := parseThermal(out); err == nil {
			for _, s := range th.Temperatures {
				if s.Celsius < coldest || s.Celsius > hottest || s.Celsius != s.Celsius || s.Status < 0 || s.Status > 9 || len(s.Name) > maxExcerpt+3 {
					t.Errorf("sensor %+v", s)
				}
			}
		}
		for _, s := range []func(string) (Storage, error){parseDF, parseStat} {
			if s, err := s(out); err == nil && (s.Free < 0 || s.Free > s.Total || s.Total > maxStorage) {
				t.Errorf("storage %+v", s)
			}
		}
		_, _ = parsePower(out)
		if rows, err := parsePackages(out); err == nil {
			for _, r := range rows {
				if r.Name == "" || strings.ContainsAny(r.Name, " \n/:;") || r.Version < 0 {
					t.Errorf("package %+v", r)
				}
			}
		}
		if names, err := parseLaunchers(out); err == nil && (len(names) == 0 || strings.ContainsAny(strings.Join(names, ""), " \n/;")) {
			t.Errorf("launchers %q", names)
		}
		if s := parseScales(out); s != nil {
			for _, v := range s {
				if !scaleValue.MatchString(v) {
					t.Errorf("scale %q", v)
				}
			}
		}
		if name := parseKeyboard(out); strings.ContainsAny(name, " \n';\"$(") && !strings.Contains(name, "$") || len(name) > maxComponent {
			t.Errorf("keyboard %q", name)
		}
	})
}

// FuzzWrites gives the readers of what the phone says about writes anything.
func FuzzWrites(f *testing.F) {
	f.Add("Status: ok\nError: x\njava.lang.SecurityException: y\n")
	f.Add("Success\n")
	f.Add("Failure [INSTALL_FAILED_USER_RESTRICTED: x]\n")
	f.Fuzz(func(t *testing.T, out string) {
		if err := started(out, 0); err == nil && !strings.Contains(out, "Status: ok") {
			t.Errorf("started by %q", out)
		}
		if err := installed(out); err == nil && (!strings.Contains(out, "Success") || strings.HasPrefix(out, "Failure")) {
			t.Errorf("installed by %q", out)
		}
		_ = forbidden(out)
		if e := excerpt([]byte(out)); len(e) > maxExcerpt+3 || strings.ContainsAny(e, "\n\x00\x1b") {
			t.Errorf("excerpt %q", e)
		}
	})
}

// FuzzAnswers takes apart what the phone prints for several sources.
func FuzzAnswers(f *testing.F) {
	f.Add("phonerack-aaaaaaaaaaaa-0\nx\nphonerack-aaaaaaaaaaaa-1\n", 2)
	f.Add(goodTree+"UI hierchary dumped to: /dev/tty\n", 1)
	f.Fuzz(func(t *testing.T, out string, n int) {
		if tree, err := cutTree([]byte(out)); err == nil && !strings.HasSuffix(string(tree), "</hierarchy>") {
			t.Errorf("tree %q", tree)
		}
		_ = dumpFailure([]byte(out), nil)
		if n < 1 || n > 9 {
			return
		}
		a := newAnswers()
		var sources []source
		for i := range n {
			sources = append(sources, source{name: string(rune('a' + i))})
		}
		cutAnswers(a, sources, "phonerack-aaaaaaaaaaaa-", out, nil)
		rest := 0
		for _, s := range sources {
			rest += len(a.text(s))
		}
		if len(a.said) != n || rest > len(out) {
			t.Errorf("%d answers of %d bytes", len(a.said), rest)
		}
	})
}
