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
// characters it holds. Read the field back: an app may keep its text.
func (c *Controls) ClearText(ctx context.Context, length int) error { return errNotYet }

// OpenURL has the phone open a link with the app that takes it, or with pkg if
// that is not "".
func (c *Controls) OpenURL(ctx context.Context, url, pkg string) error { return errNotYet }

// Install installs an app from its APK of size bytes.
func (c *Controls) Install(ctx context.Context, apk io.Reader, size int64) error { return errNotYet }

// Uninstall removes an app with its data.
func (c *Controls) Uninstall(ctx context.Context, pkg string) error { return errNotYet }

// Grant gives an app a permission, such as "android.permission.CAMERA".
func (c *Controls) Grant(ctx context.Context, pkg, permission string) error { return errNotYet }

// Revoke takes a permission from an app.
func (c *Controls) Revoke(ctx context.Context, pkg, permission string) error { return errNotYet }

// SetClipboard puts text on the phone's clipboard. It fails with a refusal of
// code wire.ClipboardFailed where the phone has no way to do so.
func (c *Controls) SetClipboard(ctx context.Context, text string) error { return errNotYet }

// Wake switches the screen on and dismisses a lock that asks for nothing. It
// fails with a refusal of code wire.PhoneLocked if the phone asks for a secret.
func (c *Controls) Wake(ctx context.Context) error { return errNotYet }

// ResetRotation fixes the screen in its natural upright position.
func (c *Controls) ResetRotation(ctx context.Context) error { return errNotYet }

// ResetKeyboard makes the phone's own input method the current one again.
func (c *Controls) ResetKeyboard(ctx context.Context) error { return errNotYet }

// StopAnimations sets the phone's three animation scales to 0, so that a screen
// can rest whose tree failed with ErrNotIdle. What they were is kept on the phone
// until RestoreAnimations, whatever becomes of this process.
func (c *Controls) StopAnimations(ctx context.Context) error { return errNotYet }

// RestoreAnimations undoes StopAnimations, also that of an earlier connection.
// It sends nothing if there is nothing to undo.
func (c *Controls) RestoreAnimations(ctx context.Context) error { return errNotYet }

// Distrust tells that what an act should have done was read back and is not
// there. The next one goes another way, if the phone has one: it reports whether
// it has.
func (c *Controls) Distrust(a Act) bool { return false }

// Act is an act whose effect is read back.
type Act string

// Acts.
const (
	Typing   Act = "typing"
	Clearing Act = "clearing"
)

// App is an app that a person can start.
type App struct {
	Package string
	Label   string // its name for people, "" if it is not known
	System  bool
}

// Apps returns the apps that have an icon.
func (p *Phone) Apps(ctx context.Context) ([]App, error) { return nil, errNotYet }

// Package is an installed package.
type Package struct {
	Name    string
	Version int64 // its version code, 0 if the phone does not tell
	System  bool
}

// Installed returns the installed packages; thirdParty leaves out those that
// came with the phone.
func (p *Phone) Installed(ctx context.Context, thirdParty bool) ([]Package, error) {
	return nil, errNotYet
}

// Clipboard returns the text on the phone's clipboard. It fails with a refusal
// of code wire.ClipboardFailed where the phone has no way to tell.
func (p *Phone) Clipboard(ctx context.Context) (string, error) { return "", errNotYet }

// Pull copies a file of the phone, at most limit bytes, to w. A larger one is a
// refusal of code wire.FileTooLarge, one that the phone does not give an
// *adb.SyncError.
func (p *Phone) Pull(ctx context.Context, path string, w io.Writer, limit int64) error {
	return errNotYet
}

// Unknown is a reading that the phone does not give, or that cannot be true.
const Unknown = -1 << 31

