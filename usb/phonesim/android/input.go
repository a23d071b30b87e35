package android

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"phonerack/usb/phonesim/screen"
)

// vmStart is what the start of a virtual machine for one command costs.
const vmStart = 200 * time.Millisecond

var inputSources = map[string]bool{
	"dpad": true, "gamepad": true, "joystick": true, "keyboard": true, "mouse": true, "stylus": true, "touchnavigation": true,
	"touchpad": true, "touchscreen": true, "trackball": true,
}

// inputCall is one run of "input", which there are three of: until Android 9 a program that wants the exact number
// of arguments, in Android 10 one that throws, from 11 on a command of the input service (AOSP: Input.java,
// InputShellCommand.java).
type inputCall struct {
	*call
	first string   // the first argument: what an exception is reported for
	verb  string   // such as "tap"
	last  string   // the argument before the rest
	rest  []string // arguments not yet taken
}

// Why arguments are refused.
var errNumber = errors.New("not a number")

// argError is an IllegalArgumentException.
type argError string

func (e argError) Error() string { return string(e) }

// errDenied is the SecurityException of a phone that lets nobody inject.
var errDenied = errors.New("denied")

func inputCommand(c *call) int {
	if !c.spend(vmStart) {
		return exitKilled
	}
	in := &inputCall{call: c, rest: c.args, first: c.arg(0)}
	if len(in.rest) == 0 {
		c.inputUsage(c.release.version >= 10)
		return 0
	}
	in.verb = in.next()
	if inputSources[in.verb] && len(in.rest) > 0 {
		in.verb = in.next()
	}
	if in.verb == "-d" && c.release.version >= 10 && len(in.rest) > 1 {
		in.next()
		in.verb = in.next()
	}
	run, ok := in.verbs()[in.verb]
	if !ok {
		return in.unknown()
	}
	if c.release.version < 10 && !in.fits() {
		return in.refuse(errNumber)
	}
	if err := run(); err != nil {
		if c.ctx.Err() != nil {
			return exitKilled
		}
		return in.refuse(err)
	}
	return 0
}

func (c *inputCall) verbs() map[string]func() error {
	v := map[string]func() error{
		"text": c.text, "keyevent": c.keys, "tap": c.tap, "swipe": c.swipe, "draganddrop": c.swipe, "press": c.allowed, "roll": c.roll,
	}
	if c.release.version >= 10 {
		v["motionevent"] = c.motion
	}
	if c.release.version >= 12 {
		v["keycombination"] = c.combination
	}
	return v
}

// fits tells whether the program of old Androids takes as many arguments.
func (c *inputCall) fits() bool {
	n := len(c.rest)
	switch c.verb {
	case "tap", "roll":
		return n == 2
	case "swipe", "draganddrop":
		return n == 4 || n == 5
	case "press":
		return n == 0
	case "text":
		return n == 1
	}
	return n > 1 || n == 1 && c.rest[0] != "--longpress"
}

// next takes an argument that is known to be there.
func (c *inputCall) next() string {
	c.last, c.rest = c.rest[0], c.rest[1:]
	return c.last
}

func (c *inputCall) required() (string, error) {
	if len(c.rest) == 0 {
		return "", argError(`Argument expected after "` + c.last + `"`)
	}
	return c.next(), nil
}

func (c *inputCall) number() (int, error) {
	text, err := c.required()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e6 {
		return 0, errNumber
	}
	return int(math.Floor(f)), nil
}

