package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"slices"
	"time"

	"phonerack/agent/perception"
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
}

// Reads are what tools read of a phone beyond its screen; *phone.Phone
// implements it.
type Reads interface {
	Apps(ctx context.Context) ([]phone.App, error)
	Pull(ctx context.Context, path string, w io.Writer, limit int64) error
}

// Documents turns files into text.
type Documents interface {
	// Read returns the text of a document. name is the file's name, for its kind;
	// pages are such as "1-3,7", counted from 1, and "" means from the first on.
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
func (u Unsupported) Launch(context.Context, string) error { return u.refuse("starting apps") }

func (u Unsupported) Stop(context.Context, string) error            { return u.refuse("stopping apps") }
func (u Unsupported) OpenURL(context.Context, string, string) error { return u.refuse("links") }
func (u Unsupported) Install(context.Context, io.Reader, int64) error {
	return u.refuse("installing apps")
}

func (u Unsupported) SetClipboard(context.Context, string) error { return u.refuse("the clipboard") }

// What a task may be permitted beyond looking, touching and typing.
const (
	PermitInstall   = "install"   // install the task's own apps
	PermitStop      = "stop"      // stop apps, which may lose what they have not saved
	PermitFiles     = "files"     // read files of the phone
	PermitClipboard = "clipboard" // replace what is on the clipboard
	PermitConsent   = "consent"   // grant permissions and accept terms, for whoever closes popups; no tool asks for it
)

// Permissions returns everything that a task may be permitted.
func Permissions() []string {
	return []string{PermitInstall, PermitStop, PermitFiles, PermitClipboard, PermitConsent}
}

// Env is what tools act on. Everything but Scene may be missing; a tool that
// needs what is missing is refused.
type Env struct {
	Controls Controls          // nil: reading only
	Phone    Reads             // apps and files
	Scene    *perception.Scene // that the decision was made on

	// Look observes the screen afresh, after which Scene is out of date. Tools that
	// take several steps look between them; without it they leave looking to the
	// caller, or are refused.
	Look func(ctx context.Context) (*perception.Scene, error)

	Permissions []string // of the task
	Documents   Documents

	// Keep stores a file of the phone in the task's folder and returns the name it
	// got there.
	Keep func(name string, r io.Reader) (string, error)

	// Install opens a file that came with the task and tells its size. It knows the
	// task's files by their names and opens nothing else.
	Install func(ctx context.Context, name string) (io.ReadCloser, int64, error)

	Slot   int // for refusals, as Serial
	Serial string
}

// permits reports whether the task has the permission; everybody has "".
func (e Env) permits(permission string) bool {
	return permission == "" || slices.Contains(e.Permissions, permission)
}

// place names the phone in a refusal's arguments.
func (e Env) place() map[string]any {
	m := map[string]any{"slot": e.Slot}
	if e.Serial != "" {
		m["serial"] = e.Serial
	}
	return m
}

// MaxResult bounds Outcome.Result, in characters.
const MaxResult = 4000

// Outcome is what an execution came to, also one that failed.
type Outcome struct {
	Tool     string
	Finished bool                // the task is over
	Success  bool                // with Finished: the goal is reached
	Message  string              // with Finished: what the planner reports
	Target   *perception.Element // the element that was acted on, or found
	Points   []image.Point       // where the screen was touched: one point, or the two ends of a swipe
	Wrote    bool                // something was sent to the phone, or may have been
	Unknown  bool                // whether the act happened is not known
	Text     string              // with text: a verdict of the tool, which has read the field; "" if it has not
	Typed    *Typed              // with text that the tool has not read back: what the next scene has to show
	Settle   bool                // the screen may change now: wait until it rests

	Scene      *perception.Scene // the newest look of the tool itself, if it wrote nothing since; nil if there is none
	Ask        *Question         // the attempt waits until a person has answered
	Result     string            // what a reading tool brought: untrusted text of at most MaxResult characters
	Object     json.RawMessage   // with Finished: the result object, nil if the planner gave none
	Screenshot bool              // show the picture of the screen in the next turn
}

// Question is asked of a person.
type Question struct {
	Text    string
	Options []string // answers to choose from; none: any answer
}

// result keeps what a reading tool brought, cut to MaxResult characters. more
// says how to get the rest, and is appended only if something was cut off.
func (o *Outcome) result(text, more string) {
	total, at := 0, len(text)
	room := MaxResult - len(more) - len(" … ( characters in all; )") - 20
	for i := range text {
		if total == room {
			at = i
		}
		total++
	}
	if total > MaxResult {
		text = fmt.Sprintf("%s … (%d characters in all; %s)", text[:at], total, more)
	}
	o.Result = text
}
