package appium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// Bounds of an installation.
const (
	installLimit = 3 * time.Minute // of one app, its transfer counted in
	removeLimit  = time.Minute     // of one app
	imeAppears   = 15 * time.Second
	maxVerdict   = 64 << 10 // bytes of what the installer says
)

// installing bounds how many apps are held in memory, for all phones together.
var installing = make(chan struct{}, 2)

var (
	success = regexp.MustCompile(`(?m)^Success\b`)
	failure = regexp.MustCompile(`(?m)^Failure \[(\w+)`)
)

// Install puts the apps on the phone that are not there yet in the pinned
// release; files is the folder that `make helpers` fills. An app that is there
// is not touched. No permission is granted: nothing here needs one, and Appium
// Settings would hand its own (SMS, location, microphone) to any app that asks.
// The server is ended first, if it runs.
//
// It fails with a *wire.Refusal for a person: wire.AndroidTooOld
// (ErrNotSupported), wire.HelperFile (ErrBadFile), wire.PhoneSetup
// (ErrInstallBlocked), wire.InstallFailed (phone.ErrRejected). It is safe to call again after any failure.
func (h *Helper) Install(ctx context.Context, f phone.Fence, files fs.FS) error {
	return h.alone(ctx, func() error {
		if err := h.install(ctx, f, files); err != nil {
			return fmt.Errorf("install the helper apps: %w", err)
		}
		return nil
	})
}

func (h *Helper) install(ctx context.Context, f phone.Fence, files fs.FS) error {
	if err := h.supported(ctx); err != nil {
		return err
	}
	if err := h.drop(ctx); err != nil {
		return err
	}
	there, err := h.installed(ctx)
	if err != nil {
		return err
	}
	for _, p := range h.packages {
		for _, a := range p.Apps {
			i := there[0]
			there = there[1:]
			if i.Pinned {
				continue
			}
			if err := h.installOne(ctx, f, files, p, a, i); err != nil {
				return fmt.Errorf("%s: %w", a.ID, err)
			}
			h.log.Info("helper app installed", "app", a.ID, "version", a.Version)
		}
	}
	known, err := poll(ctx, imeInterval, imeAppears, func(ctx context.Context) (bool, error) {
		k, err := h.conn.keyboards(ctx)
		return slices.Contains(k.known, unicodeIME), err
	})
	if err == nil && !known {
		err = fmt.Errorf("the phone does not list the input method of %s: %w", settingsID, phone.ErrRejected)
	}
	return err
}

// installOne streams one app to the phone's installer.
func (h *Helper) installOne(ctx context.Context, f phone.Fence, files fs.FS, p Package, a App, before Installed) error {
	select {
	case installing <- struct{}{}:
		defer func() { <-installing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	apk, err := p.Read(files, a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	if err := ask(ctx, f); err != nil {
		return err
	}
	s, err := h.conn.exec(ctx, "cmd package install -r -t -S "+strconv.Itoa(len(apk)))
	switch {
	case errors.Is(err, adb.ErrRefused):
		return fmt.Errorf("%w: %w", phone.ErrRejected, err)
	case err != nil: // without the bytes there is nothing to install
		return err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	sent, err := s.Write(apk)
	said, readErr := io.ReadAll(io.LimitReader(s, maxVerdict))
	if ctx.Err() != nil {
		readErr = ctx.Err()
	}
	installed, refusal := verdict(a.ID, string(said))
	switch {
	case installed:
		return nil
	case refusal != nil:
		return refusal
	case sent < len(apk):
		return fmt.Errorf("%d of %d bytes sent: %w: %w", sent, len(apk), phone.ErrRejected, errors.Join(err, readErr))
	case readErr == nil && len(said) > 0:
		return fmt.Errorf("%s: %w", excerpt(string(said)), phone.ErrRejected)
	}
	return h.afterSilence(ctx, a, before, readErr)
}

// afterSilence finds out whether an app was installed whose installer did not
// say so.
func (h *Helper) afterSilence(ctx context.Context, a App, before Installed, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	now, err := h.lookUp(ctx, a.ID)
	switch {
	case err == nil && now.Present && now.Version == a.Version && now.Code == a.Code && now != before:
		return nil
	case cause == nil:
		cause = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the installer did not answer: %w: %w", phone.ErrUnknownOutcome, cause)
}

// verdict reads what the installer says.
func verdict(app, said string) (installed bool, refusal error) {
	if success.MatchString(said) {
		return true, nil
	}
	m := failure.FindStringSubmatch(said)
	if m == nil {
		return false, nil
	}
	cause := fmt.Errorf("%s: %w", excerpt(said), phone.ErrRejected)
	setting := ""
	switch m[1] {
	case "INSTALL_FAILED_USER_RESTRICTED", "INSTALL_FAILED_ABORTED":
		setting = `"Install via USB" (or let a person accept the installation)`
	case "INSTALL_FAILED_VERIFICATION_FAILURE", "INSTALL_FAILED_VERIFICATION_TIMEOUT":
		setting = `installing without "Verify apps over USB"`
	case "INSTALL_FAILED_UPDATE_INCOMPATIBLE", "INSTALL_FAILED_VERSION_DOWNGRADE":
		reason := "another build of it is there: remove the helper apps first"
		return false, wire.Refuse(wire.InstallFailed, map[string]any{"app": app, "reason": reason}).Because(cause)
	default:
		return false, wire.Refuse(wire.InstallFailed, map[string]any{"app": app, "reason": excerpt(said)}).Because(cause)
	}
	cause = fmt.Errorf("%w: %w", ErrInstallBlocked, cause)
	return false, wire.Refuse(wire.PhoneSetup, map[string]any{"setting": setting}).Because(cause)
}

// Remove ends the server, puts the phone's own input method back and takes all
// apps off the phone, whatever their release. It returns when none is left. It is
// safe to call again after any failure.
func (h *Helper) Remove(ctx context.Context, f phone.Fence) error {
	return h.alone(ctx, func() error {
		if err := h.remove(ctx, f); err != nil {
			return fmt.Errorf("remove the helper apps: %w", err)
		}
		return nil
	})
}

func (h *Helper) remove(ctx context.Context, f phone.Fence) error {
	if err := h.drop(ctx); err != nil {
		return err
	}
	if err := h.recoverIME(ctx, f); err != nil {
		return err
	}
	for _, p := range slices.Backward(h.packages) {
		for _, a := range slices.Backward(p.Apps) {
			if err := h.removeOne(ctx, f, a); err != nil {
				return fmt.Errorf("%s: %w", a.ID, err)
			}
		}
	}
	closed, err := h.portCloses(ctx)
	if err == nil && !closed {
		err = fmt.Errorf("something listens on port %s: %w", port, ErrStillThere)
	}
	return err
}

// removeOne uninstalls one app. What counts is whether it is there in the end.
func (h *Helper) removeOne(ctx context.Context, f phone.Fence, a App) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if i, err := h.lookUp(ctx, a.ID); err != nil || !i.Present {
		return err
	}
	if err := ask(ctx, f); err != nil {
		return err
	}
	r, err := h.conn.send(ctx, "pm uninstall "+a.ID)
	if err != nil && !errors.Is(err, phone.ErrUnknownOutcome) {
		return err
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	i, lookErr := h.lookUp(look, a.ID)
	switch {
	case lookErr == nil && !i.Present:
		return nil
	case err != nil:
		return err
	case lookErr != nil:
		return fmt.Errorf("%w: %w", phone.ErrUnknownOutcome, lookErr)
	}
	return fmt.Errorf("%s: %w", excerpt(said(r)), phone.ErrRejected)
}
