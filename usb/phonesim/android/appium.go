package android

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf16"

	"phonerack/usb/phonesim/android/toybox"
)

// Appium's Settings app and its input methods (github.com/appium/io.appium.settings).
const (
	settingsApp = "io.appium.settings"
	unicodeIME  = settingsApp + "/.UnicodeIME"
	actionIME   = settingsApp + "/.AppiumIME"
	emptyIME    = settingsApp + "/.EmptyIME"
)

// keyless are the input methods that show no keys.
var keyless = []string{unicodeIME, actionIME, emptyIME}

// method returns the current input method.
func (d *Device) currentMethod() string {
	method, _ := d.setting("secure", "default_input_method")
	return method
}

// typeText brings typed characters to the input method, which passes them on as it likes.
func (d *Device) typeText(text string) error {
	switch d.currentMethod() {
	case unicodeIME:
		return d.typeUTF7(text)
	case actionIME:
		return d.typeAction(text)
	}
	return d.screen.Type(text)
}

// typeUTF7 is Appium's Unicode keyboard: what stands between & and - is modified UTF-7 (RFC 3501, 5.1.3), which it
// collects and commits decoded. What has no end waits for it. What is no printable ASCII goes to the app.
func (d *Device) typeUTF7(text string) error {
	d.mu.Lock()
	shifted := d.shifted
	d.mu.Unlock()
	var out strings.Builder
	flush := func() error {
		s := out.String()
		out.Reset()
		if s == "" {
			return nil
		}
		return d.screen.Commit(s)
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case shifted != "" && c == '-':
			out.WriteString(decodeUTF7(shifted + "-"))
			shifted = ""
		case shifted != "":
			shifted += string(c)
		case c == '&':
			shifted = "&"
		case c >= 0x20 && c <= 0x7e:
			out.WriteByte(c)
		default:
			if err := flush(); err != nil {
				return err
			}
			if err := d.screen.Type(string(c)); err != nil {
				return err
			}
		}
	}
	d.mu.Lock()
	d.shifted = shifted[:min(len(shifted), maxShifted)]
	d.mu.Unlock()
	return flush()
}

// maxShifted bounds what the keyboard collects, in characters.
const maxShifted = 20000

// decodeUTF7 decodes "&...-"; what is none is left as it is.
func decodeUTF7(s string) string {
	inner := s[1 : len(s)-1]
	if inner == "" {
		return "&"
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.ReplaceAll(inner, ",", "/"))
	if err != nil || len(raw)%2 != 0 || strings.ContainsAny(inner, "/\r\n") {
		return s
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return string(utf16.Decode(units))
}

// editorActions are the names that AppiumIME knows; true are those that press the key at the keyboard's corner.
var editorActions = map[string]bool{
	"normal": true, "unspecified": true, "none": false, "go": true, "search": true, "send": true, "next": true, "done": true, "previous": true,
	"0": true, "1": false, "2": true, "3": true, "4": true, "5": true, "6": true, "7": true,
}

// typeAction is Appium's keyboard of actions: "/search/" does what the name says, an unknown name is typed.
func (d *Device) typeAction(text string) error {
	for {
		before, rest, found := strings.Cut(text, "/")
		if before != "" {
			if err := d.screen.Type(before); err != nil {
				return err
			}
		}
		name, after, ends := strings.Cut(rest, "/")
		if !found || !ends {
			return nil // what has begun is not typed
		}
		acts, known := editorActions[strings.ToLower(name)]
		switch {
		case !known:
			if err := d.screen.Commit(name); err != nil {
				return err
			}
		case acts:
			d.screen.Key(keyEnter)
		}
		text = after
	}
}

// wakeSettings notes that the Settings app was started by somebody; its activity closes itself at once.
func (d *Device) wakeSettings() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settingsUp, d.settingsStopped = true, false
}

// clipboardAction is what the Settings app answers with the clipboard.
const clipboardAction = settingsApp + ".clipboard.get"

// broadcast sends an intent to receivers. Only the Settings app has one that answers: if it runs, or if it is named
// and was not stopped, unless the sender asks for stopped packages, too.
func (c *call) broadcast(args []string) int {
	in, _ := parseIntent(args)
	in.flags = "0x400000"
	c.printf("Broadcasting: %s\n", in.String())
	_, installed := c.find(settingsApp)
	c.mu.Lock()
	stopped := c.settingsStopped && !slices.Contains(args, "--include-stopped-packages")
	hears := installed && (c.settingsUp || in.target() == settingsApp && !stopped)
	c.settingsStopped = c.settingsStopped && !hears // a package that receives is a stopped one no more
	c.mu.Unlock()
	if in.action != clipboardAction || !hears {
		c.printf("Broadcast completed: result=0\n")
		return 0
	}
	// From Android 10 on only the input method in use and the app in front may read the clipboard.
	text := ""
	if method := c.currentMethod(); c.release.version < 10 || strings.HasPrefix(method, settingsApp+"/") || c.inFront(settingsApp) {
		text = c.screen.Clipboard()
	}
	c.printf("Broadcast completed: result=-1, data=\"%s\"\n", base64.StdEncoding.EncodeToString([]byte(text)))
	return 0
}

// startService starts a service of a package that somebody installed; services do nothing here.
func (c *call) startService(args []string) int {
	in, _ := parseIntent(args)
	c.printf("Starting service: %s\n", in.String())
	pkg, class, _ := strings.Cut(in.component, "/")
	c.mu.Lock()
	p := c.installed[pkg]
	c.mu.Unlock()
	if p == nil || !p.has(longActivity(pkg, class)) {
		c.errorf("Error: Not found; no service started.\n")
		return exitMinus1
	}
	if pkg == settingsApp {
		c.wakeSettings()
	}
	return 0
}

// has tells whether a package has a service.
func (p *installed) has(service string) bool {
	for _, s := range p.manifest.Services {
		if s.Name == service {
			return true
		}
	}
	return false
}

// helpers are the processes of Appium's apps, which have no windows.
func (d *Device) helpers() (list []process) {
	d.mu.Lock()
	var names []string
	if d.automation != nil && d.automation.server != nil {
		names = append(names, serverPackage)
	}
	if d.settingsUp {
		names = append(names, settingsApp)
	}
	d.mu.Unlock()
	for _, name := range slices.Sorted(slices.Values(names)) {
		if a, ok := d.find(name); ok {
			list = append(list, process{toybox.UserName(a.uid), d.pid(name), 412, name})
		}
	}
	return list
}
