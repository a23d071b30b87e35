package android

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// vmStart is what the start of a virtual machine for one command costs.
const vmStart = 200 * time.Millisecond

var inputSources = map[string]bool{
	"dpad": true, "gamepad": true, "joystick": true, "keyboard": true, "mouse": true, "rotaryencoder": true, "stylus": true,
	"touchnavigation": true, "touchpad": true, "touchscreen": true, "trackball": true,
}

func inputCommand(c *call) int {
	if !c.spend(vmStart) {
		return exitKilled
	}
	args := c.args
	if len(args) > 0 && inputSources[args[0]] {
		args = args[1:]
	}
	if len(args) > 1 && args[0] == "-d" && c.release.version >= 9 {
		args = args[2:]
	}
	if len(args) == 0 {
		c.inputUsage()
		if c.release.version >= 11 {
			return exitMinus1
		}
		return 0
	}
	verb, rest := args[0], args[1:]
	run := map[string]func(string, []string) int{
		"text": c.inputText, "keyevent": c.inputKeys, "tap": c.inputTap, "swipe": c.inputSwipe, "draganddrop": c.inputSwipe,
		"press": c.inputNothing, "roll": c.inputNothing, "motionevent": c.inputMotion, "keycombination": c.inputCombination,
	}[verb]
	switch {
	case run == nil,
		verb == "keycombination" && c.release.version < 12,
		verb == "motionevent" && c.release.version < 9:
		c.errorf("Error: Unknown command: %s\n", verb)
		c.inputUsage()
		// The result of an unknown command is thrown away.
		return 0
	}
	return run(verb, rest)
}

func (c *call) inputUsage() {
	c.errorf("Usage: input [<source>] <command> [<arg>...]\n\nThe commands and default sources are:\n" +
		"      text <string> (Default: touchscreen)\n      keyevent [--longpress] <key code number or name> ... (Default: keyboard)\n" +
		"      tap <x> <y> (Default: touchscreen)\n      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n" +
		"      press (Default: trackball)\n      roll <dx> <dy> (Default: trackball)\n")
}

// few reports that a command has too few arguments.
func (c *call) few(verb string, rest []string) int {
	if c.release.version < 11 {
		c.errorf("Error: Invalid arguments for command: %s\n", verb)
		c.inputUsage()
		return 0
	}
	after := verb
	if len(rest) > 0 {
		after = rest[len(rest)-1]
	}
	return c.exception(verb, `java.lang.IllegalArgumentException: Argument expected after "`+after+`"`,
		"com.android.modules.utils.BasicShellCommandHandler.getNextArgRequired(BasicShellCommandHandler.java:317)")
}

// denied refuses the injection of events, if the phone is set so.
func (c *call) denied(verb string) (status int, yes bool) {
	if !c.Faults().InjectDenied {
		return 0, false
	}
	text := "java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission"
	if c.release.version >= 12 {
		text = "java.lang.SecurityException: Injecting input events requires the caller (or the source of the " +
			"instrumentation, if any) to have the INJECT_EVENTS permission."
	}
	return c.exception(verb, text, "android.os.Parcel.createExceptionOrNull(Parcel.java:3011)"), true
}

// numbers reads floats. A bad number ends the command without a word and with success.
func numbers(args []string) ([]int, bool) {
	list := make([]int, len(args))
	for i, a := range args {
		f, err := strconv.ParseFloat(a, 64)
		if err != nil || math.IsNaN(f) || math.Abs(f) > 1e6 {
			return nil, false
		}
		list[i] = int(math.Floor(f))
	}
	return list, true
}

