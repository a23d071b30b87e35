package tools

import (
	"context"
	"io"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
)

// Controls are the writes to a phone that tools use, under a lease;
// *phone.Controls implements it. Each asks the fence immediately before it
// writes, and sends nothing when the fence refuses.
type Controls interface {
	Tap(ctx context.Context, x, y int) error
	DoubleTap(ctx context.Context, x, y int) error
	LongPress(ctx context.Context, x, y int, d time.Duration) error
	Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error
	InputText(ctx context.Context, text string) error
	ClearText(ctx context.Context, length int) error
	Key(ctx context.Context, name string) error
	Launch(ctx context.Context, pkg string) error
	Stop(ctx context.Context, pkg string) error
	OpenURL(ctx context.Context, url, pkg string) error
	Install(ctx context.Context, apk io.Reader, size int64) error
	SetClipboard(ctx context.Context, text string) error

	// Distrust tells that what an act should have done was read back and is not
	// there, so that the next one goes another way. It writes nothing.
	Distrust(act phone.Act) bool

	// Doubt tells that what was seen last is about to be held against an act. It
	// reports whether another look would tell more. It writes nothing.
	Doubt() bool
}

// Reads are what tools read of a phone beyond its screen; *phone.Phone
// implements it.
type Reads interface {
	Apps(ctx context.Context) ([]phone.App, error)
	Pull(ctx context.Context, path string, w io.Writer, limit int64) error
}

// Documents turns files into text.
type Documents interface {
	// Read returns the text of a document as it is shown to a planner. name is the
	// file's own; pages are such as "2" or "1-3,7", counted from 1, and "" means from
	// the first on. The text counts also with an error: what was read before it.
	Read(ctx context.Context, file io.Reader, name, pages string) (text string, err error)
}

// Unsupported are Controls that refuse everything and send nothing. Doubles
// embed it, to implement only what they are about.
type Unsupported struct{}

var _ Controls = Unsupported{}

func (Unsupported) refuse(what string) error {
	return wire.Refuse(wire.Unsupported, map[string]any{"what": what})
}

func (u Unsupported) Tap(context.Context, int, int) error       { return u.refuse("taps") }
func (u Unsupported) DoubleTap(context.Context, int, int) error { return u.refuse("double taps") }
func (u Unsupported) LongPress(context.Context, int, int, time.Duration) error {
	return u.refuse("long presses")
}

func (u Unsupported) Swipe(context.Context, int, int, int, int, time.Duration) error {
	return u.refuse("swipes")
}
func (u Unsupported) InputText(context.Context, string) error { return u.refuse("typing") }
func (u Unsupported) ClearText(context.Context, int) error    { return u.refuse("clearing fields") }
func (u Unsupported) Key(context.Context, string) error       { return u.refuse("keys") }
func (u Unsupported) Launch(context.Context, string) error    { return u.refuse("starting apps") }

func (u Unsupported) Stop(context.Context, string) error            { return u.refuse("stopping apps") }
func (u Unsupported) OpenURL(context.Context, string, string) error { return u.refuse("links") }
func (u Unsupported) Install(context.Context, io.Reader, int64) error {
	return u.refuse("installing apps")
}

// Distrust implements Controls: there is no other way.
func (u Unsupported) Distrust(phone.Act) bool { return false }

// Doubt implements Controls: what was seen is so.
func (u Unsupported) Doubt() bool { return false }

func (u Unsupported) SetClipboard(context.Context, string) error { return u.refuse("the clipboard") }
