package android

import (
	"maps"
	"slices"
	"strings"
)

// runtimePermissions are those that a user grants (AOSP core/res/AndroidManifest.xml, protection "dangerous").
var runtimePermissions = permissionSet("ACCESS_BACKGROUND_LOCATION ACCESS_COARSE_LOCATION ACCESS_FINE_LOCATION ACCESS_MEDIA_LOCATION ACTIVITY_RECOGNITION " +
	"ANSWER_PHONE_CALLS BLUETOOTH_ADVERTISE BLUETOOTH_CONNECT BLUETOOTH_SCAN BODY_SENSORS CALL_PHONE CAMERA GET_ACCOUNTS NEARBY_WIFI_DEVICES " +
	"POST_NOTIFICATIONS PROCESS_OUTGOING_CALLS READ_CALENDAR READ_CALL_LOG READ_CONTACTS READ_EXTERNAL_STORAGE READ_MEDIA_AUDIO READ_MEDIA_IMAGES " +
	"READ_MEDIA_VIDEO READ_PHONE_NUMBERS READ_PHONE_STATE READ_SMS RECEIVE_MMS RECEIVE_SMS RECEIVE_WAP_PUSH RECORD_AUDIO SEND_SMS USE_SIP " +
	"WRITE_CALENDAR WRITE_CALL_LOG WRITE_CONTACTS WRITE_EXTERNAL_STORAGE")

// developmentPermissions are granted by nobody but the shell (protection "development").
var developmentPermissions = permissionSet("CHANGE_CONFIGURATION DUMP PACKAGE_USAGE_STATS READ_LOGS SET_ALWAYS_FINISH SET_ANIMATION_SCALE SET_DEBUG_APP " +
	"SET_PROCESS_LIMIT WRITE_SECURE_SETTINGS")

// restrictedPermissions are marked in the dump of a package since Android 10.
var restrictedPermissions = permissionSet("ACCESS_BACKGROUND_LOCATION PROCESS_OUTGOING_CALLS READ_CALL_LOG READ_EXTERNAL_STORAGE READ_SMS RECEIVE_MMS " +
	"RECEIVE_SMS RECEIVE_WAP_PUSH SEND_SMS WRITE_CALL_LOG WRITE_EXTERNAL_STORAGE")

func permissionSet(names string) map[string]bool {
	set := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		set["android.permission."+n] = true
	}
	return set
}

// pmGrant grants or revokes a permission.
func (c *call) pmGrant(verb string, args []string) int {
	var names []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--user" {
			i++
		} else if !strings.HasPrefix(args[i], "-") {
			names = append(names, args[i])
		}
	}
	if len(names) < 2 {
		c.errorf("Error: no %s specified\n", map[int]string{0: "package", 1: "permission"}[len(names)])
		return 1
	}
	pkg, name := names[0], names[1]
	a, ok := c.find(pkg)
	switch {
	case c.Faults().GrantDenied:
		return c.refuseGrant(verb, "java.lang.SecurityException: Neither user 2000 nor current process has android.permission.GRANT_RUNTIME_PERMISSIONS.")
	case !ok:
		return c.refuseGrant(verb, "java.lang.IllegalArgumentException: Unknown package: "+pkg)
	case !strings.HasPrefix(name, "android.permission.") && !slices.Contains(a.permissions, name):
		return c.refuseGrant(verb, "java.lang.IllegalArgumentException: Unknown permission: "+name)
	case !slices.Contains(a.permissions, name):
		return c.refuseGrant(verb, "java.lang.SecurityException: Package "+pkg+" has not requested permission "+name)
	case !runtimePermissions[name] && !developmentPermissions[name]:
		return c.refuseGrant(verb, "java.lang.SecurityException: Permission "+name+" requested by "+pkg+" is not a changeable permission type")
	}
	had := c.granted(pkg)[name]
	c.mu.Lock()
	c.grantLocked(pkg, name, verb == "grant")
	c.mu.Unlock()
	if had && verb == "revoke" {
		c.killed(pkg) // who loses a permission starts anew
	}
	return 0
}

// refuseGrant reports an exception; Android 7 says it in a line of its own words.
func (c *call) refuseGrant(verb, text string) int {
	if c.release.version >= 8 {
		return c.exception(verb, text, "com.android.server.pm.permission.PermissionManagerService."+verb+"RuntimePermission(PermissionManagerService.java:1503)")
	}
	word := "Operation not allowed"
	if strings.Contains(text, "IllegalArgument") {
		word = "Bad argument"
	}
	c.errorf("%s: %s\n", word, text)
	return 1
}

// granted returns the permissions that an app has, those included that the user gave it meanwhile.
func (d *Device) granted(pkg string) map[string]bool {
	given := d.screen.TakeGrants()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range given {
		d.grantLocked(g.Package, g.Permission, true)
	}
	return maps.Clone(d.grants[pkg])
}

func (d *Device) grantLocked(pkg, name string, granted bool) {
	if d.grants[pkg] == nil {
		d.grants[pkg] = map[string]bool{}
	}
	d.grants[pkg][name] = granted
}
