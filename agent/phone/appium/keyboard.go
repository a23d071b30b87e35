package appium

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// unicodeIME is the input method that types modified UTF-7.
const unicodeIME = settingsID + "/.UnicodeIME"

// imeRecord is the file on the phone that names the input method which was
// current before ours, so that a program that comes after a crash can put it
// back. It lies outside the pattern of files that phone.Attach clears.
const imeRecord = "/data/local/tmp/phonerack.ime"

// Waits around a change of the input method. The phone says that a method is
// current before it takes keys: appium#15943, appium-adb PR#581 wait half a
// second; keys that come earlier stand in the field as "&SAPY-" (appium#5367).
const (
	imeLimit    = 3 * time.Second
	imeInterval = 100 * time.Millisecond
	imePause    = 500 * time.Millisecond
)

var (
	imeID   = regexp.MustCompile(`^[A-Za-z][\w.]{0,200}/[\w.$]{1,200}$`)
	imeOf   = regexp.MustCompile(`\bmCurId=(\S+)`)
	imeHeld = regexp.MustCompile(`\bmBoundToMethod=(true|false)\b`)
)

// keyboards is what the phone says about its input methods.
type keyboards struct {
	current  string // empty if there is none
	enabled  []string
	known    []string
	recorded string // by imeRecord; empty if there is none
}

func ours(ime string) bool { return strings.HasPrefix(ime, settingsID+"/") }

// keyboards reads the input methods in one round trip.
func (c conn) keyboards(ctx context.Context) (keyboards, error) {
	out, err := c.read(ctx, "settings get secure default_input_method; echo =; ime list -s; echo =; ime list -a -s; echo =; cat "+imeRecord+" 2>/dev/null")
	if err != nil {
		return keyboards{}, fmt.Errorf("read the input methods: %w", err)
	}
	parts := strings.SplitN(out, "=\n", 4) // what follows is the record, whatever it holds
	if len(parts) != 4 {
		return keyboards{}, fmt.Errorf("read the input methods, %s: %w", excerpt(out), phone.ErrMalformed)
	}
	names := func(part string) (ids []string) {
		for line := range strings.Lines(part) {
			if line = strings.TrimSpace(line); imeID.MatchString(line) {
				ids = append(ids, line)
			}
		}
		return ids
	}
	first := func(part string) string {
		if ids := names(part); len(ids) > 0 {
			return ids[0]
		}
		return ""
	}
	return keyboards{current: first(parts[0]), enabled: names(parts[1]), known: names(parts[2]), recorded: first(parts[3])}, nil
}

// before returns the input method to go back to, empty for the phone's default.
func (k keyboards) before() string {
	if k.current != "" && !ours(k.current) {
		return k.current
	}
	if !ours(k.recorded) && slices.Contains(k.known, k.recorded) {
		return k.recorded
	}
	for _, ime := range k.enabled {
		if !ours(ime) {
			return ime
		}
	}
	return ""
}

