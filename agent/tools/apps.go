package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

const packageSchema = `"package": {"type": "string", "minLength": 3, "maxLength": 255}`

// packageName is Android's form of an application id.
var packageName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)

// app reads the package that a call names.
func app(tool string, args json.RawMessage) (string, error) {
	call, err := decode[struct {
		Package string `json:"package"`
	}](args)
	if err == nil && !packageName.MatchString(call.Package) {
		err = badArgument(tool, "$.package", "is not a package name")
	}
	return call.Package, err
}

var launchApp = Tool{
	Name:        "launch_app",
	Description: "Start an app, or bring it to the front, by its package name such as com.android.settings.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + packageSchema + `},
		"required": ["package"], "additionalProperties": false}`),
	Annotations: Annotations{Idempotent: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		pkg, err := app(out.Tool, args)
		if err != nil {
			return err
		}
		err = out.write(ctx, env, "start of "+pkg, func() error { return env.Controls.Launch(ctx, pkg) })
		return missingApp(err, pkg)
	},
}

// missingApp names the app that a refusal is about.
func missingApp(err error, app string) error {
	if wire.Is(err, wire.AppMissing) {
		return wire.From(err).With(map[string]any{"app": app}).Because(err)
	}
	return err
}

var stopApp = Tool{
	Name:        "stop_app",
	Description: "Stop an app with all it does in the background. What it has not saved is lost.",
	Schema: json.RawMessage(`{"type": "object", "properties": {` + packageSchema + `},
		"required": ["package"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, Idempotent: true},
	Role:        Operator,
	Permission:  PermitStop,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		pkg, err := app(out.Tool, args)
		if err != nil {
			return err
		}
		return out.write(ctx, env, "stop of "+pkg, func() error { return env.Controls.Stop(ctx, pkg) })
	},
}

var listApps = Tool{
	Name:        "list_apps",
	Description: "List the apps that can be started, as lines of package name and, where the phone tells it, label. filter is a part of either.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"filter": {"type": "string", "minLength": 1, "maxLength": 100}},
		"additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Filter string `json:"filter"`
		}](args)
		if err != nil {
			return err
		}
		if env.Phone == nil {
			return unsupported("list_apps without the phone's list of apps")
		}
		apps, err := env.Phone.Apps(ctx)
		if err != nil {
			return env.notRead(ctx, "list of apps", err)
		}
		out.result(appLines(apps, call.Filter), "use filter")
		return nil
	},
}

// appLines lists the apps in the order of their packages, those that came with
// the phone last.
func appLines(apps []phone.App, filter string) string {
	apps = slices.Clone(apps)
	slices.SortFunc(apps, func(a, b phone.App) int {
		if a.System != b.System {
			if a.System {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Package, b.Package)
	})
	var b strings.Builder
	filter = fold(filter)
	for _, a := range apps {
		if !strings.Contains(fold(a.Package), filter) && !strings.Contains(fold(a.Label), filter) {
			continue
		}
		b.WriteString(a.Package)
		if a.Label != "" {
			fmt.Fprintf(&b, " %q", a.Label)
		}
		b.WriteByte('\n')
	}
	switch labelled := slices.ContainsFunc(apps, func(a phone.App) bool { return a.Label != "" }); {
	case b.Len() > 0:
	case len(apps) > 0 && !labelled:
		return "no such package; this phone does not tell what its apps are called: list all\n"
	default:
		return "no such app\n"
	}
	return b.String()
}

var installApp = Tool{
	Name:        "install_app",
	Description: "Install an app from a file that came with the task, by the file's name.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"file": {"type": "string", "minLength": 1, "maxLength": 200}},
		"required": ["file"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, Idempotent: true},
	Role:        Operator,
	Permission:  PermitInstall,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			File string `json:"file"`
		}](args)
		if err != nil {
			return err
		}
		if env.Controls == nil {
			return notLeased(env)
		}
		file, size, err := env.input(ctx, out.Tool, call.File)
		if err != nil {
			return err
		}
		defer file.Close()
		if size == 0 {
			return notInstalled(env, call.File, "the file is empty")
		}
		err = out.write(ctx, env, "installation of "+call.File, func() error { return env.Controls.Install(ctx, file, size) })
		if wire.Is(err, wire.InstallFailed) {
			return wire.From(err).With(map[string]any{"app": call.File}).Because(err)
		}
		return err
	},
}

// notInstalled refuses a file that need not be shown to the phone.
func notInstalled(env Env, file, reason string) error {
	return wire.Refuse(wire.InstallFailed, map[string]any{"app": file, "reason": reason}).With(env.place()).Because(phone.ErrNotInstalled)
}
