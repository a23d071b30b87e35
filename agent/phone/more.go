package phone

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errNotYet marks what this version does not do.
var errNotYet = fmt.Errorf("not in this version: %w", errors.ErrUnsupported)

// DoubleTap touches the point (x, y) twice, quickly.
func (c *Controls) DoubleTap(ctx context.Context, x, y int) error { return errNotYet }

// ClearText empties the field that has the focus. length is about how many
// characters it holds.
func (c *Controls) ClearText(ctx context.Context, length int) error { return errNotYet }

// OpenURL has the phone open a link with the app that takes it, or with pkg if
// that is not "".
func (c *Controls) OpenURL(ctx context.Context, url, pkg string) error { return errNotYet }

// Install installs an app from its APK of size bytes.
func (c *Controls) Install(ctx context.Context, apk io.Reader, size int64) error { return errNotYet }

// Uninstall removes an app with its data.
func (c *Controls) Uninstall(ctx context.Context, pkg string) error { return errNotYet }

// SetClipboard puts text on the phone's clipboard.
func (c *Controls) SetClipboard(ctx context.Context, text string) error { return errNotYet }

// Wake switches the screen on and dismisses a lock that asks for nothing.
func (c *Controls) Wake(ctx context.Context) error { return errNotYet }

// ResetRotation lets the screen turn with the phone again, or fixes it at a
// natural upright position.
func (c *Controls) ResetRotation(ctx context.Context) error { return errNotYet }

// ResetKeyboard makes the phone's own input method the current one again.
func (c *Controls) ResetKeyboard(ctx context.Context) error { return errNotYet }

// App is an app that a person can start.
type App struct {
	Package string
	Label   string // its name for people, "" if it is not known
	System  bool
}

// Apps returns the apps that have an icon.
func (p *Phone) Apps(ctx context.Context) ([]App, error) { return nil, errNotYet }

// Pull copies a file of the phone, at most limit bytes, to w.
func (p *Phone) Pull(ctx context.Context, path string, w io.Writer, limit int64) error {
	return errNotYet
}
