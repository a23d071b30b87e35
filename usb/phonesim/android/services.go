package android

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// cmdServices maps services to the commands that speak to them.
var cmdServices = map[string]command{
	"activity": amCommand, "package": pmCommand, "window": wmCommand, "input": inputCommand,
	"settings": settingsCommand, "input_method": imeCommand,
}

func cmdCommand(c *call) int {
	if len(c.args) == 0 {
		c.errorf("cmd: No service specified; use -l to list all services\n")
		return 20
	}
	service := c.args[0]
	if service == "-l" {
		c.printf("Currently running services:\n")
		for _, n := range c.services() {
			c.printf("  %s\n", n)
		}
		return 0
	}
	sub := *c
	sub.args = c.args[1:]
	if run, ok := cmdServices[service]; ok {
		return run(&sub)
	}
	if !c.spend(30 * time.Millisecond) {
		return exitKilled
	}
	switch service {
	case "clipboard":
		// There is no shell command behind this service; that is no failure.
		if !c.Faults().ClipboardLie {
			c.errorf("No shell command implementation.\n")
		}
		return 0
	case "battery":
		return c.cmdBattery(sub.args)
	case "statusbar", "notification", "uimode", "appops", "deviceidle", "jobscheduler", "power", "thermalservice", "wifi", "media_session", "lock_settings":
		return 0
	case "connectivity", "display", "alarm", "SurfaceFlinger":
		c.errorf("No shell command implementation.\n")
		return 0
	}
	c.errorf("cmd: Can't find service: %s\n", service)
	return 20
}

func (c *call) cmdBattery(args []string) int {
	if len(args) >= 2 && args[0] == "get" {
		c.mu.Lock()
		r := c.battery.shown()
		c.mu.Unlock()
		value, ok := map[string]any{
			"level": r.Level, "status": r.Status, "temp": r.Temperature, "present": r.Present, "counter": r.Counter,
			"ac": r.AC, "usb": r.USB, "wireless": r.Wireless,
		}[args[1]]
		if !ok {
			c.printf("Unknown get option: %s\n", args[1])
			return exitMinus1
		}
		c.printf("%v\n", value)
		return 0
	}
	if len(args) == 0 {
		c.printf("Battery service (battery) commands:\n  help\n    Print this help text.\n")
		return 0
	}
	return dumpBattery(c, args)
}

func serviceCommand(c *call) int {
	switch c.arg(0) {
	case "list":
		names := c.services()
		c.printf("Found %d services:\n", len(names))
		for i, n := range names {
			c.printf("%d\t%s: []\n", i, n)
		}
		return 0
	case "check":
		state := "not found"
		if slices.Contains(c.services(), c.arg(1)) {
			state = "found"
		}
		c.printf("Service %s: %s\n", c.arg(1), state)
		return 0
	case "call":
		c.printf("Result: Parcel(00000000 00000000   '........')\n")
		return 0
	}
	c.errorf("service: Invalid options.\n")
	return 10
}

// stayOn are the values of the setting for what "svc power stayon" takes.
var stayOn = map[string]string{"true": "15", "false": "0", "ac": "1", "usb": "2", "wireless": "4", "dock": "8"}

func svc(c *call) int {
	if !c.spend(vmStart) {
		return exitKilled
	}
	switch c.arg(0) + " " + c.arg(1) {
	case "power stayon":
		v, ok := stayOn[c.arg(2)]
		if !ok {
			break
		}
		if v == "15" && c.release.version < 13 {
			v = "7"
		}
		c.setSetting("global", "stay_on_while_plugged_in", v)
		if v != "0" {
			c.screen.SetScreenOn(true)
		}
		return 0
	case "power reboot":
		c.rebootTo(c.arg(2))
		return 0
	case "power shutdown":
		c.rebootTo("shutdown")
		return 0
	case "wifi enable", "wifi disable":
		c.setSetting("global", "wifi_on", map[bool]string{true: "1", false: "0"}[c.arg(1) == "enable"])
		return 0
	case "data enable", "data disable", "bluetooth enable", "bluetooth disable", "usb setFunctions", "usb resetUsbGadget", "nfc enable", "nfc disable":
		return 0
	}
	c.errorf("Available commands:\n    help     Show information about the subcommands\n    power    Control the power manager\n" +
		"    data     Control mobile data connectivity\n    wifi     Control the Wi-Fi manager\n    usb      Control Usb state\n")
	return 0
}

// maxLog is how many lines the log keeps.
const maxLog = 500

// logf adds a line to the log.
func (d *Device) logf(level, tag, format string, a ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.logLocked(level, tag, fmt.Sprintf(format, a...))
}

// logLocked is logf with the lock held.
func (d *Device) logLocked(level, tag, text string) {
	line := fmt.Sprintf("%s  801   812 %s %s: %s", d.now().In(d.config.Zone).Format("01-02 15:04:05.000"), level, tag, strings.ReplaceAll(text, "\n", " "))
	d.logged++
	if d.log = append(d.log, line[:min(len(line), 4000)]); len(d.log) > maxLog {
		d.log = slices.Delete(d.log, 0, len(d.log)-maxLog)
	}
}

func logCommand(c *call) int {
	tag, level := "", "I"
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if len(args) > 1 && args[0] == "-t" {
			tag, args = args[1], args[2:]
			continue
		}
		if len(args) > 1 && args[0] == "-p" {
			level, args = strings.ToUpper(args[1]), args[2:]
			continue
		}
		args = args[1:]
	}
	c.logf(level, tag, "%s", strings.Join(args, " "))
	return 0
}

// logcat prints the log and ends with -d or -t; else it goes on until the context ends.
func logcat(c *call) int {
	end := false
	last := -1
	for i, a := range c.args {
		switch a {
		case "-c", "--clear":
			c.mu.Lock()
			c.log = nil
			c.mu.Unlock()
			return 0
		case "-d":
			end = true
		case "-t":
			end = true
			if i+1 < len(c.args) {
				fmt.Sscan(c.args[i+1], &last)
			}
		case "-g":
			c.printf("main: ring buffer is 256 KiB (8 KiB consumed), max entry is 5120 B, max payload is 4068 B\n")
			return 0
		}
	}
	c.printf("--------- beginning of main\n")
	for seen := 0; ; {
		lines := c.logSince(&seen)
		if last >= 0 && last < len(lines) {
			lines = lines[len(lines)-last:]
		}
		last = -1
		for _, l := range lines {
			if _, err := io.WriteString(c.out, l+"\n"); err != nil {
				return 1
			}
		}
		if end {
			return 0
		}
		if c.wait(c.ctx, pollEvery) != nil {
			return exitKilled
		}
	}
}

// logSince gives the lines after the first seen ones and moves seen on.
func (d *Device) logSince(seen *int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh := min(d.logged-*seen, len(d.log))
	*seen = d.logged
	return slices.Clone(d.log[len(d.log)-fresh:])
}
