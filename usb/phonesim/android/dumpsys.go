package android

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// dumps are the services that dumpsys knows.
var dumps = map[string]func(c *call, args []string) int{
	"SurfaceFlinger":     dumpSurfaceFlinger,
	"activity":           dumpActivity,
	"alarm":              dumpNothing("Current Alarm Manager state:\n"),
	"battery":            dumpBattery,
	"batterystats":       dumpBatteryStats,
	"connectivity":       dumpNothing("NetworkProviders for:\n\nActive default network: 100\n"),
	"cpuinfo":            dumpNothing("Load: 1.0 / 1.0 / 1.0\n1.2% TOTAL: 0.8% user + 0.4% kernel\n"),
	"diskstats":          dumpDiskStats,
	"display":            dumpDisplay,
	"input":              dumpInput,
	"input_method":       dumpInputMethod,
	"meminfo":            dumpNothing("Total RAM: 5,833,560K (status normal)\n Free RAM: 2,471,836K\n Used RAM: 3,361,724K\n"),
	"package":            dumpPackage,
	"power":              dumpPower,
	"telephony.registry": dumpNothing("last known state:\n  mCallState=0\n"),
	"thermalservice":     dumpThermal,
	"trust":              dumpTrust,
	"wifi":               dumpNothing("Wi-Fi is enabled\n"),
	"window":             dumpWindow,
}

func dumpNothing(text string) func(*call, []string) int {
	return func(c *call, _ []string) int {
		c.printf("%s", text)
		return 0
	}
}

// services lists what this Android has.
func (d *Device) services() []string {
	names := slices.Sorted(maps.Keys(dumps))
	return slices.DeleteFunc(names, func(n string) bool { return n == "thermalservice" && d.release.version < 10 })
}

func dumpsys(c *call) int {
	if !c.spend(60 * time.Millisecond) {
		return exitKilled
	}
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-l":
			c.printf("Currently running services:\n")
			for _, n := range c.services() {
				c.printf("  %s\n", n)
			}
			return 0
		case "-t", "-T", "--priority":
			args = args[min(2, len(args)):]
		default:
			args = args[1:]
		}
	}
	if len(args) == 0 {
		for _, n := range c.services() {
			c.printf("%s\nDUMP OF SERVICE %s:\n", strings.Repeat("-", 79), n)
			dumps[n](c, nil)
		}
		return 0
	}
	if !slices.Contains(c.services(), args[0]) {
		c.errorf("Can't find service: %s\n", args[0])
		return 0
	}
	return dumps[args[0]](c, args[1:])
}

func dumpActivity(c *call, args []string) int {
	now, last := c.focused()
	what := ""
	if len(args) > 0 {
		what = args[0]
	}
	if what == "top" {
		if !last.null() {
			c.printf("TASK %s id=%d userId=0\n  ACTIVITY %s/%s %x pid=%d\n    Local Activity %x State:\n      mResumed=true mStopped=false mFinished=false\n",
				last.pkg, c.task(last.pkg), last.pkg, last.activity, c.hash("record"+last.pkg+last.activity), c.pid(last.pkg), c.hash("local"+last.pkg))
		}
		return 0
	}
	resumed := last
	if now.null() {
		resumed = focus{}
	}
	c.printf("ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\nDisplay #0 (activities from top to bottom):\n")
	for _, pkg := range c.screen.Running() {
		a, ok := c.find(pkg)
		if !ok {
			continue
		}
		c.printf("  * Task{%x #%d type=standard A=%d:%s U=0 visible=%t}\n", c.hash("task"+pkg), c.task(pkg), a.uid, pkg, pkg == last.pkg)
		c.printf("    * Hist #0: ActivityRecord{%s}\n      packageName=%s processName=%s\n", c.record(focus{pkg, a.activity}), pkg, pkg)
	}
	record := "null"
	if !resumed.null() {
		record = "ActivityRecord{" + c.record(resumed) + "}"
	}
	switch {
	case c.release.version < 12:
		c.printf("    mResumedActivity: %s\n  mFocusedActivity: %s\n", record, record)
	default:
		c.printf("    topResumedActivity=%s\n  ResumedActivity: %s\n", record, record)
	}
	return 0
}

func dumpSurfaceFlinger(c *call, args []string) int {
	if slices.Contains(args, "--display-id") {
		if c.release.version < 10 {
			return 0
		}
		c.printf("Display %s (HWC display 0): port=0 pnpId=PRK displayName=\"main\"\n", firstDisplay)
		if c.config.Second {
			c.printf("Display %s (HWC display 1): port=1 pnpId=PRK displayName=\"cover\"\n", secondDisplay)
		}
		return 0
	}
	g := c.screen.Display()
	c.printf("Display %s\n    %dx%d, 60.000000 fps, density %d\n", firstDisplay, g.Physical.X, g.Physical.Y, g.PhysicalDensity)
	return 0
}

func dumpDisplay(c *call, _ []string) int {
	g := c.screen.Display()
	state := onOff(g.On)
	c.printf("DISPLAY MANAGER (dumpsys display)\n  mOnlyCode=false\n  mGlobalDisplayState=%s\n  mScreenState=%s\n", state, state)
	c.printf("Logical Displays: size=1\n  Display 0:\n    mDisplayId=0\n")
	id := "local:" + firstDisplay
	if c.release.version < 10 {
		id = "local:0"
	}
	c.printf("    mBaseDisplayInfo=DisplayInfo{\"Built-in Screen\", uniqueId \"%s\", app %d x %d, real %d x %d, density %d, state %s}\n",
		id, g.Physical.X, g.Physical.Y, g.Physical.X, g.Physical.Y, g.PhysicalDensity, state)
	c.printf("    mOverrideDisplayInfo=DisplayInfo{\"Built-in Screen\", uniqueId \"%s\", app %d x %d, real %d x %d, rotation %d, density %d, state %s}\n",
		id, g.Width, g.Height, g.Width, g.Height, g.Rotation, g.Density, state)
	return 0
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

func dumpInput(c *call, _ []string) int {
	g := c.screen.Display()
	c.printf("INPUT MANAGER (dumpsys input)\n\nEvent Hub State:\n  Devices:\n    -1: Virtual\n    2: touchscreen\n"+
		"Input Reader State:\n  Viewport INTERNAL: displayId=0, orientation=%d, logicalFrame=[0, 0, %d, %d], physicalFrame=[0, 0, %d, %d]\n"+
		"    SurfaceOrientation: %d\n", g.Rotation, g.Width, g.Height, g.Width, g.Height, g.Rotation)
	return 0
}

func dumpPower(c *call, _ []string) int {
	on := c.screen.ScreenOn()
	wake := "Asleep"
	if on {
		wake = "Awake"
	}
	stay, _ := c.setting("global", "stay_on_while_plugged_in")
	timeout, _ := c.setting("system", "screen_off_timeout")
	c.mu.Lock()
	plugged := c.battery.shown().plugged()
	c.mu.Unlock()
	c.printf("POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mDirty=0x0\n  mWakefulness=%s\n  mIsPowered=%t\n  mPlugType=%d\n",
		wake, plugged > 0, plugged)
	c.printf("  mStayOn=%t\n  mStayOnWhilePluggedInSetting=%s\n  mScreenOffTimeoutSetting=%s\n  mHoldingWakeLockSuspendBlocker=false\n"+
		"  mHoldingDisplaySuspendBlocker=%t\n\nDisplay Power: state=%s\n", stay != "0" && plugged > 0, stay, timeout, on, onOff(on))
	return 0
}
