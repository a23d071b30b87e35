package android

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/android/uia2"
	"phonerack/usb/phonesim/screen"
)

const startServer = "am instrument -w io.appium.uiautomator2.server.test/androidx.test.runner.AndroidJUnitRunner"

// served is a phone whose server has been started.
type served struct {
	*phone
	engine *screen.Engine
	client *http.Client
	output bytes.Buffer // of the instrumentation, once ended is closed
	status int
	stop   context.CancelFunc
	ended  chan struct{}
}

// installServer puts the two packages of the server on a phone.
func installServer(p *phone) {
	p.t.Helper()
	server, tests := apktest.Server()
	for _, file := range [][]byte{apktest.Build(server), apktest.Build(tests)} {
		if out, status := p.stream("-r -t -g", file); status != 0 {
			p.t.Fatal(out)
		}
	}
}

// dial connects to the server's port as the daemon does.
func (p *phone) dial() (net.Conn, error) {
	serve, ok := p.Port(uia2.Port)
	if !ok {
		return nil, errors.New("refused")
	}
	host, there := net.Pipe()
	go func() {
		defer there.Close()
		serve(context.Background(), there)
	}()
	return host, nil
}

func startedServer(t *testing.T, version int) *served {
	t.Helper()
	p, engine := realPhone(t, version)
	installServer(p)
	s := &served{phone: p, engine: engine, ended: make(chan struct{})}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	go func() {
		defer close(s.ended)
		s.status = p.Run(ctx, startServer, nil, &s.output, &s.output)
	}()
	s.client = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial() }, DisableKeepAlives: true,
	}}
	t.Cleanup(func() {
		s.stop()
		<-s.ended
		s.client.CloseIdleConnections()
	})
	s.await(true)
	return s
}

// await waits until the server listens, or does not.
func (s *served) await(listens bool) {
	s.t.Helper()
	for range 1000 {
		if _, ok := s.Port(uia2.Port); ok == listens {
			return
		}
		time.Sleep(time.Millisecond)
	}
	s.t.Fatalf("listens: %t", !listens)
}

// call makes a request and decodes the value of its answer.
func (s *served) call(method, path string, body, value any) (status int, session string) {
	s.t.Helper()
	in, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://phone"+path, bytes.NewReader(in))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	var out struct {
		Value     json.RawMessage
		SessionID string
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if err := json.Unmarshal(out.Value, value); value != nil && err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, out.Value)
	}
	return resp.StatusCode, out.SessionID
}

// problem is the value of an answer that is an error.
type problem struct{ Error, Message, Stacktrace string }

// session begins one.
func (s *served) session() string {
	s.t.Helper()
	status, id := s.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{}}}, nil)
	if status != 200 || id == "" {
		s.t.Fatalf("session %q, status %d", id, status)
	}
	return "/session/" + id
}

// sourceNode is an element of a page source.
type sourceNode struct {
	XMLName xml.Name
	Attrs   []xml.Attr   `xml:",any,attr"`
	Nodes   []sourceNode `xml:",any"`
}

func (n *sourceNode) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (n *sourceNode) find(id string) *sourceNode {
	if n.attr("resource-id") == id {
		return n
	}
	for i := range n.Nodes {
		if f := n.Nodes[i].find(id); f != nil {
			return f
		}
	}
	return nil
}

func (s *served) source(session string) *sourceNode {
	s.t.Helper()
	var text string
	if status, _ := s.call("GET", session+"/source", nil, &text); status != 200 {
		s.t.Fatalf("source: status %d", status)
	}
	var root sourceNode
	if err := xml.Unmarshal([]byte(text), &root); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return &root
}

func TestServerTellsWhatIsOnTheScreen(t *testing.T) {
	s := startedServer(t, 14)
	var status struct {
		Ready   bool
		Message string
		Build   struct {
			Version     string
			VersionCode int
		}
	}
	if code, id := s.call("GET", "/status", nil, &status); code != 200 || id != "None" || !status.Ready || status.Build.VersionCode != 278 {
		t.Errorf("%d %q %+v", code, id, status)
	}
	session := s.session()
	focusSearch(s.phone, s.engine)
	root := s.source(session)
	if root.XMLName.Local != "hierarchy" || root.attr("width") != "720" || root.attr("rotation") != "0" || len(root.Nodes) != 1 {
		t.Errorf("root %+v", root.Attrs)
	}
	field := root.find(searchField)
	want := find(s.engine.Tree(), searchField)
	if field.XMLName.Local != "android.widget.EditText" || field.attr("text") != want.Hint || field.attr("showing-hint") != "true" || field.attr("focused") != "true" {
		t.Errorf("field %+v", field.Attrs)
	}
	s.ok("input text kettle")
	if field = s.source(session).find(searchField); field.attr("text") != "kettle" || field.attr("showing-hint") != "false" || field.attr("hint") != want.Hint {
		t.Errorf("field %+v", field.Attrs)
	}
	var picture string
	s.call("GET", session+"/screenshot", nil, &picture)
	raw, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(raw)); err != nil || img.Bounds().Dx() != 720 {
		t.Errorf("picture: %v", err)
	}
	if code, _ := s.call("POST", session+"/appium/settings", map[string]any{"settings": map[string]any{"enableMultiWindows": true, "none": 1}}, nil); code != 200 {
		t.Errorf("settings: %d", code)
	}
	root = s.source(session)
	if len(root.Nodes) != 3 || root.Nodes[0].attr("package") != "com.android.systemui" || root.Nodes[1].attr("package") != screen.KeyboardPackage {
		t.Errorf("%d windows", len(root.Nodes))
	}
}

