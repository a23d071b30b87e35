package android

import (
	"strconv"
	"strings"
	"time"

	"phonerack/usb/phonesim/screen"
)

func wmCommand(c *call) int {
	if !c.spend(80 * time.Millisecond) {
		return exitKilled
	}
	args := c.args
	if len(args) >= 3 && args[1] == "-d" {
		args = append([]string{args[0]}, args[3:]...)
	}
	if len(args) == 0 {
		c.errorf("Window manager (window) commands:\n  size [reset|WxH|WdpxHdp] [-d DISPLAY_ID]\n  density [reset|DENSITY] [-d DISPLAY_ID]\n")
		return c.javaStatus()
	}
	value := ""
	if len(args) > 1 {
		value = args[1]
	}
	rotation := "set-user-rotation"
	if c.release.version >= 12 {
		rotation = "user-rotation"
	}
	switch args[0] {
	case "size":
		return c.wmSize(value)
	case "density":
		return c.wmDensity(value)
	case "dismiss-keyguard":
		c.screen.DismissKeyguard()
		return 0
	case rotation:
		if c.release.version >= 10 {
			return c.wmRotation(args[1:])
		}
	case "overscan", "scaling", "screen-capture", "surface-trace", "tracing", "set-fix-to-user-rotation", "fixed-to-user-rotation":
		return 0
	}
	c.errorf("Unknown command: %s\n", args[0])
	return c.javaStatus()
}

// javaStatus is the status of a failed command that was a program of its own before Android 8 and
// ended with 0 whatever happened.
func (c *call) javaStatus() int {
	if c.release.version < 8 {
		return 0
	}
	return exitMinus1
}

// wmSize reads and sets the size in natural orientation; the rotation plays no part.
func (c *call) wmSize(value string) int {
	g := c.screen.Display()
	if value == "" {
		c.printf("Physical size: %dx%d\n", g.Physical.X, g.Physical.Y)
		if g.Override.X != 0 {
			c.printf("Override size: %dx%d\n", g.Override.X, g.Override.Y)
		}
		return 0
	}
	if value == "reset" {
		c.screen.SetSize(0, 0)
		return 0
	}
	at := strings.IndexByte(value, 'x')
	if at <= 0 || at >= len(value)-1 {
		c.errorf("Error: bad size %s\n", value)
		return c.javaStatus()
	}
	w, err := c.pixels(value[:at], g)
	var h int
	if err == "" {
		h, err = c.pixels(value[at+1:], g)
	}
	if err != "" {
		c.errorf("Error: bad number java.lang.NumberFormatException: For input string: \"%s\"\n", err)
		return c.javaStatus()
	}
	if e := c.screen.SetSize(w, h); e != nil {
		// The window manager silently brings a size into its bounds; too far out, nothing changes.
		c.logf("W", "WindowManager", "size refused: %v", e)
	}
	return 0
}

// pixels reads 1080 or 360dp; bad is what could not be read.
func (c *call) pixels(text string, g screen.Display) (n int, bad string) {
	digits, dp := strings.CutSuffix(text, "dp")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<20 {
		return 0, digits
	}
	if dp {
		n = n * g.Density / 160
	}
	return n, ""
}

func (c *call) wmDensity(value string) int {
	g := c.screen.Display()
	switch value {
	case "":
		c.printf("Physical density: %d\n", g.PhysicalDensity)
		if g.OverrideDensity != 0 {
			c.printf("Override density: %d\n", g.OverrideDensity)
		}
		return 0
	case "reset":
		c.screen.SetDensity(0)
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		c.errorf("Error: bad number java.lang.NumberFormatException: For input string: \"%s\"\n", value)
		return c.javaStatus()
	}
	if n < 72 {
		c.errorf("Error: density must be >= 72\n")
		return c.javaStatus()
	}
	if err := c.screen.SetDensity(n); err != nil {
		c.logf("W", "WindowManager", "density refused: %v", err)
	}
	return 0
}

// wmRotation is "user-rotation [free|lock [0-3]]".
func (c *call) wmRotation(args []string) int {
	if len(args) == 0 {
		mode := "free"
		if v, _ := c.setting("system", "accelerometer_rotation"); v == "0" {
			v, _ := c.setting("system", "user_rotation")
			mode = "lock " + v
		}
		c.printf("%s\n", mode)
		return 0
	}
	switch args[0] {
	case "free":
		c.setSetting("system", "accelerometer_rotation", "1")
	case "lock":
		c.setSetting("system", "accelerometer_rotation", "0")
		if len(args) > 1 {
			if n, err := strconv.Atoi(args[1]); err != nil || n < 0 || n > 3 {
				c.errorf("Error: rotation value should be a number between 0 and 3.\n")
				return exitMinus1
			}
			c.setSetting("system", "user_rotation", args[1])
		}
	default:
		c.errorf("Error: lock mode needs to be either free or lock.\n")
		return exitMinus1
	}
	return 0
}
