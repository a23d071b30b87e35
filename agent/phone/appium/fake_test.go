package appium

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"go.uber.org/goleak"

	"phonerack/usb/adb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latin is the input method that the fake phone comes with.
const latin = "com.example.keys/.LatinIME"

var errCut = fmt.Errorf("cut: %w", adb.ErrTimeout)

// fake is a phone with as much of Android as this package asks for. Its fields
// may be set before and between calls.
type fake struct {
	mu sync.Mutex // guards everything below

	sdk     int
	apps    map[string]string // Android package -> "version code", "- 0" for the test app
	ime     string
	enabled []string
	record  string // content of imeRecord
	field   string // what stands in the field that has the focus
	clip    string
	windows []string // of the screen, the highest first

	slowIME   int    // looks at the input method until it takes keys
	stubborn  bool   // "ime set" changes nothing
	terse     bool   // dumpsys input_method does not name the method
	verdict   string // of the installer, "Success" if empty
	swallow   int64  // bytes after which the installer's stream is cut; 0 for never
	mute      bool   // the installer does not say what it did
	keep      bool   // apps stay although they were uninstalled
	squatter  bool   // something else listens on the server's port
	immortal  bool   // the server outlives force-stop
	stranded  bool   // a server from an earlier program runs
	crash     string // what the instrumentation prints when it ends at once
	muteFor   string // the same, for one Android package
	onStart   func() // while a server starts
	behave    *habit // of servers that are started from now on
	answering func(cmd string) (adb.Result, error, bool)

	sent   []string // commands
	asked  []string // requests to servers
	server *fakeServer
}

// habit is what a fake server does wrong.
type habit struct {
	stale     int    // trees of so many servers stay what they were at the start
	dead      int    // so many requests for a tree break off
	hang      int    // so many requests for a tree are never answered
	die       int    // at so many requests for a tree the instrumentation ends
	orphan    int    // the same, but the connection is left open
	fail      int    // so many requests for a tree get message
	message   string // of an error
	raw       string // answer instead of a tree
	status    int    // of raw, 200 if 0
	version   string // 10.6.6 if empty
	deaf      bool   // settings are not taken
	silent    bool   // nothing listens
	clipFails string // "cut", "refuse", or of a server that repeats what it got "quote", "nonsense" or "die"
}

func newFake() *fake {
	return &fake{
		sdk: 34, apps: map[string]string{}, ime: latin, enabled: []string{latin},
		windows: []string{window1("com.example.notes", "hello")}, behave: &habit{},
	}
}

func window1(pkg, text string) string {
	return fmt.Sprintf(`<android.widget.FrameLayout index="0" package=%q class="android.widget.FrameLayout" bounds="[0,0][1080,2400]"><android.widget.EditText text=%q package=%q class="android.widget.EditText" bounds="[0,200][1080,400]" /></android.widget.FrameLayout>`, pkg, text, pkg)
}

func statusBar(clock string) string {
	return fmt.Sprintf(`<android.widget.FrameLayout package="com.android.systemui" bounds="[0,0][1080,80]"><android.widget.TextView text=%q package="com.android.systemui" bounds="[0,0][200,80]" /></android.widget.FrameLayout>`, clock)
}

// release is a release of fixtures in the form of the pinned one.
func release(t testing.TB) ([]Package, fstest.MapFS) {
	t.Helper()
	files := fstest.MapFS{}
	packages := Packages()
	for i := range packages {
		p := &packages[i]
		for j := range p.Apps {
			a := &p.Apps[j]
			apk := []byte("PK\x03\x04 a fixture of " + a.ID)
			sum := sha256.Sum256(apk)
			a.Size, a.SHA256 = int64(len(apk)), hex.EncodeToString(sum[:])
			files[p.Folder()+"/"+a.File] = &fstest.MapFile{Data: apk}
		}
	}
	return packages, files
}

func helperOf(t testing.TB, f *fake) (*Helper, fstest.MapFS) {
	t.Helper()
	h := New(f, Options{})
	var files fstest.MapFS
	h.packages, files = release(t)
	return h, files
}

// withApps puts the pinned apps on the phone.
func (f *fake) withApps() *fake {
	f.apps = map[string]string{serverID: "10.6.6 278", testID: "- 0", settingsID: "8.0.10 192"}
	return f
}