func TestServerRefuses(t *testing.T) {
	s := startedServer(t, 11)
	session := s.session()
	for _, test := range []struct {
		method, path string
		body         any
		status       int
		kind         string
	}{
		{"GET", "/session/none/source", nil, 404, "invalid session id"},
		{"GET", "/none", nil, 404, "unknown command"},
		{"PUT", "/status", nil, 404, "unknown command"},
		{"POST", "/session", map[string]any{}, 500, "session not created"},
		{"POST", session + "/appium/settings", map[string]any{"settings": map[string]any{"enableMultiWindows": 1}}, 400, "invalid argument"},
		{"POST", session + "/appium/settings", "x", 400, "invalid argument"},
		{"POST", session + "/appium/device/set_clipboard", map[string]any{"content": "YQ==", "contentType": "IMAGE"}, 400, "invalid argument"},
		{"POST", session + "/appium/device/set_clipboard", map[string]any{}, 400, "invalid argument"},
	} {
		var p problem
		if status, _ := s.call(test.method, test.path, test.body, &p); status != test.status || p.Error != test.kind || p.Message == "" || p.Stacktrace == "" {
			t.Errorf("%s %s: %d %+v", test.method, test.path, status, p)
		}
	}
}

func TestServerAndTheClipboard(t *testing.T) {
	for version, want := range map[int]string{9: "héllo", 10: "", 14: ""} {
		s := startedServer(t, version)
		session := s.session()
		content := base64.StdEncoding.EncodeToString([]byte("héllo"))
		if status, _ := s.call("POST", session+"/appium/device/set_clipboard", map[string]any{"content": content, "contentType": "plaintext"}, nil); status != 200 {
			t.Errorf("set: %d", status)
		}
		if got := s.engine.Clipboard(); got != "héllo" {
			t.Errorf("the phone has %q", got)
		}
		var got string
		s.call("POST", session+"/appium/device/get_clipboard", map[string]any{}, &got)
		text, err := base64.StdEncoding.DecodeString(got)
		if err != nil || string(text) != want {
			t.Errorf("Android %d: got %q, %v", version, text, err)
		}
	}
}

// There is one UiAutomation: a dump fails while a server has it, and the other way round.
func TestReport12_UiAutomationIsExclusive(t *testing.T) {
	for version, says := range map[int]string{9: "already registered!", 14: "Killed"} {
		s := startedServer(t, version)
		s.ok("echo old > /sdcard/window_dump.xml")
		out, errOut, status := s.sh("uiautomator dump")
		if out != "" || !strings.Contains(errOut, says) || status == 0 {
			t.Errorf("Android %d: %q %q %d", version, out, errOut, status)
		}
		if got := s.ok("cat /sdcard/window_dump.xml"); got != "old\n" {
			t.Errorf("the old file holds %q", got)
		}
		s.ok("am force-stop io.appium.uiautomator2.server")
		<-s.ended
		wantContains(t, "instrumentation", s.output.String(), "INSTRUMENTATION_RESULT: shortMsg=Process crashed.")
		s.await(false)
		wantContains(t, "dump", s.ok("uiautomator dump"), "dumped to")
	}
	p, _ := realPhone(t, 14)
	installServer(p)
	a := p.automate(false)
	if out := p.ok(startServer); !strings.Contains(out, "longMsg=java.lang.IllegalStateException: UiAutomationService") {
		t.Errorf("%q", out)
	}
	p.letGo(a)
}

func TestServerEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(s *served)
		output string
		status int
	}{
		"its session is deleted": {func(s *served) { s.call("DELETE", s.session(), nil, nil) }, "OK (1 test)", 0},
		"its stream is closed":   {func(s *served) { s.stop() }, "", exitKilled},
		"its tests are stopped":  {func(s *served) { s.ok("am force-stop io.appium.uiautomator2.server.test") }, "Process crashed.", 0},
		"it is uninstalled":      {func(s *served) { s.ok("pm uninstall io.appium.uiautomator2.server") }, "Process crashed.", 0},
		"the phone restarts":     {func(s *served) { s.Restart() }, "Process crashed.", 0},
		"it crashes": {func(s *served) {
			s.fault(func(f *Faults) { f.Server.Crash = true })
			if _, err := s.client.Get("http://phone/status"); err == nil {
				s.t.Error("a dead server answers")
			}
		}, "Process crashed.", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := startedServer(t, 14)
			wantContains(t, "processes", s.ok("pidof io.appium.uiautomator2.server; ps -A"), "io.appium.uiautomator2.server")
			test.end(s)
			<-s.ended
			if !strings.Contains(s.output.String(), test.output) || s.status != test.status {
				t.Errorf("%q, status %d", s.output.String(), s.status)
			}
			s.await(false)
			if _, _, status := s.sh("pidof io.appium.uiautomator2.server"); status == 0 {
				t.Error("the process is still there")
			}
		})
	}
}

func TestReport09_StaleTreeOfAServer(t *testing.T) {
	s := startedServer(t, 14)
	session := s.session()
	before := s.source(session)
	s.fault(func(f *Faults) { f.Server.Stale = true })
	focusSearch(s.phone, s.engine)
	if s.source(session).find(searchField) != nil || before.find(searchField) != nil {
		t.Error("the tree is fresh")
	}
	s.fault(func(f *Faults) { f.Server.Stale = false })
	if s.source(session).find(searchField) == nil {
		t.Error("the tree is stale")
	}
}

func TestServerFaults(t *testing.T) {
	s := startedServer(t, 14)
	session := s.session()
	for kind, want := range map[uia2.ErrorKind]string{
		uia2.NotConnected: "UiAutomation not connected", uia2.StaleObject: "StaleObjectException", uia2.DeadObject: "DeadObjectException",
	} {
		s.fault(func(f *Faults) { f.Server.Error = kind })
		var p problem
		if status, _ := s.call("GET", session+"/source", nil, &p); status < 400 || !strings.Contains(p.Message, want) {
			t.Errorf("%d %+v", status, p)
		}
		if status, _ := s.call("GET", "/status", nil, nil); status != 200 {
			t.Errorf("status: %d", status)
		}
	}
	s.fault(func(f *Faults) { *f = Faults{Server: uia2.Faults{Hang: true}} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://phone/status", nil)
	if _, err := s.client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that hangs: %v", err)
	}
	s.fault(func(f *Faults) { *f = Faults{NeverIdle: true} })
	started := s.clock.Now()
	s.source(session)
	if took := s.clock.Now().Sub(started); took < 10*time.Second {
		t.Errorf("an idle screen was waited for %v", took)
	}
	s.fault(func(f *Faults) { *f = Faults{} })
	s.engine.SetScreenOn(false)
	var p problem
	if status, _ := s.call("GET", session+"/source", nil, &p); status != 500 || !strings.Contains(p.Message, "waiting for the root AccessibilityNodeInfo") {
		t.Errorf("dark screen: %d %+v", status, p)
	}
}

func TestServerThatStartsSlowlyAndDetached(t *testing.T) {
	p, _ := realPhone(t, 14)
	installServer(p)
	p.fault(func(f *Faults) { f.Server.SlowStart = time.Hour })
	before := p.clock.Now()
	p.ok(strings.Replace(startServer, "-w ", "", 1))
	if p.clock.Now().Sub(before) < time.Hour {
		t.Error("started at once")
	}
	s := &served{phone: p, client: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial() }, DisableKeepAlives: true,
	}}}
	session := s.session()
	var f problem
	if status, _ := s.call("GET", session+"/source", nil, &f); status != 500 || !strings.Contains(f.Message, "UiAutomation not connected") {
		t.Errorf("%d %+v", status, f)
	}
	p.ok("am force-stop io.appium.uiautomator2.server")
	if _, ok := p.Port(uia2.Port); ok {
		t.Error("still listens")
	}
}

func TestInstrumentationThatIsNotThere(t *testing.T) {
	p, _ := realPhone(t, 14)
	out, errOut, status := p.sh(startServer)
	if !strings.Contains(out, "Unable to find instrumentation info for: ComponentInfo{"+serverTests) || !strings.Contains(errOut, "INSTRUMENTATION_FAILED") || status != 1 {
		t.Errorf("%q %q %d", out, errOut, status)
	}
	_, tests := apktest.Server()
	p.stream("-t", apktest.Build(tests))
	if out, _, _ := p.sh(startServer); !strings.Contains(out, "Unable to find instrumentation target package: io.appium.uiautomator2.server\n") {
		t.Errorf("%q", out)
	}
	if _, ok := p.Port(uia2.Port); ok {
		t.Error("somebody listens")
	}
}

func TestServerTakesSeveralConnections(t *testing.T) {
	s := startedServer(t, 14)
	session := s.session()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				resp, err := s.client.Get("http://phone" + session + "/source")
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
}
