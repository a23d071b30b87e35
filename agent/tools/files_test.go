package tools_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

// reader reads documents: the text is the file's.
type reader struct {
	asked []string
	err   error
}

func (r *reader) Read(_ context.Context, file io.Reader, name, pages string) (string, error) {
	r.asked = append(r.asked, name+" "+pages)
	b, err := io.ReadAll(file)
	return string(b), errors.Join(err, r.err)
}

// desk is a phone with files, a task with files, and a folder.
type desk struct {
	*toolstest.Phone
	documents *reader
	kept      map[string]string
	opened    []string
	closed    int
}

func newDesk() *desk {
	d := &desk{Phone: toolstest.New(shop()), documents: &reader{}, kept: map[string]string{}}
	d.Files = map[string]string{"/sdcard/Download/a.pdf": "of the phone", "/sdcard/b c.txt": "of the phone, too"}
	return d
}

func (d *desk) env(permissions ...string) tools.Env {
	env := d.Env()
	env.Permissions, env.Documents = permissions, d.documents
	env.Keep = func(name string, r io.Reader) (string, error) {
		b, err := io.ReadAll(r)
		if err == nil {
			d.kept[name] = string(b)
		}
		return "001-" + name, err
	}
	env.Install = func(_ context.Context, name string) (io.ReadCloser, int64, error) {
		d.opened = append(d.opened, name)
		if name != "shop.apk" && name != "notes.txt" {
			return nil, 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": "no such file"})
		}
		return closing{strings.NewReader("of the task"), d}, int64(len("of the task")), nil
	}
	return env
}

type closing struct {
	io.Reader
	d *desk
}

func (c closing) Close() error { c.d.closed++; return nil }

func TestAppsComeFromTheTasksFiles(t *testing.T) {
	d := newDesk()
	out, err := do(t, d.env(tools.PermitInstall), "install_app", `{"file":"shop.apk"}`)
	if err != nil || fmt.Sprint(d.Acts()) != "[install 11 bytes]" || !out.Wrote || d.closed != 1 {
		t.Errorf("%q, %+v, %v", d.Acts(), out, err)
	}
	for _, name := range []string{"/etc/shadow", "../shop.apk", "..", ".", `a\b.apk`, "a/b.apk", `a\u0000b`, `\u202e`} {
		d := newDesk()
		out, err := do(t, d.env(tools.PermitInstall), "install_app", `{"file":"`+strings.ReplaceAll(name, `\b`, `\\b`)+`"}`)
		wantRefusal(t, err, wire.BadArguments, "no name of a file that came with the task")
		wantNothing(t, d.Phone, out)
		if len(d.opened) > 0 {
			t.Errorf("%q was opened", d.opened)
		}
	}
	d = newDesk()
	out, err = do(t, d.env(tools.PermitInstall), "install_app", `{"file":"other.apk"}`)
	wantRefusal(t, err, wire.BadRequest, "no such file")
	wantNothing(t, d.Phone, out)
	env := d.env(tools.PermitInstall)
	env.Install = nil
	_, err = do(t, env, "install_app", `{"file":"shop.apk"}`)
	wantRefusal(t, err, wire.BadRequest, "no files came with the task")
	env = d.env(tools.PermitInstall)
	env.Controls = nil
	_, err = do(t, env, "install_app", `{"file":"shop.apk"}`)
	wantRefusal(t, err, wire.NotLeased, "")
	d.Refuse = func(string) error {
		return wire.Refuse(wire.InstallFailed, map[string]any{"reason": "the phone said NO"}).Because(phone.ErrNotInstalled)
	}
	_, err = do(t, d.env(tools.PermitInstall), "install_app", `{"file":"shop.apk"}`)
	wantRefusal(t, err, wire.InstallFailed, "The app shop.apk")
}

func TestEmptyFilesAreNoApps(t *testing.T) {
	d := newDesk()
	env := d.env(tools.PermitInstall)
	env.Install = func(context.Context, string) (io.ReadCloser, int64, error) {
		return closing{strings.NewReader(""), d}, 0, nil
	}
	// The phone would say the same of it as of a point off the screen.
	d.Refuse = func(string) error { return fmt.Errorf("install: 0 bytes: %w", phone.ErrBadArgument) }
	out, err := do(t, env, "install_app", `{"file":"shop.apk"}`)
	wantRefusal(t, err, wire.InstallFailed, "The app shop.apk was not installed")
	wantRefusal(t, err, wire.InstallFailed, "the file is empty")
	wantNothing(t, d.Phone, out)
	if d.closed != 1 || !errors.Is(err, phone.ErrNotInstalled) {
		t.Errorf("closed %d times, %v", d.closed, err)
	}
}

