package phone

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// ResetRotation fixes the screen in its natural upright position: a phone in a
// rack lies as it lies. An app in front that wants another position keeps it.
func (c *Controls) ResetRotation(ctx context.Context) error {
	const upright = "0 0"
	// The position first: the screen must not turn to an old one in between.
	r, err := c.write(ctx, 0, "settings put system user_rotation 0; settings put system accelerometer_rotation 0; "+
		"echo $(settings get system user_rotation) $(settings get system accelerometer_rotation)")
	if err == nil && strings.TrimSpace(string(r.Stdout)) != upright {
		err = fmt.Errorf("the phone said %q: %w", excerpt(r.Stdout, r.Stderr), ErrRejected)
	}
	if err != nil {
		return fmt.Errorf("reset rotation: %w", err)
	}
	return nil
}

var keyboardSource = source{"keyboard", "settings get secure default_input_method"}

// helperKeyboards are packages with input methods that programs switch to for a
// moment. None of them is a phone's own.
var helperKeyboards = []string{
	"io.appium.settings", "com.android.adbkeyboard", "com.github.uiautomator", "com.droidrun.portal", "com.mobilerun.portal",
}

// parseKeyboard reads the id of an input method, "" if it is none.
func parseKeyboard(out string) string {
	name := strings.TrimSpace(out)
	if len(name) > maxComponent || !imeName.MatchString(name) {
		return ""
	}
	return name
}

// isHelperKeyboard reports whether an input method is a helper's.
func isHelperKeyboard(name string) bool {
	pkg, _, _ := strings.Cut(name, "/")
	return slices.Contains(helperKeyboards, pkg)
}

// knowKeyboard notes the input method that the phone has when it is attached. If
// that is a helper's, which a crash has left, the one that is known from earlier
// stays the phone's own.
func (p *Phone) knowKeyboard(out string) {
	if name := parseKeyboard(out); name != "" && !isHelperKeyboard(name) {
		p.choose(func(s *Strategies) { s.Keyboard = name })
	}
}

// ResetKeyboard makes the phone's own input method the current one again, which
// is the one that the phone had when it was attached. If that is not known or is
// gone, the phone chooses one. It sends nothing if nothing has to be changed, and
// succeeds only if no other's input method is left.
func (c *Controls) ResetKeyboard(ctx context.Context) error {
	if err := c.resetKeyboard(ctx); err != nil {
		return fmt.Errorf("reset keyboard: %w", err)
	}
	return nil
}

func (c *Controls) resetKeyboard(ctx context.Context) error {
	out, err := c.phone.one(ctx, keyboardSource)
	if err != nil {
		return err
	}
	now, own := parseKeyboard(out), c.phone.Strategies().Keyboard
	if now != "" && now == own {
		return nil
	}
	commands := []string{"ime reset"}
	if own != "" {
		commands = []string{"ime enable " + quote(own) + "; ime set " + quote(own), "ime reset"}
	}
	for _, cmd := range commands {
		r, err := c.write(ctx, 0, cmd+" >/dev/null; "+keyboardSource.cmd)
		if err != nil {
			return err
		}
		now = parseKeyboard(string(r.Stdout))
		if now != "" && !isHelperKeyboard(now) && (now == own || cmd == "ime reset") {
			return nil
		}
	}
	return fmt.Errorf("the phone's input method is %q: %w", now, ErrRejected)
}
