package cleanup

import (
	"slices"
	"strings"
)

// Known is what a rack remembers of a phone.
type Known struct {
	// Baseline are the packages that the phone came with, nil if they are not known:
	// then nothing is uninstalled.
	Baseline []string

	// Used are the packages that were in front while tasks ran, as in
	// runner.Result.Apps; nil if that is not known, after a crash.
	Used []string

	// Keep are packages that are neither stopped nor uninstalled, such as the
	// rack's own helpers.
	Keep []string
}

// Now is what a phone tells of itself.
type Now struct {
	Packages []string // that did not come with the system; nil if they could not be listed
	Front    string   // the package in front before anything is done, "" if it is not known
	Home     string   // the package of the home screen, "" if it is not known
}

// Kind is a sort of act.
type Kind string

// Kinds of act, in the order in which they are done.
const (
	Home       Kind = "home"       // press the key
	Stop       Kind = "stop"       // an app
	Uninstall  Kind = "uninstall"  // an app
	Rotation   Kind = "rotation"   // let the screen turn with the phone again
	Keyboard   Kind = "keyboard"   // the phone's own input method again
	Animations Kind = "animations" // their scales as they were
)

// Act is one thing to do.
type Act struct {
	Kind    Kind   `json:"kind"`
	Package string `json:"package,omitempty"`
}

// maxUninstalled bounds the apps that one clean-up removes. A task does not
// install so many: the baseline is another phone's, or its system was replaced.
const maxUninstalled = 40

// system are packages that are not stopped although they may be in front.
var system = []string{
	"android", "com.android.systemui", "com.android.permissioncontroller", "com.google.android.permissioncontroller",
	"com.android.packageinstaller", "com.google.android.packageinstaller", "com.google.android.gms", "com.android.phone",
}

// Plan decides what is to be done. surplus are the apps beyond the baseline that
// it does not dare to remove because they are too many.
func Plan(known Known, now Now) (acts []Act, surplus []string) {
	acts = append(acts, Act{Kind: Home})
	used := known.Used
	if used == nil && now.Front != "" {
		used = []string{now.Front}
	}
	for _, pkg := range once(used) {
		if pkg != now.Home && !slices.Contains(system, pkg) && !slices.Contains(known.Keep, pkg) && !launcher(pkg) {
			acts = append(acts, Act{Stop, pkg})
		}
	}
	if known.Baseline != nil {
		for _, pkg := range once(now.Packages) {
			if !slices.Contains(known.Baseline, pkg) && !slices.Contains(known.Keep, pkg) && !slices.Contains(system, pkg) {
				surplus = append(surplus, pkg)
			}
		}
		if len(surplus) <= maxUninstalled {
			for _, pkg := range surplus {
				acts = append(acts, Act{Uninstall, pkg})
			}
			surplus = nil
		}
	}
	return append(acts, Act{Kind: Rotation}, Act{Kind: Keyboard}, Act{Kind: Animations}), surplus
}

// launcher tells whether a package is a home screen by its name, for when the
// phone does not tell which is.
func launcher(pkg string) bool {
	return strings.Contains(pkg, "launcher") || strings.HasSuffix(pkg, ".home")
}

// once returns the list without what is in it twice, in order.
func once(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