// Battery is what the phone tells of its battery.
type Battery struct {
	Level       int    `json:"level"`       // percent; Unknown
	Voltage     int    `json:"voltage"`     // mV; Unknown
	Temperature int    `json:"temperature"` // tenths of a degree Celsius; Unknown
	Status      string `json:"status"`      // "charging", "discharging", "not charging", "full" or "unknown"
	Health      string `json:"health"`      // "good", "overheat", "dead", "over-voltage", "failure", "cold" or "unknown"
	Plugged     string `json:"plugged"`     // "ac", "usb", "wireless", "dock", or "" on battery
	Present     bool   `json:"present"`

	Faked       bool     `json:"faked,omitempty"`       // somebody has the phone tell made-up values
	Implausible []string `json:"implausible,omitempty"` // readings that cannot be true and are Unknown here
}

// Battery reads the battery.
func (p *Phone) Battery(ctx context.Context) (Battery, error) { return Battery{}, errNotYet }

// Thermal is how hot the phone is.
type Thermal struct {
	Status       int           `json:"status"` // 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown
	Temperatures []Temperature `json:"temperatures,omitempty"`
}

// Temperature is one sensor of the phone.
type Temperature struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"` // "cpu", "gpu", "battery", "skin"...
	Celsius float64 `json:"celsius"`
	Status  int     `json:"status"` // as Thermal.Status
}

// Thermal reads the thermal state. Phones before Android 10 have none:
// errors.ErrUnsupported.
func (p *Phone) Thermal(ctx context.Context) (Thermal, error) { return Thermal{}, errNotYet }

// Storage is the room for apps and files.
type Storage struct {
	Total int64 `json:"total"` // bytes
	Free  int64 `json:"free"`  // bytes
}

// Storage reads how much room there is.
func (p *Phone) Storage(ctx context.Context) (Storage, error) { return Storage{}, errNotYet }

// Power is whether the phone is awake.
type Power struct {
	Wakefulness string `json:"wakefulness"` // "Awake", "Asleep", "Dozing" or "Dreaming"
	Screen      bool   `json:"screen"`      // the display is on
	StayAwake   bool   `json:"stay_awake"`  // the screen stays on while the phone is plugged in
}

// Power reads whether the phone is awake.
func (p *Phone) Power(ctx context.Context) (Power, error) { return Power{}, errNotYet }

// Still runs do while no element tree is being read. Whoever starts or stops
// helper apps does so here: a phone lets one program at a time read its screen.
func (p *Phone) Still(ctx context.Context, do func(context.Context) error) error { return errNotYet }

// Strategies returns the ways that have worked.
func (p *Phone) Strategies() Strategies { return Strategies{} }

// Strategies are the ways that work on a phone, as a phone record keeps them.
// The zero value knows none.
type Strategies struct {
	Screenshot []string          `json:"screenshot,omitempty"` // ways to take one, the best first
	Header     int               `json:"header,omitempty"`     // bytes before the pixels of a raw screenshot, 12 or 16; 0 if not known
	Tree       string            `json:"tree,omitempty"`       // how the stock dumper gives its tree
	State      map[string]string `json:"state,omitempty"`      // part of State to the way that is understood
	Typing     string            `json:"typing,omitempty"`     // pace of typing
	Clearing   string            `json:"clearing,omitempty"`   // how a field is emptied
	Keyboard   string            `json:"keyboard,omitempty"`   // the phone's own input method, "package/class"
}

// Helpers are helper apps on the phone, which do some things that plain ADB
// cannot. An error of Type or SetClipboard leaves open whether it happened,
// unless it wraps ErrRejected or is a *wire.Refusal.
type Helpers interface {
	// Running reports whether the helper that reads the screen runs. While it
	// does the stock dumper is not used.
	Running() bool
	Tree(ctx context.Context) ([]byte, error)
	Type(ctx context.Context, text string) error // any Unicode into the field that has the focus
	SetClipboard(ctx context.Context, text string) error
	Clipboard(ctx context.Context) (string, error)
	Stop(ctx context.Context) error // afterwards the stock dumper works
}
