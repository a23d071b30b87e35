// Package phonetest is a scripted ADB connection for tests of what stands on
// agent/phone: a function from request to reply.
package phonetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	"phonerack/usb/adb"
)

// Request is one command that was sent to the phone.
type Request struct {
	Exec    bool // a raw stream, else a shell with an exit code
	Command string
}

// Reply is what the phone answers. Exec gives Stdout only.
type Reply struct {
	Stdout, Stderr string
	Exit           int
	Err            error // instead of an answer
	Hang           bool  // no end of the answer before the context ends
}

// Script answers requests. It may be called from several goroutines.
type Script func(Request) Reply

// ADB implements phone.ADB[*Stream, *Files] by a script and remembers the
// requests.
type ADB struct {
	script   Script
	features map[string]bool

	mu   sync.Mutex // guards sent
	sent []Request

	files Files
}

// Files returns the phone's files.
func (a *ADB) Files() *Files { return &a.files }

// New returns a connection with the given ADB features.
func New(script Script, features ...string) *ADB {
	a := &ADB{script: script, features: map[string]bool{}}
	for _, f := range features {
		a.features[f] = true
	}
	return a
}

// Sent returns the requests so far.
func (a *ADB) Sent() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Request(nil), a.sent...)
}

// Forget clears the requests, for example those of Attach.
func (a *ADB) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = nil
}

func (a *ADB) ask(ctx context.Context, r Request) (Reply, error) {
	if err := a.note(ctx, r); err != nil {
		return Reply{}, err
	}
	return a.answer(ctx, r)
}

// note remembers a request.
func (a *ADB) note(ctx context.Context, r Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, r)
	return nil
}

func (a *ADB) answer(ctx context.Context, r Request) (Reply, error) {
	reply := a.script(r)
	if reply.Hang {
		<-ctx.Done()
		return Reply{Stdout: reply.Stdout}, ctx.Err()
	}
	return reply, reply.Err
}

// Shell implements phone.ADB. Of several commands in one round trip the script
// answers each, without its time limit; Sent has them as one.
func (a *ADB) Shell(ctx context.Context, cmd string) (adb.Result, error) {
	marks, commands := split(cmd)
	if commands == nil {
		r, err := a.ask(ctx, Request{Command: cmd})
		return adb.Result{Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr), ExitCode: r.Exit}, err
	}
	if err := a.note(ctx, Request{Command: cmd}); err != nil {
		return adb.Result{}, err
	}
	var out, errOut strings.Builder
	for i, c := range commands {
		out.WriteString(marks[i] + "\n")
		r, err := a.answer(ctx, Request{Command: strings.Replace(c, "dumpsys -t 4 ", "dumpsys ", 1)})
		out.WriteString(r.Stdout)
		errOut.WriteString(r.Stderr)
		if err != nil {
			return adb.Result{Stdout: []byte(out.String()), Stderr: []byte(errOut.String())}, err
		}
	}
	out.WriteString(marks[len(commands)] + "\n")
	return adb.Result{Stdout: []byte(out.String()), Stderr: []byte(errOut.String())}, nil
}

var markEcho = regexp.MustCompile(`(?:^|; )echo (phonerack-[a-z0-9]{12}-\d+)(?:; |$)`)

// split takes a command apart that has marks between several. Without marks
// there are no commands.
func split(cmd string) (marks, commands []string) {
	at := markEcho.FindAllStringSubmatchIndex(cmd, -1)
	if len(at) < 2 || at[0][0] != 0 {
		return nil, nil
	}
	for i, m := range at {
		marks = append(marks, cmd[m[2]:m[3]])
		if i+1 < len(at) {
			commands = append(commands, cmd[m[1]:at[i+1][0]])
		}
	}
	return marks, commands
}

// Exec implements phone.ADB.
func (a *ADB) Exec(ctx context.Context, cmd string) (*Stream, error) {
	r, err := a.ask(ctx, Request{Exec: true, Command: cmd})
	if err != nil {
		return nil, err
	}
	return &Stream{Reader: strings.NewReader(r.Stdout)}, nil
}

// Stream is the raw output of a command. What is written to it is kept.
type Stream struct {
	*strings.Reader
	Written bytes.Buffer
}

// Write is the command's input.
func (s *Stream) Write(p []byte) (int, error) { return s.Written.Write(p) }

// Close does nothing.
func (s *Stream) Close() error { return nil }

// Sync implements phone.ADB.
func (a *ADB) Sync(ctx context.Context) (*Files, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &a.files, nil
}

// Files is a phone's file service over files in memory. It implements
// phone.Files.
type Files struct {
	mu sync.Mutex // guards m
	m  map[string][]byte
}

// Put makes a file.
func (f *Files) Put(path string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = map[string][]byte{}
	}
	f.m[path] = bytes.Clone(content)
}

// Get returns a file's content, nil if there is no such file.
func (f *Files) Get(path string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.m[path])
}

// Receive implements phone.Files.
func (f *Files) Receive(_ context.Context, path string, w io.Writer) error {
	f.mu.Lock()
	content, ok := f.m[path]
	f.mu.Unlock()
	if !ok {
		return &adb.SyncError{Op: "receive", Path: path, Message: "No such file or directory", Err: fs.ErrNotExist}
	}
	_, err := io.Copy(w, bytes.NewReader(content))
	return err
}

// Send implements phone.Files.
func (f *Files) Send(_ context.Context, r io.Reader, path string, _ fs.FileMode, _ time.Time) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.Put(path, content)
	return nil
}

// Close does nothing.
func (f *Files) Close() error { return nil }

// HasFeature implements phone.ADB.
func (a *ADB) HasFeature(name string) bool { return a.features[name] }

// RawScreenshot returns a grey raw screenshot as `screencap` prints it since
// Android 10.
func RawScreenshot(size image.Point) []byte {
	head := make([]byte, 0, 16)
	for _, v := range []int{size.X, size.Y, 1, 0} {
		head = binary.LittleEndian.AppendUint32(head, uint32(v))
	}
	return append(head, bytes.Repeat([]byte{0x80, 0x80, 0x80, 0xFF}, size.X*size.Y)...)
}
