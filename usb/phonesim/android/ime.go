package android

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The input methods that a phone comes with.
const (
	latinIME  = "com.google.android.inputmethod.latin/com.android.inputmethod.latin.LatinIME"
	voiceIME  = "com.google.android.tts/com.google.android.apps.speech.tts.googletts.settings.asr.voiceime.VoiceInputMethodService"
	pinyinIME = "com.google.android.inputmethod.pinyin/.PinyinIME"
)

func imeCommand(c *call) int {
	if !c.spend(90 * time.Millisecond) {
		return exitKilled
	}
	verb := c.arg(0)
	name := lastName(c.args[min(1, len(c.args)):])
	switch verb {
	case "list":
		return c.imeList()
	case "enable", "disable", "set", "reset":
	default:
		c.errorf("usage: ime list [-a] [-s]\n       ime enable ID\n       ime disable ID\n       ime set ID\n       ime reset\n")
		return c.javaStatus()
	}
	if c.Faults().SettingsDenied {
		return c.exception(verb, "java.lang.SecurityException: Calling user does not have permission WRITE_SECURE_SETTINGS",
			"com.android.server.inputmethod.InputMethodManagerService.onShellCommand(InputMethodManagerService.java:5490)")
	}
	enabled, known := c.method(name)
	switch {
	case verb == "reset":
		c.mu.Lock()
		for n := range c.methods {
			c.methods[n] = n == latinIME || n == voiceIME
		}
		c.mu.Unlock()
		c.selectIME(latinIME)
		c.printf("Reset current and enabled IMEs for user #0\n  Selected: %s\n  Enabled: %s\n  Enabled: %s\n", latinIME, latinIME, voiceIME)
	case !known && verb == "set", !enabled && verb == "set":
		c.errorf("Unknown input method %s cannot be selected for user #0\n", name)
	case !known:
		c.errorf("Unknown input method %s cannot be %sd for user #0\n", name, verb)
	case verb == "set":
		c.selectIME(name)
		c.printf("Input method %s selected for user #0\n", name)
	default:
		c.mu.Lock()
		c.methods[name] = verb == "enable"
		c.mu.Unlock()
		c.selectIME("")
		state := "already "
		if enabled != (verb == "enable") {
			state = "now "
		}
		c.printf("Input method %s: %s%sd for user #0\n", name, state, verb)
	}
	return 0
}

// methodDelay is how long after an installation the input method service learns of a new method.
const methodDelay = 700 * time.Millisecond

// method tells whether a method is enabled, and known at all.
func (c *call) method(name string) (enabled, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	enabled, known = c.methods[name]
	since, fresh := c.fresh[name]
	if !fresh {
		return enabled, known
	}
	if c.faults.LateMethod || c.now().Before(since) {
		if c.faults.LateMethod {
			delete(c.fresh, name)
		}
		return false, false
	}
	delete(c.fresh, name)
	return enabled, known
}

// selectIME makes a method the current one, if one is given, and keeps the settings in step.
func (d *Device) selectIME(name string) {
	defer d.showTyping()
	d.mu.Lock()
	defer d.mu.Unlock()
	if name != "" {
		d.settings["secure"]["default_input_method"] = name
		d.shifted = ""
	}
	var enabled []string
	for _, n := range slices.Sorted(maps.Keys(d.methods)) {
		if d.methods[n] {
			enabled = append(enabled, n)
		}
	}
	d.settings["secure"]["enabled_input_methods"] = strings.Join(enabled, ":")
}

func (c *call) imeList() int {
	all, short := false, false
	for _, a := range c.args[1:] {
		all = all || strings.Contains(a, "a")
		short = short || strings.Contains(a, "s")
	}
	c.mu.Lock()
	methods := maps.Clone(c.methods)
	for name, since := range c.fresh {
		if c.now().Before(since) {
			delete(methods, name)
		}
	}
	c.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(methods)) {
		if !methods[n] && !all {
			continue
		}
		if short {
			c.printf("%s\n", n)
			continue
		}
		c.printf("mId=%s mSettingsActivityName=null mIsDefaultResId=0x0\n  mIsVrOnly=false mSupportsSwitchingToNextInputMethod=true\n", n)
	}
	return 0
}

// dumpInputMethod tells of the keyboard. One without keys counts as shown, though nothing of it is to be seen.
func dumpInputMethod(c *call, _ []string) int {
	visible, wanted := c.screen.Keyboard(), c.screen.Typing()
	method := c.currentMethod()
	now, _ := c.focused()
	client := "null"
	if !now.null() {
		client = now.pkg
	}
	c.printf("Current Input Method Manager state:\n  Input Methods: mMethodMapUpdateCount=1\n  InputMethod #0:\n    mId=%s\n  Clients:\n", method)
	c.printf("  mCurMethodId=%s\n  mCurFocusedWindowClient=ClientState{%x uid 10085 %s}\n", method, c.hash("client"), client)
	if c.release.version >= 14 {
		c.printf("  mRequestedShowExplicitly=false  mShowForced=false\n  mImeHiddenByDisplayPolicy=false\n  mInputShown=%t\n", wanted)
	} else {
		c.printf("  mShowRequested=%t mShowExplicitlyRequested=false mShowForced=false mInputShown=%t\n", wanted, wanted)
	}
	c.printf("  mSystemReady=true mInteractive=%t\n\nInput method service state for %s:\n", c.screen.ScreenOn(), method)
	c.printf("  mViewsCreated=%t\n  mDecorViewVisible=%t mInShowWindow=false\n  mIsInputViewShown=%t mWindowVisible=%t\n", visible, visible, visible, visible)
	return 0
}