func (c *inputCall) numbers(n int) ([]int, error) {
	list := make([]int, n)
	for i := range list {
		var err error
		if list[i], err = c.number(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *inputCall) unknown() int {
	switch {
	case c.release.version >= 11:
		// The result of an unknown command is thrown away.
		c.printf("Unknown command: %s\n", c.verb)
		return 0
	case c.release.version == 10:
		return c.refuse(argError("Error: Unknown command: " + c.verb))
	}
	c.errorf("Error: Unknown command: %s\n", c.verb)
	c.inputUsage(false)
	return 0
}

// refuse reports what was wrong with the arguments, or that input is forbidden. Before Android 11 wrong
// arguments are no failure.
func (c *inputCall) refuse(err error) int {
	var thrown argError
	if err == errNumber {
		thrown = argError("Error: Invalid arguments for command: " + c.verb)
	} else if !errors.As(err, &thrown) {
		return c.denied(err)
	}
	switch {
	case c.release.version >= 11:
		at := "com.android.server.input.InputShellCommand.onCommand(InputShellCommand.java:289)"
		if strings.HasPrefix(string(thrown), "Argument expected") {
			at = "com.android.modules.utils.BasicShellCommandHandler.getNextArgRequired(BasicShellCommandHandler.java:317)"
		}
		return c.exception(c.first, "java.lang.IllegalArgumentException: "+string(thrown), at)
	case c.release.version == 10:
		c.inputUsage(false)
		c.errorf("\nError: %s\n", thrown)
		return 0
	}
	c.errorf("%s\n", thrown)
	c.inputUsage(false)
	return 0
}

// denied reports a SecurityException, or what else was thrown on the way.
func (c *inputCall) denied(err error) int {
	text := err.Error()
	if err == errDenied {
		text = "java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission"
		if c.release.version >= 12 {
			text = "java.lang.SecurityException: Injecting input events requires the caller (or the source of the " +
				"instrumentation, if any) to have the INJECT_EVENTS permission."
		}
	}
	at := "android.os.Parcel.createExceptionOrNull(Parcel.java:3011)"
	if err != errDenied {
		at = "com.android.server.input.InputShellCommand.sendText(InputShellCommand.java:369)"
		if c.release.version < 11 {
			at = "com.android.commands.input.Input.sendText(Input.java:170)"
		}
	}
	return c.exception(c.first, text, at)
}

// allowed is nil unless the phone lets nobody inject.
func (c *inputCall) allowed() error {
	if c.Faults().InjectDenied {
		return errDenied
	}
	return nil
}

func (c *call) inputUsage(out bool) {
	v := c.release.version
	text := "Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n\n"
	if v < 10 {
		text = "Usage: input [<source>] <command> [<arg>...]\n\n"
	}
	text += "The sources are: \n      touchnavigation\n      touchscreen\n      joystick\n      stylus\n      touchpad\n      gamepad\n" +
		"      dpad\n      mouse\n      keyboard\n      trackball\n\n"
	if v >= 10 {
		text += "-d: specify the display ID.\n      (Default: -1 for key event, 0 for motion event if not specified.)\n"
	}
	keys := "[--longpress]"
	switch {
	case v >= 15:
		keys = "[--longpress] [--doubletap] [--async] [--delay <duration between keycodes in ms>]"
	case v >= 14:
		keys = "[--longpress|--doubletap|--async]"
	case v >= 11:
		keys = "[--longpress|--doubletap]"
	}
	text += "The commands and default sources are:\n      text <string> (Default: touchscreen)\n" +
		"      keyevent " + keys + " <key code number or name> ... (Default: keyboard)\n      tap <x> <y> (Default: touchscreen)\n" +
		"      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n" +
		"      draganddrop <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)\n" +
		"      press (Default: trackball)\n      roll <dx> <dy> (Default: trackball)\n"
	switch {
	case v >= 11:
		text += "      motionevent <DOWN|UP|MOVE|CANCEL> <x> <y> (Default: touchscreen)\n"
	case v == 10:
		text += "      motionevent <DOWN|UP|MOVE> <x> <y> (Default: touchscreen)\n"
	}
	switch {
	case v >= 13:
		text += "      keycombination [-t duration(ms)] <key code 1> <key code 2> ... (Default: keyboard, the key order is important here.)\n"
	case v == 12:
		text += "      keycombination <key code 1> <key code 2> ... (Default: keyboard)\n"
	}
	if out {
		c.printf("%s", text)
	} else {
		c.errorf("%s", text)
	}
}

func (c *inputCall) tap() error {
	n, err := c.numbers(2)
	if err == nil {
		err = c.allowed()
	}
	if err == nil {
		c.screen.Tap(n[0], n[1])
	}
	return err
}

func (c *inputCall) roll() error {
	if _, err := c.numbers(2); err != nil {
		return err
	}
	return c.allowed()
}

const (
	defaultSwipe = 300 * time.Millisecond // of a swipe that does not say how long it takes
	longestSwipe = 10 * time.Minute
)

// swipe moves a finger for as long as it is told. From Android 11 on the system does it, whatever becomes of
// who ordered it; before, a program, and when that is killed the finger stays on the display.
func (c *inputCall) swipe() error {
	n, err := c.numbers(4)
	if err != nil {
		return err
	}
	took := defaultSwipe
	if len(c.rest) > 0 {
		ms, err := strconv.Atoi(c.next())
		if err != nil {
			return errNumber
		}
		if ms >= 0 {
			took = min(time.Duration(ms)*time.Millisecond, longestSwipe)
		}
	}
	if err := c.allowed(); err != nil {
		return err
	}
	lasts := time.Duration(float64(took) * c.config.Latency)
	c.screen.StartSwipe(n[0], n[1], n[2], n[3], took, lasts)
	if err := c.wait(c.ctx, lasts); err != nil {
		if c.release.version < 11 {
			c.screen.Touch(screen.TouchDown, n[0], n[1])
		}
		return err
	}
	return nil
}

var touchActions = map[string]screen.TouchAction{
	"DOWN": screen.TouchDown, "MOVE": screen.TouchMove, "UP": screen.TouchUp, "CANCEL": screen.TouchCancel,
}

func (c *inputCall) motion() error {
	name, err := c.required()
	if err != nil {
		return err
	}
	action, known := touchActions[strings.ToUpper(name)]
	if c.release.version < 11 && (!known || action == screen.TouchCancel) {
		if _, err := c.numbers(2); err != nil {
			return err
		}
		return argError("Unknown motionevent " + name)
	}
	if !known {
		return argError("Unknown action: " + name)
	}
	n := []int{0, 0}
	if action != screen.TouchCancel || len(c.rest) >= 2 { // a cancelled touch needs no place
		if n, err = c.numbers(2); err != nil {
			return err
		}
	}
	if err := c.allowed(); err != nil {
		return err
	}
	c.screen.Touch(action, n[0], n[1])
	return nil
}

// thrown is an exception other than those of wrong arguments.
func thrown(format string, a ...any) error { return fmt.Errorf(format, a...) }