func (c *call) inputTap(verb string, rest []string) int {
	if len(rest) < 2 {
		return c.few(verb, rest)
	}
	n, ok := numbers(rest[:2])
	if !ok {
		return 0
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	if c.touchable() {
		c.screen.Tap(n[0], n[1])
	}
	return 0
}

// defaultSwipe is how long a swipe takes that does not say.
const defaultSwipe = 300 * time.Millisecond

// longPress is how long a key is held for a long press.
const longPress = 500 * time.Millisecond

func (c *call) inputSwipe(verb string, rest []string) int {
	if len(rest) < 4 {
		return c.few(verb, rest)
	}
	n, ok := numbers(rest[:4])
	if !ok {
		return 0
	}
	d := defaultSwipe
	if len(rest) > 4 {
		ms, err := strconv.Atoi(rest[4])
		if err != nil {
			return 0
		}
		if ms >= 0 {
			d = time.Duration(min(ms, 600_000)) * time.Millisecond
		}
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	if !c.spend(d) {
		return exitKilled
	}
	c.gesture(n[0], n[1], n[2], n[3], d)
	return 0
}

// gesture lets a finger go from one point to another.
func (d *Device) gesture(x1, y1, x2, y2 int, took time.Duration) {
	if !d.touchable() {
		if up := y1-y2 > unlockDistance; up && d.screen.ScreenOn() {
			d.unlock()
		}
		return
	}
	d.screen.Swipe(x1, y1, x2, y2, took)
}

// unlockDistance is how far up a swipe must go to open the lock screen, in pixels.
const unlockDistance = 200

func (d *Device) unlock() {
	d.mu.Lock()
	d.locked = false
	d.mu.Unlock()
}

// touchable reports that the app on the display gets what is touched.
func (d *Device) touchable() bool {
	on := d.screen.ScreenOn()
	d.mu.Lock()
	defer d.mu.Unlock()
	return on && !d.locked
}

func (c *call) inputNothing(verb string, rest []string) int {
	if verb == "roll" && len(rest) < 2 {
		return c.few(verb, rest)
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	return 0
}

// touch is a finger put down by "motionevent DOWN".
type touch struct {
	down bool
	x, y int
	at   time.Time
}

func (c *call) inputMotion(verb string, rest []string) int {
	if len(rest) < 1 || len(rest) < 3 && strings.ToUpper(rest[0]) != "CANCEL" {
		return c.few(verb, rest)
	}
	var n []int
	action := strings.ToUpper(rest[0])
	if action != "CANCEL" || len(rest) >= 3 {
		var ok bool
		if n, ok = numbers(rest[1:3]); !ok {
			return 0
		}
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	c.mu.Lock()
	held := c.touch
	now := c.now()
	switch action {
	case "DOWN":
		c.touch = touch{down: true, x: n[0], y: n[1], at: now}
	case "UP", "CANCEL":
		c.touch = touch{}
	case "MOVE":
	default:
		c.mu.Unlock()
		return c.exception(verb, "java.lang.IllegalArgumentException: Unknown action: "+rest[0],
			"com.android.server.input.InputShellCommand.getAction(InputShellCommand.java:512)")
	}
	c.mu.Unlock()
	if action == "UP" && held.down {
		c.gesture(held.x, held.y, n[0], n[1], now.Sub(held.at))
	}
	return 0
}

// inputKeys presses keys one after another.
func (c *call) inputKeys(verb string, rest []string) int {
	long := false
	for len(rest) > 0 && strings.HasPrefix(rest[0], "--") {
		switch rest[0] {
		case "--longpress":
			long = true
		case "--doubletap", "--async":
		case "--delay":
			rest = rest[min(1, len(rest)-1):]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return c.few(verb, rest)
	}
	for _, name := range rest {
		code, ok := keyCode(name)
		if !ok {
			return c.exception(verb, "java.lang.IllegalArgumentException: Unknown keycode: "+name,
				"com.android.server.input.InputShellCommand.sendKeyEvent(InputShellCommand.java:418)")
		}
		if status, yes := c.denied(verb); yes {
			return status
		}
		if long && !c.spend(longPress) {
			return exitKilled
		}
		c.press(code, long)
	}
	return 0
}

// press presses one key.
func (d *Device) press(code int, long bool) {
	on := d.screen.ScreenOn()
	switch code {
	case keyPower:
		if long {
			return // opens the power menu, which nobody looks at
		}
		d.wake(!on)
	case keySleep, 276:
		d.wake(false)
	case keyWakeUp:
		d.wake(true)
	default:
		if !on {
			return
		}
		switch {
		case d.touchable():
			d.screen.Key(code)
		case code == keyMenu:
			d.unlock()
		}
	}
}

// wake turns the display on or off.
func (d *Device) wake(on bool) {
	d.screen.SetScreenOn(on)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !on && d.config.Locked {
		d.locked = true
	}
}

// inputCombination presses keys together; only the last one counts for the apps of the screen.
func (c *call) inputCombination(verb string, rest []string) int {
	if len(rest) >= 2 && rest[0] == "-t" {
		rest = rest[2:]
	}
	if len(rest) < 2 {
		return c.exception(verb, "java.lang.IllegalArgumentException: keycombination requires at least 2 keycodes",
			"com.android.server.input.InputShellCommand.sendKeyCombination(InputShellCommand.java:611)")
	}
	codes := make([]int, len(rest))
	for i, name := range rest {
		var ok bool
		if codes[i], ok = keyCode(name); !ok {
			return c.exception(verb, "java.lang.IllegalArgumentException: Unknown keycode: "+name,
				"com.android.server.input.InputShellCommand.sendKeyCombination(InputShellCommand.java:625)")
		}
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	c.press(codes[len(codes)-1], false)
	return 0
}

// perKey is what one typed character costs.
const perKey = 8 * time.Millisecond

// inputText types what the virtual keyboard can type: ASCII, "%s" for a space.
func (c *call) inputText(verb string, rest []string) int {
	if len(rest) == 0 || c.release.version < 11 && len(rest) > 1 {
		return c.few(verb, rest)
	}
	text := strings.ReplaceAll(rest[0], "%s", " ")
	for _, r := range text {
		if r >= 0x7f || r < 0x20 && r != '\n' && r != '\t' {
			at := "com.android.server.input.InputShellCommand.sendText(InputShellCommand.java:369)"
			if c.release.version < 11 {
				at = "com.android.commands.input.Input.sendText(Input.java:170)"
			}
			return c.exception(verb, "java.lang.NullPointerException: Attempt to get length of null array", at)
		}
	}
	if status, yes := c.denied(verb); yes {
		return status
	}
	if !c.spend(time.Duration(len(text)) * perKey) {
		return exitKilled
	}
	if text = c.spoil(text); text == "" || !c.touchable() {
		return 0
	}
	if err := c.screen.Type(text); err != nil {
		c.logf("W", "InputDispatcher", "dropped text: %v", err)
	}
	return 0
}

// spoil loses and swaps characters as the Faults have it.
func (d *Device) spoil(text string) string {
	f := d.Faults()
	chars := make([]byte, 0, len(text))
	for i := range len(text) {
		if !d.chance(f.DropText) {
			chars = append(chars, text[i])
		}
	}
	for i := 0; i+1 < len(chars); i++ {
		if d.chance(f.SwapText) {
			chars[i], chars[i+1] = chars[i+1], chars[i]
			i++
		}
	}
	return string(chars)
}
