package android

import (
	"fmt"
	"strings"
)

const (
	actionMain       = "android.intent.action.MAIN"
	categoryLauncher = "android.intent.category.LAUNCHER"
)

// intent is what am and pm read from their arguments.
type intent struct {
	action, data, mime, pkg string
	component               string
	categories              []string
	flags                   string
	extras                  bool
	wait, stop              bool
	rest                    []string
}

// parseIntent reads an intent and the options of am start. The error is the option that is not known.
func parseIntent(args []string) (in intent, bad string) {
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch a := args[i]; a {
		case "-a":
			in.action = value()
		case "-d":
			in.data = value()
		case "-t":
			in.mime = value()
		case "-c":
			in.categories = append(in.categories, value())
		case "-n":
			in.component = value()
		case "-p":
			in.pkg = value()
		case "-f":
			in.flags = value()
		case "-e", "--es", "--ei", "--ez", "--el", "--ef", "--eu", "--ecn", "--eia", "--esa":
			value()
			value()
			in.extras = true
		case "--esn":
			value()
			in.extras = true
		case "-W":
			in.wait = true
		case "-S":
			in.stop = true
		case "--user", "--display", "-R", "--windowingMode", "--activityType", "--task", "--query-flags":
			value()
		case "-D", "-N", "--brief", "--components", "--activity-clear-top", "--activity-single-top", "--activity-clear-task",
			"--activity-brought-to-front", "--activity-no-animation", "--grant-read-uri-permission", "--include-stopped-packages",
			"--track-allocation", "--lock-task", "--streaming":
		default:
			if strings.HasPrefix(a, "-") {
				return in, a
			}
			in.rest = append(in.rest, a)
			in.positional(a)
		}
	}
	return in, ""
}

// positional reads an argument without an option: a URI, a component or a package.
func (in *intent) positional(a string) {
	switch {
	case strings.Contains(a, ":"):
		in.data = a
	case strings.Contains(a, "/"):
		in.component = a
	default:
		in.pkg = a
	}
	if in.action == "" && !strings.Contains(a, ":") && len(in.categories) == 0 {
		in.action = actionMain
		in.categories = append(in.categories, categoryLauncher)
	}
}

// web tells whether the intent is a link for a browser.
func (in *intent) web() bool {
	return in.action == "android.intent.action.VIEW" && (strings.HasPrefix(in.data, "http://") || strings.HasPrefix(in.data, "https://"))
}

// target is the package that the intent is for, if it says.
func (in *intent) target() string {
	if pkg, _, ok := strings.Cut(in.component, "/"); ok {
		return pkg
	}
	return in.pkg
}

// String is Intent.toString, the extras left out but mentioned.
func (in *intent) String() string {
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, key+"="+value)
		}
	}
	add("act", in.action)
	if len(in.categories) > 0 {
		add("cat", "["+strings.Join(in.categories, ",")+"]")
	}
	if scheme, rest, ok := strings.Cut(in.data, ":"); ok {
		// What follows the host may be private.
		host, more, cut := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		dat := scheme + ":" + rest
		if strings.HasPrefix(rest, "//") && cut && more != "" {
			dat = scheme + "://" + host + "/..."
		}
		add("dat", dat)
	} else {
		add("dat", in.data)
	}
	add("typ", in.mime)
	add("flg", in.flags)
	add("pkg", in.pkg)
	if pkg, cls, ok := strings.Cut(in.component, "/"); ok {
		add("cmp", pkg+"/"+shortActivity(pkg, cls))
	}
	text := "Intent { " + strings.Join(parts, " ")
	if in.extras {
		text += " (has extras)"
	}
	return fmt.Sprintf("%s }", text)
}