func TestAppsAreListed(t *testing.T) {
	p := toolstest.New(shop())
	p.Installed = []phone.App{{Package: "com.android.settings", Label: "Settings", System: true}, {Package: "b.shop", Label: "Shop\n[0] \"x\""}, {Package: "a.chat"}}
	for args, want := range map[string]string{
		`{}`:                     "a.chat\nb.shop \"Shop\\n[0] \\\"x\\\"\"\ncom.android.settings \"Settings\"\n",
		`{"filter":"SETT"}`:      "com.android.settings \"Settings\"\n",
		`{"filter":"shop"}`:      "b.shop \"Shop\\n[0] \\\"x\\\"\"\n",
		`{"filter":"elsewhere"}`: "no such app\n",
	} {
		out, err := do(t, p.Env(), "list_apps", args)
		if err != nil || out.Result != want {
			t.Errorf("%s: %q, %v, want %q", args, out.Result, err, want)
		}
		wantNothing(t, p, out)
	}
	p.Installed = []phone.App{{Package: "a.chat"}, {Package: "b.shop"}}
	if out, err := do(t, p.Env(), "list_apps", `{"filter":"Messenger"}`); err != nil || !strings.Contains(out.Result, "does not tell") {
		t.Errorf("a phone without labels: %q, %v", out.Result, err)
	}
	for i := range 900 {
		p.Installed = append(p.Installed, phone.App{Package: fmt.Sprintf("z.app%d", i), Label: "水壶"})
	}
	out, err := do(t, p.Env(), "list_apps", `{}`)
	if n := utf8.RuneCountInString(out.Result); err != nil || n > tools.MaxResult || n < tools.MaxResult-10 || !strings.HasSuffix(out.Result, "… (cut; use filter)") {
		t.Errorf("%d characters, %v", n, err)
	}
	env := p.Env()
	env.Phone = nil
	_, err = do(t, env, "list_apps", `{}`)
	wantRefusal(t, err, wire.Unsupported, "list_apps")
}

func TestFilesOfThePhoneAreKept(t *testing.T) {
	d := newDesk()
	out, err := do(t, d.env(tools.PermitFiles), "pull_file", `{"path":"/sdcard/b c.txt"}`)
	if err != nil || d.kept["b c.txt"] != "of the phone, too" || out.Result != `kept as "001-b c.txt", 17 bytes` {
		t.Errorf("%q, %+v, %v", d.kept, out, err)
	}
	wantNothing(t, d.Phone, out)
	for _, path := range []string{
		"/data/local/tmp/x", "/sdcard", "/sdcard/", "sdcard/x", "/sdcard/../data/x", "/sdcard//x", "/sdcard/x/", "/sdcard/./x", `/sdcard/a\nb`,
		"/sdcardx/y", "/storage/emulated/10/x", `/sdcard/\u202egpj.exe`, "/", "/proc/self/environ",
	} {
		d := newDesk()
		_, err := do(t, d.env(tools.PermitFiles), "pull_file", `{"path":"`+path+`"}`)
		wantRefusal(t, err, wire.BadArguments, "$.path")
		if len(d.kept) > 0 {
			t.Errorf("%s was kept", path)
		}
	}
	env := newDesk().env(tools.PermitFiles)
	env.Keep = nil
	_, err = do(t, env, "pull_file", `{"path":"/sdcard/x"}`)
	wantRefusal(t, err, wire.Unsupported, "pull_file")
}

// pulls is a phone whose files come as they come.
type pulls struct {
	tools.Reads
	pull func(ctx context.Context, w io.Writer) error
}

func (p pulls) Pull(ctx context.Context, _ string, w io.Writer, _ int64) error { return p.pull(ctx, w) }

func TestFilesThatDoNotComeAreNotKept(t *testing.T) {
	half := func(err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				return err
			}
			return err
		}
	}
	full := func(string, io.Reader) (string, error) { return "", os.ErrDeadlineExceeded }
	for name, c := range map[string]struct {
		pull func(context.Context, io.Writer) error
		keep func(string, io.Reader) (string, error)
		code wire.Code
		want string
	}{
		"no such file":        {half(fmt.Errorf("pull: %w", fs.ErrNotExist)), nil, wire.FileMissing, "/sdcard/x"},
		"not allowed":         {half(fmt.Errorf("pull: %w", fs.ErrPermission)), nil, wire.FileDenied, "/sdcard/x"},
		"the cable":           {half(errors.New("the cable")), nil, wire.PhoneRejected, "the cable"},
		"not in this version": {half(errors.ErrUnsupported), nil, wire.Unsupported, "reading /sdcard/x"},
		"too large":           {half(wire.Refuse(wire.FileTooLarge, map[string]any{"path": "/sdcard/x", "limit": 7})), nil, wire.FileTooLarge, "7 bytes"},
		"no room":             {half(nil), full, wire.Internal, ""},
		"no room, refused": {half(nil), func(string, io.Reader) (string, error) {
			return "", wire.Refuse(wire.RackFull, nil)
		}, wire.RackFull, ""},
		"not wanted": {func(ctx context.Context, w io.Writer) error { // endless
			for {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					return err
				}
			}
		}, full, wire.Internal, ""},
		"not wanted, and nothing comes": {func(ctx context.Context, _ io.Writer) error {
			<-ctx.Done()
			return ctx.Err()
		}, full, wire.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			env := d.env(tools.PermitFiles)
			env.Phone = pulls{pull: c.pull}
			if c.keep != nil {
				env.Keep = c.keep
			}
			out, err := do(t, env, "pull_file", `{"path":"/sdcard/x"}`)
			wantRefusal(t, err, c.code, c.want)
			if len(d.kept) > 0 || out.Result != "" {
				t.Errorf("%q, %+v", d.kept, out)
			}
		})
	}
	d := newDesk()
	env := d.env(tools.PermitFiles)
	ctx, cancel := context.WithCancel(t.Context())
	env.Phone = pulls{pull: func(ctx context.Context, _ io.Writer) error { cancel(); <-ctx.Done(); return ctx.Err() }}
	if _, err := executeIn(ctx, env, "pull_file", `{"path":"/sdcard/x"}`); !errors.Is(err, context.Canceled) || len(d.kept) > 0 {
		t.Error(err)
	}
}

