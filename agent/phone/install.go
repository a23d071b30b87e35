package phone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"phonerack/sync/wire"
)

// Bounds of Install.
const (
	maxAPK       = 4 << 30 // bytes
	installTime  = 3 * time.Minute
	slowestCable = 1 << 20 // bytes a second
	maxVerdict   = 64 << 10
)

var (
	succeeded = regexp.MustCompile(`(?m)^Success\s*$`)
	failed    = regexp.MustCompile(`(?m)^Failure(?: \[(.*?)\]?)?\s*$`)
)

// Install installs an app from its APK of size bytes, or a newer version over an
// older one. The APK goes straight to the package manager, on old phones by way
// of a file. It fails with a *wire.Refusal: wire.InstallFailed with the phone's
// reason, or wire.PhoneSetup where a setting of the phone forbids it. Without an
// answer the error wraps ErrUnknownOutcome. An APK that ends early is
// ErrBadArgument, and nothing is installed.
func (c *Controls) Install(ctx context.Context, apk io.Reader, size int64) error {
	if size < 1 || size > maxAPK {
		return fmt.Errorf("install: %d bytes, 1 to %d are taken: %w", size, int64(maxAPK), ErrBadArgument)
	}
	lasts := installTime + time.Duration(size/slowestCable)*time.Second
	by := c.installStream
	if !c.phone.conn.feature("cmd") {
		by = c.installFile
	}
	if err := by(ctx, lasts, apk, size); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

// installStream gives the APK to the package manager as it comes.
func (c *Controls) installStream(ctx context.Context, lasts time.Duration, apk io.Reader, size int64) error {
	var out []byte
	err := c.through(ctx, lasts, func(ctx context.Context) error {
		sent := int64(0)
		err := c.phone.conn.duplex(ctx, "cmd package install -r -S "+strconv.FormatInt(size, 10), func(s io.ReadWriter) (err error) {
			source := &countingReader{r: io.LimitReader(apk, size)}
			_, err = io.CopyBuffer(s, source, make([]byte, 256<<10)) // whole packets of a fast cable
			sent = source.n
			switch {
			case source.err != nil:
				return fmt.Errorf("read the APK: %w: %w", ErrRejected, source.err)
			case err == nil && sent < size:
				return fmt.Errorf("the APK has %d bytes, not %d: %w: %w", sent, size, ErrBadArgument, ErrRejected)
			}
			// A phone that takes no more says why.
			var said error
			if out, said = readBounded(s, maxVerdict); said != nil {
				return errors.Join(err, said)
			}
			if err != nil && !verdict(out) {
				return err
			}
			return nil
		})
		if err != nil && sent < size && !errors.Is(err, ErrRejected) {
			return fmt.Errorf("%w before the whole APK was sent: %w", ErrRejected, err) // it installs whole ones only
		}
		return err
	})
	if err != nil {
		return err
	}
	return installed(string(out))
}

// countingReader remembers how much was read, and what went wrong.
type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// installFile copies the APK to the phone and installs that. Each asks the
// fence.
func (c *Controls) installFile(ctx context.Context, lasts time.Duration, apk io.Reader, size int64) error {
	file := c.phone.stem + "-" + strconv.FormatUint(c.phone.count.Add(1), 10) + ".apk"
	err := c.through(ctx, lasts, func(ctx context.Context) error {
		source := &countingReader{r: io.LimitReader(apk, size)}
		err := c.phone.push(ctx, source, file)
		if err == nil && source.n < size {
			err = fmt.Errorf("the APK has %d bytes, not %d: %w", source.n, size, ErrBadArgument)
		}
		if err != nil {
			c.phone.forget(ctx, file)
			return fmt.Errorf("%w: %w", ErrRejected, err) // nothing was installed
		}
		return nil
	})
	if err != nil {
		return err
	}
	r, err := c.write(ctx, lasts, "pm install -r "+file+"; rm -f "+file)
	if err != nil {
		if !errors.Is(err, ErrUnknownOutcome) {
			c.phone.forget(ctx, file)
		}
		return err
	}
	return installed(string(r.Stdout) + "\n" + string(r.Stderr))
}

// push copies r to a file of the phone.
func (p *Phone) push(ctx context.Context, r io.Reader, file string) error {
	f, err := p.conn.sync(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Send(ctx, r, file, 0o644, time.Now())
}

// forget removes a file of this package from the phone, as far as that goes: the
// next attachment removes what is left.
func (p *Phone) forget(ctx context.Context, file string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liftTime)
	defer cancel()
	if _, err := p.conn.shell(ctx, "rm -f "+file); err != nil {
		p.log.Debug("file not removed", "serial", p.info.Serial, "file", file, "err", err)
	}
}

// verdict reports whether the package manager has said how it went.
func verdict(out []byte) bool { return succeeded.Match(out) || failed.Match(out) }

// settingsThatForbid are switches of makers that forbid the shell something, by
// what the phone says.
var settingsThatForbid = []struct{ says, setting string }{
	{"INSTALL_FAILED_USER_RESTRICTED", `"Install via USB"`},
	{"INSTALL_FAILED_VERIFICATION_FAILURE", `the exemption of "Verify apps over USB"`},
	{"GRANT_RUNTIME_PERMISSIONS", `"USB debugging (Security settings)", or "Disable permission monitoring"`},
	{"REVOKE_RUNTIME_PERMISSIONS", `"USB debugging (Security settings)", or "Disable permission monitoring"`},
	{"WRITE_SECURE_SETTINGS", `"USB debugging (Security settings)", or "Disable permission monitoring"`},
	{"restricted setting", `"Allow restricted settings" of the app`},
}

// forbidden returns a refusal if the phone says that one of its settings forbids
// what was asked.
func forbidden(said string) error {
	for _, f := range settingsThatForbid {
		if strings.Contains(said, f.says) {
			return wire.Refuse(wire.PhoneSetup, map[string]any{"setting": f.setting}).Because(ErrDeviceSetup)
		}
	}
	return nil
}

// installed reads the package manager's verdict, which is one line: Success, or
// Failure with a reason. Anything else leaves open what happened.
func installed(out string) error {
	reason, err := parseVerdict(out)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if reason == "" {
		return nil
	}
	if err := forbidden(reason); err != nil {
		return err
	}
	return wire.Refuse(wire.InstallFailed, map[string]any{"reason": "the phone said " + reason}).Because(ErrNotInstalled)
}

// noSpace is how some versions say that an app is too large for the phone.
const noSpace = "Requested internal only, but not enough space"

// parseVerdict returns why the package manager failed, "" if it succeeded.
func parseVerdict(out string) (reason string, err error) {
	out = strings.ReplaceAll(out, "\r", "")
	failures, successes := failed.FindAllStringSubmatch(out, 2), succeeded.FindAllString(out, 2)
	switch {
	case len(failures) == 1 && len(successes) == 0:
		reason := excerpt([]byte(failures[0][1]))
		if reason == "" {
			reason = "Failure"
		}
		return reason, nil
	case len(failures) == 0 && len(successes) == 1:
		return "", nil
	case len(failures) == 0 && len(successes) == 0 && strings.Contains(out, noSpace):
		return noSpace, nil // Android 9 to 13 throw before they take anything
	}
	return "", fmt.Errorf("the phone said %q: %w", excerpt([]byte(out)), ErrMalformed)
}

// Uninstall removes an app with its data. One that is not installed is
// ErrAppMissing.
func (c *Controls) Uninstall(ctx context.Context, pkg string) error {
	if !isPackage(pkg) {
		return fmt.Errorf("uninstall: %.80q is no package name: %w", pkg, ErrBadArgument)
	}
	if err := c.uninstall(ctx, pkg); err != nil {
		return fmt.Errorf("uninstall %s: %w", pkg, err)
	}
	return nil
}

func (c *Controls) uninstall(ctx context.Context, pkg string) error {
	r, err := c.write(ctx, installTime, "pm uninstall "+pkg)
	if err != nil {
		return err
	}
	said := string(r.Stdout) + "\n" + string(r.Stderr)
	if strings.Contains(said, "not installed for") || strings.Contains(said, "Unknown package") {
		return ErrAppMissing
	}
	reason, err := parseVerdict(said)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case reason == "":
		return nil
	}
	if err := forbidden(reason); err != nil {
		return err
	}
	return fmt.Errorf("the phone said %q: %w", reason, ErrRejected)
}