func (f *fake) did(prefix string) (commands []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.sent {
		if strings.HasPrefix(c, prefix) {
			commands = append(commands, c)
		}
	}
	return commands
}

func (f *fake) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// writes are the commands that changed something.
func (f *fake) writes() (commands []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.sent {
		switch {
		case strings.HasPrefix(c, "settings get"), strings.HasPrefix(c, "pm path"), strings.HasPrefix(c, "getprop"),
			strings.HasPrefix(c, "dumpsys"), strings.HasPrefix(c, "am broadcast"), c == "tcp:"+port:
		default:
			commands = append(commands, c)
		}
	}
	return commands
}

// Shell implements ADB.
func (f *fake) Shell(ctx context.Context, cmd string) (adb.Result, error) {
	if err := ctx.Err(); err != nil {
		return adb.Result{}, err
	}
	f.mu.Lock()
	f.sent = append(f.sent, cmd)
	answering := f.answering
	f.mu.Unlock()
	if answering != nil {
		if r, err, ok := answering(cmd); ok {
			return r, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out, code := f.run(cmd)
	return adb.Result{Stdout: []byte(out), ExitCode: code}, nil
}

// run answers one of the commands that this package sends.
func (f *fake) run(cmd string) (string, int) {
	known := slices.Clone(f.enabled)
	if f.apps[settingsID] != "" {
		known = append(known, settingsID+"/.AppiumIME", unicodeIME)
	}
	switch {
	case cmd == "getprop ro.build.version.sdk":
		return fmt.Sprintf("%d\n", f.sdk), 0
	case strings.HasPrefix(cmd, "settings get secure default_input_method; "):
		return f.ime + "\n=\n" + strings.Join(f.enabled, "\n") + "\n=\n" + strings.Join(known, "\n") + "\n=\n" + f.record, 0
	case strings.HasPrefix(cmd, "pm path "):
		id, _, _ := strings.Cut(strings.TrimPrefix(cmd, "pm path "), ";")
		return f.describe(id, strings.Contains(cmd, "dumpsys"))
	case cmd == "dumpsys input_method":
		if f.slowIME--; f.terse {
			return "  mSystemReady=true\n", 0
		}
		return fmt.Sprintf("  mCurMethodId=%s\n    mCurId=%s mHaveConnection=true mBoundToMethod=%t\n", f.ime, f.ime, f.slowIME < 0), 0
	case strings.HasPrefix(cmd, "echo ") || strings.HasPrefix(cmd, "ime "):
		return f.imes(cmd, known), 0
	case cmd == "rm -f "+imeRecord:
		f.record = ""
		return "", 0
	case strings.HasPrefix(cmd, "input text "):
		f.typed(strings.Trim(strings.TrimPrefix(cmd, "input text "), "'"))
		return "", 0
	case cmd == forceStop:
		f.forceStop()
		return "", 0
	case strings.HasPrefix(cmd, "pm uninstall "):
		id := strings.TrimPrefix(cmd, "pm uninstall ")
		if f.keep {
			return "Failure [DELETE_FAILED_INTERNAL_ERROR]\n", 1
		}
		delete(f.apps, id)
		return "Success\n", 0
	case cmd == askClip:
		if f.apps[settingsID] == "" {
			return "Broadcasting: Intent { act=io.appium.settings.clipboard.get }\nBroadcast completed: result=0\n", 0
		}
		clip := f.clip
		if f.sdk >= sdkPrivateClip && !ours(f.ime) {
			clip = "" // denied without a word
		}
		return "Broadcasting: Intent { act=io.appium.settings.clipboard.get }\nBroadcast completed: result=-1, data=\"" +
			base64.StdEncoding.EncodeToString([]byte(clip)) + "\"\n", 0
	}
	return "sh: not found: " + cmd + "\n", 127
}

func (f *fake) describe(id string, versions bool) (string, int) {
	out := ""
	app := f.apps[id]
	if app != "" {
		out = "package:/data/app/" + id + "/base.apk\n"
	}
	if !versions {
		return out, 0
	}
	out += "=\n"
	if app != "" {
		name, code, _ := strings.Cut(app, " ")
		if name == "-" {
			name = "null"
		}
		out += fmt.Sprintf("  Package [%s] (1a2b3c):\n    versionCode=%s minSdk=26 targetSdk=34\n    versionName=%s\n", id, code, name)
	}
	return out, 0
}

var imeWord = regexp.MustCompile(`ime (enable|disable|set|reset) ?'?([^ ;'&]*)`)

func (f *fake) imes(cmd string, known []string) (out string) {
	if rest, ok := strings.CutPrefix(cmd, "echo '"); ok {
		f.record, _, _ = strings.Cut(rest, "'")
		f.record += "\n"
	}
	for _, m := range imeWord.FindAllStringSubmatch(cmd, -1) {
		switch verb, id := m[1], m[2]; {
		case verb == "reset":
			f.ime, f.enabled = latin, []string{latin}
		case !slices.Contains(known, id):
			out += "Unknown input method " + id + " cannot be " + verb + " for user #0\n"
		case verb == "enable":
			f.enabled = append(slices.DeleteFunc(f.enabled, func(s string) bool { return s == id }), id)
		case verb == "disable":
			f.enabled = slices.DeleteFunc(f.enabled, func(s string) bool { return s == id })
		case !f.stubborn:
			f.ime = id
			out += "Input method " + id + " selected for user #0\n"
		}
	}
	return out
}

// typed is what the input command does: one input method takes it as it is, the
// other decodes it, and one that does not take keys yet leaves it as it is.
func (f *fake) typed(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `'\''`, "'"), "%s", " ")
	if f.ime == unicodeIME && f.slowIME < 0 {
		text = decodeUTF7(text)
	}
	f.field += text
	f.windows = []string{window1("com.example.notes", "typed")}
}

