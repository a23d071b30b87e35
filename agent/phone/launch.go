package phone

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// launchTime is what am waits for an app to draw, on top of the timeout of a
// write.
const launchTime = 20 * time.Second

var (
	packageName = regexp.MustCompile(`^[a-zA-Z]\w*(\.\w+)+$`)
	launchable  = regexp.MustCompile(`^([a-zA-Z]\w*(?:\.\w+)*)/[\w.$]+$`)
	noActivity  = regexp.MustCompile(`(?m)^Error: Activity class .* does not exist\.|^Error: Activity not started, unable to resolve `)
	startStatus = regexp.MustCompile(`(?m)^Status: (\w+)\s*$`)
	startError  = regexp.MustCompile(`(?m)^(?:Error|Exception|java\.lang\.)\S*.*$`)
)

// isPackage reports whether pkg can be the name of an app.
func isPackage(pkg string) bool { return len(pkg) <= 255 && packageName.MatchString(pkg) }

// Launch starts an app by its launcher activity, or brings it to the front, and
// waits until it has drawn. What is in front then may be another activity or
// another app. It fails with ErrAppMissing if the app has no launcher activity,
// and with ErrUnknownOutcome if it did not draw in time.
func (c *Controls) Launch(ctx context.Context, pkg string) error {
	if !isPackage(pkg) {
		return fmt.Errorf("launch: %.80q is no package name: %w", pkg, ErrBadArgument)
	}
	entry, err := c.launcher(ctx, pkg)
	if err != nil {
		return fmt.Errorf("launch %s: %w", pkg, err)
	}
	if err := c.start(ctx, "am start -W -n "+quote(entry)); err != nil {
		return fmt.Errorf("launch %s: %w", pkg, err)
	}
	return nil
}

// start starts an activity and waits until it has drawn.
func (c *Controls) start(ctx context.Context, cmd string) error {
	r, err := c.write(ctx, launchTime, cmd)
	if err != nil {
		return err
	}
	return started(string(r.Stdout)+"\n"+string(r.Stderr), r.ExitCode)
}

// launcher finds the launcher activity. An app with several of them resolves to
// the system's chooser; then the app's first is taken.
func (c *Controls) launcher(ctx context.Context, pkg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, cmd := range []string{
		"cmd package resolve-activity --brief " + pkg,
		"cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER " + pkg,
	} {
		out, err := c.phone.conn.text(ctx, cmd)
		if err != nil {
			return "", fmt.Errorf("find its activity: %w", err)
		}
		chooser := false
		for line := range strings.Lines(out) {
			m := launchable.FindStringSubmatch(strings.TrimSpace(line))
			switch {
			case m == nil:
			case m[1] == pkg:
				return m[0], nil
			default:
				chooser = true
			}
		}
		if !chooser {
			break
		}
	}
	return "", ErrAppMissing
}

// started reads what am start -W printed.
func started(out string, exit int) error {
	out = strings.ReplaceAll(out, "\r\n", "\n")
	if noActivity.MatchString(out) {
		return ErrAppMissing
	}
	m := startStatus.FindStringSubmatch(out)
	switch said := startError.FindString(out); {
	case said != "":
		return fmt.Errorf("%q: %w", excerpt([]byte(said)), ErrRejected)
	case m != nil && m[1] == "ok":
		return nil
	case m != nil && m[1] == "timeout":
		return fmt.Errorf("it has not drawn yet: %w", ErrUnknownOutcome)
	}
	return fmt.Errorf("exit code %d, %q: %w", exit, excerpt([]byte(out)), ErrRejected)
}

// Stop ends an app and whatever it runs in the background.
func (c *Controls) Stop(ctx context.Context, pkg string) error {
	if !isPackage(pkg) {
		return fmt.Errorf("stop: %.80q is no package name: %w", pkg, ErrBadArgument)
	}
	r, err := c.write(ctx, 0, "am force-stop "+pkg)
	if err == nil {
		err = silent(r)
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", pkg, err)
	}
	return nil
}
