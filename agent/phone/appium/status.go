package appium

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// sdk returns the phone's API level.
func (h *Helper) sdk(ctx context.Context) (int, error) {
	if h.android != 0 {
		return h.android, nil
	}
	out, err := h.conn.read(ctx, "getprop ro.build.version.sdk")
	if err != nil {
		return 0, fmt.Errorf("read the version of Android: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || n < 1 || n > 10000 {
		return 0, fmt.Errorf("version of Android %s: %w", excerpt(out), phone.ErrMalformed)
	}
	h.android = n
	return n, nil
}

// supported refuses phones that are too old, with a *wire.Refusal of code
// wire.AndroidTooOld that wraps ErrNotSupported.
func (h *Helper) supported(ctx context.Context) error {
	sdk, err := h.sdk(ctx)
	if err == nil && sdk < minSDK {
		args := map[string]any{"what": "helper apps", "needs": minAndroid, "api": sdk}
		err = wire.Refuse(wire.AndroidTooOld, args).Because(ErrNotSupported)
	}
	return err
}

// Status is what a phone has of the helper apps.
type Status struct {
	SDK       int  // API level
	Supported bool // new enough for the apps
	Apps      []Installed
	Keyboard  string // current input method; empty if there is none
	Listening bool   // something listens on the server's port
	Running   bool   // it is a server of ours
}

// Installed is an app on the phone.
type Installed struct {
	ID      string
	Version string // versionName; empty if the app is absent or has none
	Code    int
	Present bool
	Pinned  bool // it is of the pinned release; for the app that has no version, its companion is
}

// Status reads what the phone has. It changes nothing.
func (h *Helper) Status(ctx context.Context) (Status, error) {
	var s Status
	err := h.alone(ctx, func() (err error) {
		if s.SDK, err = h.sdk(ctx); err != nil {
			return err
		}
		s.Supported = s.SDK >= minSDK
		if s.Apps, err = h.installed(ctx); err != nil {
			return err
		}
		k, err := h.conn.keyboards(ctx)
		if err != nil {
			return err
		}
		s.Keyboard, s.Running = k.current, h.run != nil
		s.Listening, err = h.listening(ctx)
		return err
	})
	if err != nil {
		return Status{}, fmt.Errorf("status of the helper apps: %w", err)
	}
	return s, nil
}

// versionRow finds the version of an app in dumpsys package.
var versionRow = regexp.MustCompile(`\b(versionCode|versionName)=(\S+)`)

// installed reads which of the apps are on the phone.
func (h *Helper) installed(ctx context.Context) ([]Installed, error) {
	var all []Installed
	pinned := map[string]bool{}
	for _, p := range h.packages {
		for _, a := range p.Apps {
			i, err := h.lookUp(ctx, a.ID)
			if err != nil {
				return nil, err
			}
			i.Pinned = i.Present && i.Version == a.Version && i.Code == a.Code
			if a.Version == "" { // told by its companion, which is installed before it
				i.Pinned = i.Present && pinned[p.Name]
			}
			pinned[p.Name] = i.Pinned
			all = append(all, i)
		}
	}
	return all, nil
}

func (h *Helper) lookUp(ctx context.Context, id string) (Installed, error) {
	out, err := h.conn.read(ctx, "pm path "+id+"; echo =; dumpsys package "+id+" | grep -E 'Package \\["+regexp.QuoteMeta(id)+"\\]|versionCode=|versionName='")
	if err != nil {
		return Installed{}, fmt.Errorf("look up %s: %w", id, err)
	}
	return parseVersions(id, out)
}

func parseVersions(id, out string) (Installed, error) {
	path, dump, ok := strings.Cut(out, "=\n")
	if !ok {
		return Installed{}, fmt.Errorf("look up %s, %s: %w", id, excerpt(out), phone.ErrMalformed)
	}
	i := Installed{ID: id, Present: strings.HasPrefix(path, "package:")}
	_, dump, _ = strings.Cut(dump, "Package ["+id+"]")
	dump, _, _ = strings.Cut(dump, "Package [") // an older one of the system
	for _, m := range versionRow.FindAllStringSubmatch(dump, -1) {
		switch {
		case !i.Present || m[2] == "null":
		case m[1] == "versionCode" && i.Code == 0:
			i.Code, _ = strconv.Atoi(m[2])
		case m[1] == "versionName" && i.Version == "":
			i.Version = m[2]
		}
	}
	return i, nil
}