func (f *fake) forceStop() {
	f.stranded = false
	if f.server != nil && !f.immortal {
		f.server.kill("INSTRUMENTATION_ABORTED: System has crashed.\n")
		f.server = nil
	}
}

// StartShell implements ADB: the instrumentation.
func (f *fake) StartShell(ctx context.Context, cmd string, stdio adb.Stdio) (int, error) {
	f.mu.Lock()
	f.sent = append(f.sent, cmd)
	say := ""
	switch {
	case cmd != instrument:
		say = "Error: unknown command\n"
	case f.apps[serverID] == "" || f.apps[testID] == "":
		say = "INSTRUMENTATION_STATUS: Error=Unable to find instrumentation info for: ComponentInfo{}\nINSTRUMENTATION_STATUS_CODE: -1\n"
	case f.crash != "":
		say = f.crash
	}
	if say != "" {
		f.mu.Unlock()
		io.WriteString(stdio.Stdout, say)
		return 0, nil
	}
	if f.onStart != nil {
		f.onStart()
	}
	s := startServer(f)
	f.server = s
	f.mu.Unlock()
	select {
	case <-s.dead:
		io.WriteString(stdio.Stdout, s.words)
		return 0, nil
	case <-ctx.Done(): // the shell is hung up on; the server's process stays
		return 0, ctx.Err()
	}
}

// Exec implements ADB: the installer.
func (f *fake) Exec(_ context.Context, cmd string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, cmd)
	var size int64
	if _, err := fmt.Sscanf(cmd, "cmd package install -r -t -S %d", &size); err != nil {
		return nil, adb.ErrRefused
	}
	host, phone := net.Pipe()
	verdict, swallow, mute := f.verdict, f.swallow, f.mute
	go func() {
		defer phone.Close()
		if swallow > 0 {
			io.CopyN(io.Discard, phone, min(swallow, size))
			if swallow < size {
				return
			}
		}
		apk := make([]byte, size)
		if _, err := io.ReadFull(phone, apk); err != nil {
			return
		}
		if verdict == "" {
			f.installed(string(apk))
			verdict = "Success\n"
		}
		f.mu.Lock()
		mute = mute || f.muteFor != "" && strings.HasSuffix(string(apk), " "+f.muteFor)
		f.mu.Unlock()
		if !mute {
			io.WriteString(phone, verdict)
		}
	}()
	return host, nil
}

func (f *fake) installed(apk string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := apk[strings.LastIndexByte(apk, ' ')+1:]
	f.apps[id] = map[string]string{serverID: "10.6.6 278", testID: "- 0", settingsID: "8.0.10 192"}[id]
}