func TestDocumentsAreRead(t *testing.T) {
	for _, c := range []struct {
		args, asked, want string
		permissions       []string
	}{
		{`{"file":"notes.txt"}`, "notes.txt ", "of the task", nil},
		{`{"file":"notes.txt","pages":"2"}`, "notes.txt 2", "of the task", nil},
		{`{"file":"/sdcard/Download/a.pdf","pages":"1-3,7"}`, "a.pdf 1-3,7", "of the phone", []string{tools.PermitFiles}},
	} {
		d := newDesk()
		out, err := do(t, d.env(c.permissions...), "read_document", c.args)
		if err != nil || out.Result != c.want || fmt.Sprint(d.documents.asked) != "["+c.asked+"]" || d.closed != len(d.opened) {
			t.Errorf("%s: %+v, asked %q, %v", c.args, out, d.documents.asked, err)
		}
		wantNothing(t, d.Phone, out)
	}
	for _, c := range []struct {
		args string
		code wire.Code
		want string
	}{
		{`{"file":"/sdcard/Download/a.pdf"}`, wire.PermissionMissing, "files"},
		{`{"file":"/etc/passwd"}`, wire.PermissionMissing, "files"},
		{`{"file":"../notes.txt"}`, wire.BadArguments, "no name of a file"},
		{`{"file":"notes.txt","pages":"0"}`, wire.BadArguments, "$.pages"},
		{`{"file":"notes.txt","pages":"1-"}`, wire.BadArguments, "$.pages"},
		{`{"file":"notes.txt","pages":"1,2,3,4,5,6,7,8,9"}`, wire.BadArguments, "$.pages"},
		{`{"file":"notes.txt","pages":"1\n"}`, wire.BadArguments, "$.pages"},
		{`{"file":"other.txt"}`, wire.BadRequest, "no such file"},
	} {
		d := newDesk()
		out, err := do(t, d.env(), "read_document", c.args)
		wantRefusal(t, err, c.code, c.want)
		wantNothing(t, d.Phone, out)
		if len(d.documents.asked) > 0 || out.Result != "" {
			t.Errorf("%s: asked %q", c.args, d.documents.asked)
		}
	}
	d := newDesk()
	_, err := do(t, d.env(tools.PermitFiles), "read_document", `{"file":"/data/x"}`)
	wantRefusal(t, err, wire.BadArguments, "$.file must begin with /sdcard/")
	d.documents.err = wire.Refuse(wire.DocumentTimeout, map[string]any{"document": "notes.txt"})
	out, err := do(t, d.env(), "read_document", `{"file":"notes.txt"}`)
	if !wire.Is(err, wire.DocumentTimeout) || out.Result != "of the task" { // the pages before
		t.Errorf("%+v, %v", out, err)
	}
	env := d.env()
	env.Documents = nil
	_, err = do(t, env, "read_document", `{"file":"notes.txt"}`)
	wantRefusal(t, err, wire.Unsupported, "read_document")
}

func TestResultsAreBounded(t *testing.T) {
	d := newDesk()
	for _, c := range []struct{ n, want int }{{tools.MaxResult, tools.MaxResult}, {tools.MaxResult + 1, tools.MaxResult}} {
		d.Files["/sdcard/long"] = strings.Repeat("é", c.n)
		out, err := do(t, d.env(tools.PermitFiles), "read_document", `{"file":"/sdcard/long"}`)
		cut := strings.Contains(out.Result, "cut; ask for fewer or other pages")
		if n := utf8.RuneCountInString(out.Result); err != nil || n != c.want || cut != (c.n > tools.MaxResult) || !utf8.ValidString(out.Result) {
			t.Errorf("%d characters, %v", n, err)
		}
	}
}