// withIME makes the Unicode input method current while do runs. Afterwards the
// earlier one is current again, whatever do returned; only if the fence refuses,
// somebody else has the phone by then and it is left as it is, with
// ErrKeyboardLeft.
func (h *Helper) withIME(ctx context.Context, f phone.Fence, do func() error) error {
	k, err := h.conn.keyboards(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(k.known, unicodeIME) {
		return fmt.Errorf("%s has no input method here: %w", settingsID, ErrNotInstalled)
	}
	k.recorded = k.before()
	cmd := "ime enable " + unicodeIME + " && ime set " + unicodeIME
	if k.recorded != "" {
		cmd = "echo " + quote(k.recorded) + " >" + imeRecord + " && " + cmd
	}
	if err := ask(ctx, f); err != nil {
		return err
	}
	r, err := h.conn.send(ctx, cmd)
	if err == nil {
		err = h.awaitIME(ctx, said(r))
	}
	if err != nil {
		err = fmt.Errorf("change the input method: %w", err)
	} else {
		err = do()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	switch left := h.restoreIME(ctx, f, k); {
	case left == nil:
		return err
	case err == nil:
		return left
	default:
		return fmt.Errorf("%w; %w", err, left)
	}
}

// awaitIME waits until the Unicode input method takes keys; said is what the
// change of the method printed.
func (h *Helper) awaitIME(ctx context.Context, said string) error {
	set, err := poll(ctx, imeInterval, imeLimit, func(ctx context.Context) (bool, error) {
		k, err := h.conn.keyboards(ctx)
		return k.current == unicodeIME, err
	})
	switch {
	case err != nil:
		return err
	case !set:
		return fmt.Errorf("the phone kept its input method, %s: %w", excerpt(said), phone.ErrRejected)
	}
	bound, err := poll(ctx, imeInterval, imeLimit, func(ctx context.Context) (bool, error) {
		out, err := h.conn.read(ctx, "dumpsys input_method")
		return takesKeys(out), err
	})
	switch {
	case err != nil:
		return err
	case !bound:
		return fmt.Errorf("the phone does not start the input method: %w", phone.ErrRejected)
	}
	return pause(ctx, imePause)
}

// takesKeys reads dumpsys input_method. The lines differ between versions of
// Android; those that are missing are not held against the method.
func takesKeys(dump string) bool {
	if m := imeOf.FindStringSubmatch(dump); m != nil && m[1] != unicodeIME {
		return false
	}
	m := imeHeld.FindStringSubmatch(dump)
	return m == nil || m[1] == "true"
}

// restoreIME makes k.recorded current again. What counts is which method is
// current in the end, not what the phone says to the commands.
func (h *Helper) restoreIME(ctx context.Context, f phone.Fence, k keyboards) error {
	cmd := "ime reset"
	if k.recorded != "" {
		cmd = "ime set " + quote(k.recorded)
	}
	if !slices.Contains(k.enabled, unicodeIME) {
		cmd += "; ime disable " + unicodeIME
	}
	limit := imeLimit
	cause := ask(ctx, f)
	if cause != nil {
		limit = 0
	} else {
		var r adb.Result
		if r, cause = h.conn.send(ctx, cmd); cause == nil {
			cause = errors.New(excerpt(said(r)))
		}
	}
	back, err := poll(ctx, imeInterval, limit, func(ctx context.Context) (bool, error) {
		now, err := h.conn.keyboards(ctx)
		return err == nil && !ours(now.current) && (k.recorded == "" || now.current == k.recorded), err
	})
	if err != nil || !back {
		return fmt.Errorf("%w: %v", ErrKeyboardLeft, cause) // not wrapped: what was typed is not undone by it
	}
	if _, err := h.conn.write(ctx, f, "rm -f "+imeRecord); err != nil {
		h.log.Warn("the record of the input method stays on the phone", "err", err)
	}
	return nil
}

// typeText types text into the field that has the focus.
func (h *Helper) typeText(ctx context.Context, f phone.Fence, text string) error {
	if reason := untypable(text); reason != "" {
		return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).Because(phone.ErrCannotType)
	}
	typed := 0
	commands := typing(text)
	err := h.withIME(ctx, f, func() error {
		for _, c := range commands {
			if err := h.conn.typePiece(ctx, f, c); err != nil {
				return err
			}
			typed++
		}
		return nil
	})
	if typed > 0 {
		h.Acted()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotInstalled):
		reason := "its helper app is not installed"
		return wire.Refuse(wire.CannotType, map[string]any{"reason": reason}).Because(fmt.Errorf("%w: %w", phone.ErrCannotType, err))
	case typed > 0 && typed < len(commands): // the cause alone would say that nothing was typed
		return fmt.Errorf("type text, %d of %d pieces done: %w: %v", typed, len(commands), phone.ErrPartlyTyped, err)
	}
	return fmt.Errorf("type text: %w", err)
}

// typePiece types what one command can. What the phone says to it is in no error:
// it may repeat the text.
func (c conn) typePiece(ctx context.Context, f phone.Fence, piece string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := ask(ctx, f); err != nil {
		return err
	}
	r, err := c.once(ctx, "input text "+quote(strings.ReplaceAll(piece, " ", "%s")))
	if err != nil {
		return err
	}
	switch said := said(r); {
	case needsSetting(said):
		return phone.ErrDeviceSetup
	case strings.Contains(said, "SecurityException"):
		return fmt.Errorf("not permitted: %w", phone.ErrRejected)
	case r.ExitCode != 0 || strings.Contains(said, "Exception"):
		return fmt.Errorf("exit code %d and a complaint of %d bytes: %w", r.ExitCode, len(said), phone.ErrRejected)
	}
	return nil
}

// untypable returns why text cannot be typed, or "". A line break and a tab are
// characters of the text here; what a field makes of them is its own affair.
func untypable(text string) string {
	switch {
	case text == "":
		return "it is empty"
	case !utf8.ValidString(text):
		return "it is not valid UTF-8"
	case utf8.RuneCountInString(text) > maxTyped:
		return fmt.Sprintf("it is longer than %d characters", maxTyped)
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
			return fmt.Sprintf("it has the control character %q", r)
		}
	}
	return ""
}