// Open implements ADB: the server's port.
func (f *fake) Open(ctx context.Context, service string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, service)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case service != "tcp:"+port:
		return nil, adb.ErrRefused
	case f.squatter, f.stranded:
		host, phone := net.Pipe()
		phone.Close()
		return host, nil
	case f.server == nil || f.server.habit.silent:
		return nil, adb.ErrRefused
	}
	host, phone := net.Pipe()
	select {
	case f.server.conns <- phone:
	default:
		return nil, errors.New("backlog")
	}
	return host, nil
}

// fakeServer plays the UiAutomator2 server.
type fakeServer struct {
	f     *fake
	habit *habit
	conns chan net.Conn
	dead  chan struct{} // closed by kill
	once  sync.Once
	words string // of its instrumentation at its end
	http  http.Server

	mu       sync.Mutex // guards the rest
	settings map[string]any
	frozen   string
	opened   bool
}

// startServer starts a server; f.mu is held.
func startServer(f *fake) *fakeServer {
	s := &fakeServer{
		f: f, habit: f.behave, conns: make(chan net.Conn, 16), dead: make(chan struct{}),
		settings: map[string]any{
			"deferAccessibilityCacheReset": true, "waitForIdleTimeout": 10000, "enableMultiWindows": false, "allowInvisibleElements": false,
			"ignoreUnimportantViews": false, "alwaysTraversableViewClasses": "", "snapshotMaxDepth": 70, "enableNotificationListener": true,
			"wakeLockTimeout": 86400000, "keyInjectionDelay": 0,
		},
	}
	if s.habit.stale > 0 {
		s.habit.stale--
		s.frozen = strings.Join(f.windows, "")
	}
	s.http.Handler = http.HandlerFunc(s.serve)
	go s.http.Serve(s)
	return s
}

// Accept, Close and Addr implement net.Listener.
func (s *fakeServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.dead:
		return nil, net.ErrClosed
	}
}

func (s *fakeServer) Close() error   { return nil }
func (s *fakeServer) Addr() net.Addr { return phoneAddr{} }

func (s *fakeServer) kill(words string) {
	s.once.Do(func() {
		s.words = words
		close(s.dead)
		s.http.Close()
	})
}

const fakeSession = "7f0c2a4e-1111-4222-8333-444455556666"

func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	value := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"value": v, "sessionId": fakeSession})
	}
	fail := func(status int, code, message string) {
		w.WriteHeader(status)
		value(map[string]string{"error": code, "message": message, "stacktrace": "io.appium.uiautomator2...: " + message})
	}
	if r.ContentLength > 65536 {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	var body map[string]any
	if r.Method == http.MethodPost {
		json.NewDecoder(r.Body).Decode(&body)
	}
	s.mu.Lock()
	session := "/session/" + fakeSession
	opened := s.opened
	s.mu.Unlock()
	s.f.set(func() { s.f.asked = append(s.f.asked, r.Method+" "+r.URL.Path) })
	switch at := r.Method + " " + r.URL.Path; {
	case at == "GET /status":
		version := s.habit.version
		if version == "" {
			version = "10.6.6"
		}
		value(map[string]any{"ready": true, "message": "ready", "build": map[string]any{"version": version, "versionCode": 278}})
	case at == "POST /session":
		s.mu.Lock()
		s.opened = true
		s.mu.Unlock()
		value(map[string]any{"sessionId": fakeSession, "capabilities": body["capabilities"]})
	case !opened || !strings.HasPrefix(r.URL.Path, session):
		fail(404, "invalid session id", "The session is not known")
	case at == "DELETE "+session:
		value(nil)
		go s.f.quit(s)
	case at == "POST "+session+"/appium/settings":
		s.mu.Lock()
		for k, v := range body["settings"].(map[string]any) {
			if !s.habit.deaf {
				s.settings[k] = v
			}
		}
		s.mu.Unlock()
		value(nil)
	case at == "GET "+session+"/appium/settings":
		s.mu.Lock()
		defer s.mu.Unlock()
		value(s.settings)
	case at == "GET "+session+"/source":
		s.source(w, r, value, fail)
	case at == "POST "+session+"/appium/device/set_clipboard":
		s.setClip(w, body, value, fail)
	default:
		fail(404, "unknown command", "no such command")
	}
}

