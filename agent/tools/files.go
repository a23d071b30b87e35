package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"phonerack/sync/wire"
)

// maxFile bounds what is pulled from a phone, in bytes.
const maxFile = 64 << 20

// storage are the names of the phone's shared storage, the only place that files
// are read from.
var storage = []string{"/sdcard/", "/storage/emulated/0/"}

var pullFile = Tool{
	Name:        "pull_file",
	Description: "Copy a file of the phone, such as /sdcard/Download/report.pdf, into the task's folder, where people find it.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"path": {"type": "string", "minLength": 1, "maxLength": 500}},
		"required": ["path"], "additionalProperties": false}`),
	Annotations: Annotations{Idempotent: true},
	Role:        Operator,
	Permission:  PermitFiles,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			Path string `json:"path"`
		}](args)
		if err != nil {
			return err
		}
		if reason := notOnStorage(call.Path); reason != "" {
			return badArgument(out.Tool, "$.path", reason)
		}
		if env.Phone == nil || env.Keep == nil {
			return unsupported("pull_file without a folder of the task")
		}
		var kept string
		var n int64
		err = env.pull(ctx, call.Path, func(r io.Reader) (err error) {
			counted := &counter{r: r}
			kept, err = env.Keep(path.Base(call.Path), counted)
			n = counted.n
			return err
		})
		if err == nil {
			out.result(fmt.Sprintf("kept as %q, %d bytes", kept, n), "")
		}
		return err
	},
}

var readDocument = Tool{
	Name: "read_document",
	Description: "Read the text of a document (PDF, EPUB, picture...): a file that came with the task by its name, or a file of the phone by " +
		`its path, if the task may. pages are such as "2" or "1-3,7".`,
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"file": {"type": "string", "minLength": 1, "maxLength": 500},
		"pages": {"type": "string", "minLength": 1, "maxLength": 60}},
		"required": ["file"], "additionalProperties": false}`),
	Annotations: Annotations{ReadOnly: true, Idempotent: true},
	Role:        Viewer,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			File  string `json:"file"`
			Pages string `json:"pages"`
		}](args)
		if err != nil {
			return err
		}
		if !pageNumbers.MatchString(call.Pages) {
			return badArgument(out.Tool, "$.pages", `must be pages such as "2" or "1-3,7"`)
		}
		return env.document(ctx, out.Tool, call.File, func(r io.Reader) error {
			text, err := env.Documents.Read(ctx, r, path.Base(call.File), call.Pages)
			out.result(text, "ask for fewer or other pages")
			return err
		})
	},
}

// document opens a file of the task or, if the name is a path, of the phone.
func (e Env) document(ctx context.Context, tool, name string, read func(io.Reader) error) error {
	onPhone := strings.HasPrefix(name, "/")
	if onPhone && !e.permits(PermitFiles) {
		return notPermitted(tool, PermitFiles)
	}
	if onPhone {
		if reason := notOnStorage(name); reason != "" {
			return badArgument(tool, "$.file", reason)
		}
	}
	if e.Documents == nil || onPhone && e.Phone == nil {
		return unsupported("read_document without a reader of documents")
	}
	if onPhone {
		return e.pull(ctx, name, read)
	}
	file, _, err := e.input(ctx, tool, name)
	if err != nil {
		return err
	}
	defer file.Close()
	return e.fileFailed(ctx, name, read(file))
}

// pageNumbers are up to eight pages and ranges, or nothing.
var pageNumbers = regexp.MustCompile(`^(?:[1-9][0-9]{0,5}(?:-[1-9][0-9]{0,5})?(?:,[1-9][0-9]{0,5}(?:-[1-9][0-9]{0,5})?){0,7})?$`)

// notOnStorage tells why a path does not name a file of the phone's shared
// storage; "" if it does.
func notOnStorage(p string) string {
	switch {
	case !slices.ContainsFunc(storage, func(s string) bool { return strings.HasPrefix(p, s) && len(p) > len(s) }):
		return "must begin with /sdcard/"
	case path.Clean(p) != p:
		return "must not have parts such as .. or //, nor end in /"
	case strings.ContainsFunc(p, unprintable):
		return "must not have control characters"
	}
	return ""
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// input opens a file that came with the task. Its owner knows the files by name;
// what is a path is not even asked for.
func (e Env) input(ctx context.Context, tool, name string) (io.ReadCloser, int64, error) {
	if name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unprintable) {
		return nil, 0, badArgument(tool, "$.file", "is no name of a file that came with the task")
	}
	if e.Install == nil {
		return nil, 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": "no files came with the task"})
	}
	file, size, err := e.Install(ctx, name)
	if err != nil {
		return nil, 0, e.fileFailed(ctx, name, err)
	}
	return file, size, nil
}

// pull streams a file of the phone into use. It returns when both ends are done.
func (e Env) pull(ctx context.Context, name string, use func(io.Reader) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	pulled := make(chan error, 1)
	go func() {
		err := e.Phone.Pull(inner, name, w, maxFile)
		pulled <- err
		w.CloseWithError(err) // nil is the end of the file
	}()
	err := use(r)
	select {
	case pullErr := <-pulled:
		if pullErr != nil { // whatever its reader made of that
			return e.notPulled(ctx, name, pullErr)
		}
	default: // its reader has enough
		cancel()
		r.Close()
		<-pulled
	}
	return e.fileFailed(ctx, name, err)
}

// notPulled makes a refusal of what the phone said of a file.
func (e Env) notPulled(ctx context.Context, name string, err error) error {
	switch {
	case isRefusal(err):
	case errors.Is(err, fs.ErrNotExist):
		err = wire.Refuse(wire.FileMissing, map[string]any{"path": name}).Because(err)
	case errors.Is(err, fs.ErrPermission):
		err = wire.Refuse(wire.FileDenied, map[string]any{"path": name}).Because(err)
	}
	return e.notRead(ctx, "reading "+name, err)
}

type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// fileFailed makes a refusal of what the rack failed with over a file.
func (e Env) fileFailed(ctx context.Context, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !isRefusal(err):
		return ctx.Err()
	case isRefusal(err):
		return wire.From(err).With(e.place())
	}
	return wire.Refuse(wire.Internal, nil).Because(fmt.Errorf("file %q: %w", name, err))
}

// notRead makes a refusal of what a reading of the phone failed with.
func (e Env) notRead(ctx context.Context, what string, err error) error {
	switch {
	case isRefusal(err):
		return wire.From(err).With(e.place())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errors.ErrUnsupported):
		return unsupported(what)
	}
	return wire.Refuse(wire.PhoneRejected, map[string]any{"what": what, "detail": err.Error()}).With(e.place()).Because(err)
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*wire.Refusal](err)
	return ok
}

func unsupported(what string) error {
	return wire.Refuse(wire.Unsupported, map[string]any{"what": what})
}
