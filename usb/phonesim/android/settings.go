package android

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (d *Device) defaultSettings() map[string]map[string]string {
	return map[string]map[string]string{
		"system": {
			"accelerometer_rotation": "0", "font_scale": "1.0", "screen_brightness": "102", "screen_brightness_mode": "0",
			"screen_off_timeout": "60000", "time_12_24": "24", "user_rotation": "0", "volume_music": "5",
		},
		"secure": {
			"accessibility_enabled": "0", "android_id": strconv.FormatUint(0x9774d56d00000000|uint64(d.hash(d.config.Serial)), 16),
			"default_input_method": latinIME, "enabled_input_methods": latinIME + ":" + voiceIME,
			"location_mode": "3", "show_ime_with_hard_keyboard": "0", "user_setup_complete": "1",
		},
		"global": {
			"adb_enabled": "1", "airplane_mode_on": "0", "auto_time": "1",
			"bluetooth_on": "0", "device_name": d.config.Model, "device_provisioned": "1", "low_power": "0",
			"stay_on_while_plugged_in": "0", "transition_animation_scale": "1.0", "wifi_on": "1", "window_animation_scale": "1.0",
		},
	}
}

// setting reads one value.
func (d *Device) setting(namespace, key string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.settings[namespace][key]
	return v, ok
}

// maxSettings and maxSetting bound what "settings put" can store.
const (
	maxSettings = 2000
	maxSetting  = 20000
)

// setSetting stores one value and lets it work.
func (d *Device) setSetting(namespace, key, value string) bool {
	d.mu.Lock()
	ns := d.settings[namespace]
	_, exists := ns[key]
	ok := exists || len(ns) < maxSettings
	if ok {
		ns[key] = value
	}
	d.mu.Unlock()
	if ok {
		d.settingChanged(key)
	}
	return ok
}

// settingChanged lets a setting work.
func (d *Device) settingChanged(key string) {
	switch key {
	case "user_rotation", "accelerometer_rotation":
		// A phone that follows its sensor stands upright in the rack.
		n := 0
		if v, _ := d.setting("system", "accelerometer_rotation"); v == "0" {
			v, _ := d.setting("system", "user_rotation")
			n, _ = strconv.Atoi(v)
		}
		d.screen.SetRotation(n & 3)
	case "window_animation_scale", "transition_animation_scale", "animator_duration_scale":
		d.screen.SetAnimationScale(d.animationScale())
	case "default_input_method":
		d.showTyping()
	}
}

// animationScale is the largest of the three scales.
func (d *Device) animationScale() float64 {
	scale := 0.0
	for _, key := range []string{"window_animation_scale", "transition_animation_scale", "animator_duration_scale"} {
		v, ok := d.setting("global", key)
		f, err := strconv.ParseFloat(v, 64)
		if !ok || err != nil {
			f = 1
		}
		scale = max(scale, f)
	}
	return min(scale, 10)
}

func settingsCommand(c *call) int {
	if !c.spend(60 * time.Millisecond) {
		return exitKilled
	}
	args := c.args
	if len(args) >= 2 && args[0] == "--user" {
		args = args[2:]
	}
	if len(args) == 0 {
		c.settingsUsage()
		return exitMinus1
	}
	verb, rest := args[0], args[1:]
	if len(rest) >= 2 && rest[0] == "--user" {
		rest = rest[2:]
	}
	if !slices.Contains([]string{"get", "put", "delete", "list", "reset"}, verb) {
		c.errorf("Unknown command: %s\n", verb)
		c.settingsUsage()
		return exitMinus1
	}
	if len(rest) == 0 {
		c.errorf("Bad arguments\n")
		return exitMinus1
	}
	namespace := strings.ToLower(rest[0])
	c.mu.Lock()
	_, known := c.settings[namespace]
	c.mu.Unlock()
	if !known {
		c.errorf("Invalid namespace '%s'\n", rest[0])
		return exitMinus1
	}
	rest = rest[1:]
	need := map[string]int{"get": 1, "put": 2, "delete": 1}[verb]
	if len(rest) < need {
		c.errorf("Bad arguments\n")
		return exitMinus1
	}
	return c.settingsVerb(verb, namespace, rest)
}