// quit is how a server ends by itself.
func (f *fake) quit(s *fakeServer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.immortal {
		return
	}
	if f.server == s {
		f.server = nil
	}
	s.kill("INSTRUMENTATION_CODE: -1\n")
}

func (s *fakeServer) source(w http.ResponseWriter, r *http.Request, value func(any), fail func(int, string, string)) {
	s.f.mu.Lock()
	h := s.habit
	take := func(n *int) bool {
		if *n > 0 {
			*n--
			return true
		}
		return false
	}
	dead, hang, die, orphan, failing := take(&h.dead), take(&h.hang), take(&h.die), take(&h.orphan), take(&h.fail)
	windows := strings.Join(s.f.windows, "")
	s.f.mu.Unlock()
	if s.frozen != "" {
		windows = s.frozen
	}
	switch {
	case dead:
		panic(http.ErrAbortHandler)
	case hang:
		select {
		case <-r.Context().Done():
		case <-s.dead:
		}
		panic(http.ErrAbortHandler)
	case die:
		s.f.mu.Lock()
		s.f.server = nil
		s.f.mu.Unlock()
		s.kill("INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n")
		panic(http.ErrAbortHandler)
	case orphan:
		s.f.set(func() { s.f.server = nil })
		s.once.Do(func() {
			s.words = "INSTRUMENTATION_CODE: 0\n"
			close(s.dead)
		})
		<-r.Context().Done()
		s.http.Close()
	case failing:
		fail(500, "unknown error", h.message)
	case h.raw != "":
		if h.status == 302 {
			w.Header().Set("Location", "http://127.0.0.1:6790/status")
		}
		if h.status != 0 {
			w.WriteHeader(h.status)
		}
		io.WriteString(w, h.raw)
	default:
		value("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\r\n" +
			`<hierarchy index="0" class="hierarchy" rotation="0" width="1080" height="2400">` + windows + "</hierarchy>\n")
	}
}

func (s *fakeServer) setClip(w io.Writer, body map[string]any, value func(any), fail func(int, string, string)) {
	switch s.habit.clipFails {
	case "cut":
		panic(http.ErrAbortHandler)
	case "refuse":
		fail(500, "unknown error", "Cannot receive ClipboardManager instance")
		return
	case "quote":
		fail(500, fmt.Sprint("not ", body["content"]), fmt.Sprint("cannot set ", body["content"]))
		return
	case "nonsense":
		fmt.Fprintf(w, "{%q: 1}", body["content"])
		return
	case "die":
		s.kill(fmt.Sprintf("INSTRUMENTATION_RESULT: longMsg=no %s\nINSTRUMENTATION_CODE: 0\n", body["content"]))
		return
	}
	b, err := base64.StdEncoding.DecodeString(body["content"].(string))
	if err != nil || body["contentType"] != "plaintext" {
		fail(400, "invalid argument", "bad content")
		return
	}
	s.f.set(func() { s.f.clip = string(b) })
	value(nil)
}

// decodeUTF7 is what the Unicode input method makes of what is typed, written
// from RFC 3501: what it cannot read stays as it is.
func decodeUTF7(in string) string {
	var out strings.Builder
	for {
		plain, rest, ok := strings.Cut(in, "&")
		out.WriteString(plain)
		if !ok {
			return out.String()
		}
		run, after, ok := strings.Cut(rest, "-")
		switch b, err := base64.RawStdEncoding.DecodeString(strings.ReplaceAll(run, ",", "/")); {
		case !ok:
			return out.String() // never unshifted: nothing is committed
		case run == "":
			out.WriteByte('&')
		case err != nil || len(b)%2 != 0:
			out.WriteString("&" + run + "-")
		default:
			out.WriteString(utf16Text(b))
		}
		in = after
	}
}

// lease is a fence that counts and can end.
type lease struct {
	mu    sync.Mutex // guards left and asked
	asked int
	left  int // checks until it is over, -1 for never
}

var errOver = errors.New("the lease is over")

func live() *lease { return &lease{left: -1} }

// Check implements phone.Fence.
func (l *lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.left == 0 {
		return errOver
	}
	if l.left > 0 {
		l.left--
	}
	return nil
}

func utf16Text(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return string(utf16.Decode(units))
}
