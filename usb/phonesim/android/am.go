package android

import (
	"strconv"
	"strings"
	"time"
)

func amCommand(c *call) int {
	if !c.spend(100 * time.Millisecond) {
		return exitKilled
	}
	if len(c.args) == 0 {
		c.errorf("Activity manager (activity) commands:\n  help\n      Print this help text.\n")
		return exitMinus1
	}
	rest := c.args[1:]
	switch c.args[0] {
	case "start", "start-activity":
		return c.amStart(rest)
	case "force-stop", "kill":
		name := lastName(rest)
		if name == "" {
			return c.exception(c.args[0], `java.lang.IllegalArgumentException: Argument expected after "`+c.args[0]+`"`,
				"com.android.modules.utils.BasicShellCommandHandler.getNextArgRequired(BasicShellCommandHandler.java:317)")
		}
		if c.args[0] == "force-stop" || !c.inFront(name) {
			c.stop(name)
		}
		return 0
	case "kill-all":
		for _, p := range c.screen.Running() {
			if !c.inFront(p) {
				c.stop(p)
			}
		}
		return 0
	case "broadcast":
		return c.broadcast(rest)
	case "startservice", "start-service", "start-foreground-service", "startforegroundservice":
		return c.startService(rest)
	case "get-current-user":
		c.printf("0\n")
		return 0
	case "instrument":
		return c.instrument(rest)
	case "idle-maintenance", "wait-for-broadcast-idle", "get-config", "set-debug-app", "clear-debug-app":
		return 0
	}
	c.errorf("Unknown command: %s\n", c.args[0])
	return exitMinus1
}

func (c *call) inFront(pkg string) bool {
	now, _ := c.focused()
	return now.pkg == pkg
}

// amStart starts an activity. Only the one that an app declares for launching can be started.
func (c *call) amStart(args []string) int {
	in, bad := parseIntent(args)
	if bad != "" {
		c.errorf("Error: Unknown option: %s\n", bad)
		return exitMinus1
	}
	if in.action == "" && in.data != "" {
		in.action = "android.intent.action.VIEW"
	}
	a, ok, explain := c.resolve(&in)
	if in.stop && in.target() != "" {
		c.printf("Stopping: %s\n", in.target())
		c.stop(in.target())
	}
	c.printf("Starting: %s\n", in.String())
	if !ok {
		c.errorf("%s", explain)
		if c.release.version < 8 {
			return 0
		}
		return 1
	}
	before, _ := c.focused()
	running := false
	for _, p := range c.screen.Running() {
		running = running || p == a.name
	}
	start := c.now()
	if err := c.launch(a.name); err != nil {
		c.errorf("Error: Activity not started, unknown error code 102\n")
		return 1
	}
	c.logf("I", "ActivityTaskManager", "START u0 %s from uid 2000", strings.TrimPrefix(in.String(), "Intent "))
	if in.web() && c.config.Visited != nil {
		c.config.Visited(in.data)
	}
	top := before.pkg == a.name
	switch {
	case top:
		c.errorf("Warning: Activity not started, intent has been delivered to currently running top-most instance.\n")
	case running:
		c.errorf("Warning: Activity not started, its current task has been brought to the front\n")
	}
	if !in.wait {
		return 0
	}
	return c.amWait(a, start, top, running)
}

// launch brings an app to the front. Appium's Settings app closes its activity as soon as its service runs.
func (c *call) launch(pkg string) error {
	if pkg == settingsApp {
		c.wakeSettings()
		return nil
	}
	return c.screen.Launch(pkg)
}

