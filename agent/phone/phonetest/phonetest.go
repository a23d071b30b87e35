// Package phonetest is a scripted ADB connection for tests of what stands on
// agent/phone: a function from request to reply.
package phonetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"io"
	"io/fs"
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
	Hang           bool  // no answer before the context ends
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
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	a.mu.Lock()
	a.sent = append(a.sent, r)
	a.mu.Unlock()
	reply := a.script(r)
	if reply.Hang {
		<-ctx.Done()
		return Reply{}, ctx.Err()
	}
	return reply, reply.Err
}

// Shell implements phone.ADB.
func (a *ADB) Shell(ctx context.Context, cmd string) (adb.Result, error) {
	r, err := a.ask(ctx, Request{Command: cmd})
	if err != nil {
		return adb.Result{}, err
	}
	return adb.Result{Stdout: []byte(r.Stdout), Stderr: []byte(r.Stderr), ExitCode: r.Exit}, nil
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

// Handset answers what phone.Attach and the readings ask, as a phone of its
// fields would.
type Handset struct {
	SDK           int    // 34 if 0
	Width, Height int    // 1080x2400 if 0
	Rotation      int    // quarter turns
	Focus         string // "package/class"; no window if empty
	Keyboard      bool
	Tree          string // what the dumper writes; it fails with "null root node" if empty
	Packages      []string
}

// Reply implements Script. A command that it does not know succeeds silently.
func (h Handset) Reply(r Request) Reply {
	if h.SDK == 0 {
		h.SDK = 34
	}
	if h.Width == 0 {
		h.Width, h.Height = 1080, 2400
	}
	switch cmd := r.Command; {
	case strings.HasPrefix(cmd, "getprop "):
		return Reply{Stdout: fmt.Sprintf("SERIAL1\nAcme\nModel One\none\n14\n%d\narm64-v8a\nBUILD.1\nen-GB\n", h.SDK)}
	case strings.HasPrefix(cmd, "wm size"):
		return Reply{Stdout: fmt.Sprintf("Physical size: %dx%d\nPhysical density: 420\n    mCurrentRotation=ROTATION_%d\n", h.Width, h.Height, 90*h.Rotation)}
	case strings.HasPrefix(cmd, "dumpsys window"):
		if h.Focus == "" {
			return Reply{Stdout: "  mCurrentFocus=null\n  mFocusedApp=null\n"}
		}
		return Reply{Stdout: fmt.Sprintf("  mCurrentFocus=Window{1a2b3c u0 %s}\n  mFocusedApp=ActivityRecord{4d5e6f u0 %s t7}\n", h.Focus, h.Focus)}
	case strings.HasPrefix(cmd, "dumpsys input_method"):
		return Reply{Stdout: fmt.Sprintf("  mShowRequested=%t mInputShown=%t\n", h.Keyboard, h.Keyboard)}
	case strings.HasPrefix(cmd, "pm list packages"):
		return Reply{Stdout: "package:" + strings.Join(h.Packages, "\npackage:") + "\n"}
	case strings.HasPrefix(cmd, "cmd package resolve-activity --brief "):
		pkg := cmd[strings.LastIndexByte(cmd, ' ')+1:]
		return Reply{Stdout: "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n" + pkg + "/.MainActivity\n"}
	case strings.HasPrefix(cmd, "am start "):
		return Reply{Stdout: "Starting: Intent { }\nStatus: ok\nLaunchState: COLD\nTotalTime: 300\nComplete\n"}
	case strings.HasPrefix(cmd, "uiautomator dump "):
		return h.dump(r)
	case cmd == "screencap 2>/dev/null":
		return Reply{Stdout: string(RawScreenshot(image.Pt(h.Width, h.Height)))}
	}
	return Reply{}
}

func (h Handset) dump(r Request) Reply {
	const failed = "ERROR: null root node returned by UiTestAutomationBridge.\n"
	_, file, _ := strings.Cut(r.Command, "/data/local/tmp/")
	file, _, _ = strings.Cut(file, " ")
	switch {
	case h.Tree == "" && r.Exec:
		return Reply{Stdout: failed}
	case h.Tree == "":
		return Reply{Stdout: failed, Stderr: "cat: /data/local/tmp/" + file + ": No such file or directory\n"}
	case r.Exec:
		return Reply{Stdout: h.Tree + "UI hierchary dumped to: /dev/tty\n"}
	}
	return Reply{Stdout: "UI hierchary dumped to: /data/local/tmp/" + file + "\n" + h.Tree}
}

// RawScreenshot returns a grey raw screenshot as `screencap` prints it since
// Android 10.
func RawScreenshot(size image.Point) []byte {
	head := make([]byte, 0, 16)
	for _, v := range []int{size.X, size.Y, 1, 0} {
		head = binary.LittleEndian.AppendUint32(head, uint32(v))
	}
	return append(head, bytes.Repeat([]byte{0x80, 0x80, 0x80, 0xFF}, size.X*size.Y)...)
}
