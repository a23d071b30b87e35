package phone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// scaleNames are the settings that say how long animations take, as a multiple
// of what apps ask for.
var scaleNames = [3]string{"window_animation_scale", "transition_animation_scale", "animator_duration_scale"}

// scales are values of scaleNames; "null" where the setting does not exist.
type scales [len(scaleNames)]string

// scalesFile keeps the scales on the phone while they are 0: only there they are
// found again after a crash, and in another rack.
const scalesFile = "/data/local/tmp/.phonerack-scales"

var (
	scalesSource = source{"scales", "cat " + scalesFile + " 2>/dev/null"}
	scaleValue   = regexp.MustCompile(`^(?:null|\d{1,3}(?:\.\d{1,6})?)$`)
)

// parseScales reads three values, one a line; nil if that is not what out holds.
func parseScales(out string) *scales {
	fields := strings.Fields(out)
	if len(fields) != len(scaleNames) {
		return nil
	}
	for _, f := range fields {
		if !scaleValue.MatchString(f) {
			return nil
		}
	}
	return (*scales)(fields)
}

// AnimationsStopped reports whether StopAnimations is to be undone, also that of
// an earlier connection.
func (p *Phone) AnimationsStopped() bool { return p.scales.Load() != nil }

// StopAnimations sets the phone's three animation scales to 0, so that a screen
// can rest whose tree failed with ErrNotIdle. What they were is kept on the phone
// until RestoreAnimations, whatever becomes of this process. A phone that allows
// no change of its settings is ErrRejected.
func (c *Controls) StopAnimations(ctx context.Context) error {
	r, err := c.write(ctx, scalesTime, stopScales())
	was, now := cutScales(string(r.Stdout))
	switch {
	case was != nil:
		c.phone.scales.Store(was)
	case err == nil, errors.Is(err, ErrUnknownOutcome), errors.Is(err, ErrRejected), errors.Is(err, ErrDeviceSetup):
		c.phone.scalesUnsure.Store(true) // it may have run, at least to a part
	}
	if err == nil && (now == nil || !now.zero()) {
		err = fmt.Errorf("the phone said %q: %w", excerpt(r.Stdout, r.Stderr), ErrRejected)
	}
	if err != nil {
		return fmt.Errorf("stop animations: %w", err)
	}
	return nil
}

// zero reports whether all scales are 0.
func (s *scales) zero() bool {
	for _, v := range s {
		if strings.Trim(v, "0.") != "" {
			return false
		}
	}
	return true
}

// scalesTime is what nine changes of settings last by themselves where each
// starts a virtual machine: before Android 8.
const scalesTime = 15 * time.Second

// stopScales is the command that keeps the scales in the file, unless they are
// kept there already, and sets them to 0 only if all three are kept. It prints
// what they were and what they are.
func stopScales() string {
	var cmd strings.Builder
	cmd.WriteString("f=" + scalesFile + "; [ -s $f ] || { { ")
	for _, n := range scaleNames {
		cmd.WriteString("settings get global " + n + "; ")
	}
	// The file has its name only when it is complete.
	cmd.WriteString("} >$f.new && mv $f.new $f; }; set -- $(cat $f); [ $# = 3 ] || rm -f $f; [ $# = 3 ] && echo $1 $2 $3")
	for _, n := range scaleNames {
		cmd.WriteString(" && settings put global " + n + " 0")
	}
	for _, n := range scaleNames {
		cmd.WriteString("; settings get global " + n)
	}
	return cmd.String()
}

// cutScales reads two times three values.
func cutScales(out string) (first, second *scales) {
	fields := strings.Fields(out)
	if len(fields) != 2*len(scaleNames) {
		return nil, nil
	}
	return parseScales(strings.Join(fields[:3], "\n")), parseScales(strings.Join(fields[3:], "\n"))
}

// restoredWord is printed when the scales are what they were.
const restoredWord = "phonerack-restored"

// RestoreAnimations undoes StopAnimations, also that of an earlier connection.
// It sends nothing if there is nothing to undo.
func (c *Controls) RestoreAnimations(ctx context.Context) error {
	was, err := c.phone.keptScales(ctx)
	if was == nil || err != nil {
		return err
	}
	put, check := "", ""
	for i, n := range scaleNames {
		if was[i] == "null" {
			put += "settings delete global " + n + "; "
		} else {
			put += "settings put global " + n + " " + was[i] + "; "
		}
		check += " && [ \"$(settings get global " + n + ")\" = " + was[i] + " ]"
	}
	r, err := c.write(ctx, scalesTime, put+"true"+check+" && rm -f "+scalesFile+" && echo "+restoredWord)
	if !strings.Contains(string(r.Stdout), restoredWord) { // says more than a complaint: the values are what they were
		return fmt.Errorf("restore animations: the phone said %q: %w", excerpt(r.Stdout, r.Stderr), cmp.Or(err, ErrRejected))
	}
	c.phone.scales.Store(nil)
	return nil
}

// keptScales returns what is to be restored, nil if there is nothing. After a
// write whose outcome is not known the phone is asked.
func (p *Phone) keptScales(ctx context.Context) (*scales, error) {
	if was := p.scales.Load(); was != nil || !p.scalesUnsure.Load() {
		return was, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a := newAnswers()
	if err := p.ask(ctx, a, []source{scalesSource}); err != nil {
		return nil, fmt.Errorf("restore animations: %w", err)
	}
	was := parseScales(a.text(scalesSource))
	p.scales.Store(was)
	p.scalesUnsure.Store(false)
	return was, nil
}