// resolve finds the app that an intent starts.
func (c *call) resolve(in *intent) (a app, ok bool, explain string) {
	if in.component != "" {
		pkg, cls, _ := strings.Cut(in.component, "/")
		a, ok = c.launchable(pkg)
		if !ok || longActivity(pkg, cls) != longActivity(pkg, a.activity) {
			return app{}, false, "Error type 3\nError: Activity class {" + pkg + "/" + longActivity(pkg, cls) + "} does not exist.\n"
		}
		return a, true, ""
	}
	if in.pkg != "" && in.data == "" {
		if a, ok = c.launchable(in.pkg); ok {
			return a, true, ""
		}
	}
	for _, category := range in.categories {
		if category == "android.intent.category.HOME" {
			if a, ok = c.home(); ok {
				return a, true, ""
			}
		}
	}
	if pkg, known := settingsActions[in.action]; known {
		if a, ok = c.launchable(pkg); ok {
			return a, true, ""
		}
	}
	if in.web() && c.config.Browser != "" && (in.pkg == "" || in.pkg == c.config.Browser) {
		if a, ok = c.launchable(c.config.Browser); ok {
			return a, true, ""
		}
	}
	failed := *in
	failed.flags = "0x10000000"
	return app{}, false, "Error: Activity not started, unable to resolve " + failed.String() + "\n"
}

// settingsActions are the actions that the settings app answers.
var settingsActions = map[string]string{
	"android.settings.SETTINGS":                         "com.android.settings",
	"android.settings.WIFI_SETTINGS":                    "com.android.settings",
	"android.settings.APPLICATION_DEVELOPMENT_SETTINGS": "com.android.settings",
}

// launchTimeout is how long am start -W waits.
const launchTimeout = 10 * time.Second

// amWait reports a launch once the app has the focus.
func (c *call) amWait(a app, start time.Time, top, running bool) int {
	status := "timeout"
	for range int(launchTimeout / pollEvery) {
		if pkg, _ := c.screen.Focus(); pkg == a.name || a.name == settingsApp {
			status = "ok"
			break
		}
		if c.wait(c.ctx, pollEvery) != nil {
			return exitKilled
		}
	}
	cold := 400 * time.Millisecond
	if running {
		cold = 80 * time.Millisecond
	}
	if !top && !c.spend(cold) {
		return exitKilled
	}
	total := c.now().Sub(start).Milliseconds()
	state := "COLD"
	switch {
	case top:
		state, total = "UNKNOWN (0)", 0
	case running:
		state = "HOT"
	}
	now, _ := c.focused()
	activity := a.name + "/" + a.activity
	if now.pkg != "" && now != keyguard {
		activity = now.pkg + "/" + now.activity
	}
	c.printf("Status: %s\n", status)
	if c.release.version >= 11 {
		c.printf("LaunchState: %s\n", state)
	}
	c.printf("Activity: %s\n", activity)
	if c.release.version <= 9 {
		c.printf("ThisTime: %d\n", total)
	}
	c.printf("TotalTime: %d\nWaitTime: %d\nComplete\n", total, total+7)
	return 0
}

// monkey knows one use: to launch an app.
func monkey(c *call) int {
	if !c.spend(600 * time.Millisecond) {
		return exitKilled
	}
	var pkg string
	count, sysKeys := -1, true
	if c.release.version >= 9 {
		for _, a := range c.args {
			c.printf("  bash arg: %s\n", a)
		}
	}
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; a {
		case "-p", "-c", "-s", "--throttle", "--pct-syskeys", "--pct-touch", "--pct-motion", "--pct-nav", "--pct-majornav",
			"--pct-appswitch", "--pct-anyevent":
			i++
			value := ""
			if i < len(c.args) {
				value = c.args[i]
			}
			if a == "-p" {
				pkg = value
			}
			if a == "--pct-syskeys" && value == "0" {
				sysKeys = false
			}
		default:
			if n, err := strconv.Atoi(a); err == nil {
				count = n
			}
		}
	}
	if count < 0 {
		c.errorf("** Error: Count not specified\nusage: monkey [-p ALLOWED_PACKAGE] [-c MAIN_CATEGORY] [-v] [-s SEED] COUNT\n")
		return exitMinus1
	}
	if c.Faults().NoKeys && sysKeys {
		c.errorf("** SYS_KEYS has no physical keys but with factor 2.0%%.\n")
		return 251
	}
	a, ok := c.launchable(pkg)
	if !ok {
		c.printf("** No activities found to run, monkey aborted.\n")
		return 252
	}
	if err := c.launch(a.name); err != nil {
		c.printf("** No activities found to run, monkey aborted.\n")
		return 252
	}
	c.printf("Events injected: %d\n## Network stats: elapsed time=%dms (0ms mobile, 0ms wifi, %dms not connected)\n", count, 17, 17)
	return 0
}