func (c *call) settingsVerb(verb, namespace string, rest []string) int {
	switch verb {
	case "get":
		v, ok := c.setting(namespace, rest[0])
		if !ok {
			v = "null"
		}
		c.printf("%s\n", v)
	case "list":
		c.mu.Lock()
		all := maps.Clone(c.settings[namespace])
		c.mu.Unlock()
		for _, k := range slices.Sorted(maps.Keys(all)) {
			c.printf("%s=%s\n", k, all[k])
		}
	default:
		if c.Faults().SettingsDenied {
			return c.exception(verb, "java.lang.SecurityException: Permission denial: writing to settings requires:"+
				"android.permission.WRITE_SECURE_SETTINGS", "com.android.providers.settings.SettingsProvider.enforceWritePermission(SettingsProvider.java:2310)")
		}
		return c.changeSetting(verb, namespace, rest)
	}
	return 0
}

func (c *call) changeSetting(verb, namespace string, rest []string) int {
	switch verb {
	case "put":
		if len(rest[1]) > maxSetting || !c.setSetting(namespace, rest[0], rest[1]) {
			return c.exception(verb, "java.lang.IllegalStateException: You are adding too many system settings. "+
				"You should stop using system settings for app specific data package: com.android.shell",
				"com.android.providers.settings.SettingsState.updateMemoryUsage(SettingsState.java:690)")
		}
	case "delete":
		c.mu.Lock()
		_, existed := c.settings[namespace][rest[0]]
		delete(c.settings[namespace], rest[0])
		c.mu.Unlock()
		c.settingChanged(rest[0])
		n := 0
		if existed {
			n = 1
		}
		c.printf("Deleted %d rows\n", n)
	}
	return 0
}

func (c *call) settingsUsage() {
	c.errorf("usage: settings [--user <USER_ID> | current] get namespace key\n" +
		"       settings put namespace key value | delete namespace key | list namespace\n")
}

// contentCommand knows the settings provider; others are not there.
func contentCommand(c *call) int {
	if !c.spend(300 * time.Millisecond) {
		return exitKilled
	}
	var uri, where string
	binds := map[string]string{}
	for i := 1; i+1 < len(c.args); i++ {
		switch c.args[i] {
		case "--uri":
			uri = c.args[i+1]
		case "--where":
			where = c.args[i+1]
		case "--bind":
			if parts := strings.SplitN(c.args[i+1], ":", 3); len(parts) == 3 {
				binds[parts[0]] = parts[2]
			}
		}
	}
	if uri == "" {
		c.errorf("[ERROR] Content provider URI not specified. Did you specify --uri argument?\n")
		return 1
	}
	namespace, found := strings.CutPrefix(uri, "content://settings/")
	namespace, key, _ := strings.Cut(namespace, "/")
	c.mu.Lock()
	all, known := c.settings[namespace]
	all = maps.Clone(all)
	c.mu.Unlock()
	if !found || !known {
		authority, _, _ := strings.Cut(strings.TrimPrefix(uri, "content://"), "/")
		c.errorf("Error while accessing provider:%s\njava.lang.IllegalStateException: Could not find provider: %s\n", authority, authority)
		return 1
	}
	if w, ok := strings.CutPrefix(where, "name="); ok {
		key = strings.Trim(w, `'"`)
	}
	switch c.arg(0) {
	case "query":
		return c.contentQuery(all, key)
	case "insert":
		if c.Faults().SettingsDenied || !c.setSetting(namespace, binds["name"], binds["value"]) {
			c.errorf("Error while accessing provider:settings\njava.lang.SecurityException: Permission denial\n")
			return 1
		}
		return 0
	}
	c.errorf("[ERROR] Unsupported operation: %s\n", c.arg(0))
	return 1
}

func (c *call) contentQuery(all map[string]string, key string) int {
	row := 0
	for i, k := range slices.Sorted(maps.Keys(all)) {
		if key == "" || k == key {
			c.printf("Row: %d _id=%d, name=%s, value=%s\n", row, i+1, k, all[k])
			row++
		}
	}
	if row == 0 {
		c.printf("No result found.\n")
	}
	return 0
}
