package apktest

import "phonerack/usb/phonesim/android/apk"

// Server returns the manifests of Appium's UiAutomator2 server, release 10.6.6, and of its test package, as far as
// a simulated phone looks at them.
func Server() (server, tests apk.Manifest) {
	const name = "io.appium.uiautomator2.server"
	server = apk.Manifest{
		Package: name, VersionCode: 278, VersionName: "10.6.6", MinSDK: 26, TargetSDK: 34, Debuggable: true,
		Permissions: []string{"android.permission.INTERNET", "android.permission.WAKE_LOCK", "android.permission.QUERY_ALL_PACKAGES"},
	}
	tests = apk.Manifest{
		Package: name + ".test", MinSDK: 26, TargetSDK: 34, Debuggable: true,
		Instrumenting: []apk.Instrumentation{{Name: "androidx.test.runner.AndroidJUnitRunner", Target: name}},
	}
	return server, tests
}

// Settings returns the manifest of Appium's Settings app, release 8.0.10, as far as a simulated phone looks at it.
func Settings() apk.Manifest {
	const name = "io.appium.settings"
	keyboard := func(class string) apk.Component {
		return apk.Component{
			Name: name + "." + class, Permission: "android.permission.BIND_INPUT_METHOD", Actions: []string{"android.view.InputMethod"},
		}
	}
	return apk.Manifest{
		Package: name, VersionCode: 192, VersionName: "8.0.10", MinSDK: 26, TargetSDK: 35, Debuggable: true,
		Permissions: []string{
			"android.permission.WRITE_SETTINGS", "android.permission.ACCESS_FINE_LOCATION", "android.permission.ACCESS_COARSE_LOCATION",
			"android.permission.SET_ANIMATION_SCALE", "android.permission.CHANGE_CONFIGURATION", "android.permission.READ_SMS",
		},
		Activities: []apk.Component{{Name: name + ".Settings", Actions: []string{"android.intent.action.MAIN"}, Categories: []string{"android.intent.category.LAUNCHER"}}},
		Services:   []apk.Component{keyboard("AppiumIME"), keyboard("EmptyIME"), keyboard("UnicodeIME"), {Name: name + ".ForegroundService"}},
		Receivers:  []apk.Component{{Name: name + ".receivers.ClipboardReceiver"}},
	}
}
