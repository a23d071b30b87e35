package phone

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

var permissionName = regexp.MustCompile(`^[a-zA-Z]\w*(\.\w+)+$`)

// Grant gives an app a permission, such as "android.permission.CAMERA", that it
// asks for. Where a setting of the phone forbids that, the error is a
// *wire.Refusal of code wire.PhoneSetup.
func (c *Controls) Grant(ctx context.Context, pkg, permission string) error {
	return c.permit(ctx, "grant", pkg, permission, true)
}

// Revoke takes a permission from an app, which ends the app if it runs. See
// Grant.
func (c *Controls) Revoke(ctx context.Context, pkg, permission string) error {
	return c.permit(ctx, "revoke", pkg, permission, false)
}

// grantedLine tells whether a permission is granted, in the package manager's
// dump of an app. Some makers add that it is restricted.
var grantedLine = regexp.MustCompile(`(?m)^\s*([\w.]+): granted=(true|false)\b`)

// permit changes a permission and reads what came of it in the same round trip:
// some makers say nothing and do nothing.
func (c *Controls) permit(ctx context.Context, verb, pkg, permission string, want bool) error {
	if !isPackage(pkg) {
		return fmt.Errorf("%s: %.80q is no package name: %w", verb, pkg, ErrBadArgument)
	}
	if len(permission) > 255 || !permissionName.MatchString(permission) {
		return fmt.Errorf("%s: %.80q is no permission: %w", verb, permission, ErrBadArgument)
	}
	fail := func(err error) error { return fmt.Errorf("%s %s to %s: %w", verb, permission, pkg, err) }

	const mark = "phonerack-permissions"
	r, err := c.write(ctx, 0, "pm "+verb+" "+pkg+" "+permission+" 2>&1; echo "+mark+"; dumpsys package "+pkg+" | grep -F "+quote(permission+": granted="))
	said, state, _ := strings.Cut(string(r.Stdout), mark)
	if denied := forbidden(said + string(r.Stderr)); denied != nil {
		return fail(denied)
	}
	if err != nil {
		return fail(err)
	}
	if strings.Contains(said, "Unknown package") {
		return fail(ErrAppMissing)
	}
	r.ExitCode, r.Stdout = 0, []byte(said) // the code is grep's
	if err := silent(r); err != nil {
		return fail(err)
	}
	// An app has one line for each user of the phone.
	lines := grantedLine.FindAllStringSubmatch(state, 32)
	if len(lines) == 0 {
		return nil // a form that is not known; the command did not complain
	}
	for _, m := range lines {
		if m[1] == permission && (m[2] == "true") == want {
			return nil
		}
	}
	return fail(fmt.Errorf("the phone left it as it was, %q: %w", excerpt([]byte(state)), ErrRejected))
}
