package tools

import (
	"context"
	"io"
	"slices"

	"phonerack/agent/perception"
	"phonerack/sync/wire/resultschema"
)

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

	// Result holds what a success brings to the schema that the task came with; nil:
	// it may bring anything or nothing.
	Result *resultschema.Schema

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
