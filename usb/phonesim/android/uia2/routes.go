package uia2

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"time"
)

// noSession is the session of answers that need none.
const noSession = "None"

// Version is the release that is played.
const (
	Version     = "10.6.6"
	VersionCode = 278
)

// envelope is the form of every answer; the order of its fields is the server's.
type envelope struct {
	Value     any     `json:"value"`
	SessionID *string `json:"sessionId"`
}

// failure is the value of an answer that is an error.
type failure struct {
	Error      string `json:"error"`
	Message    string `json:"message"`
	Stacktrace string `json:"stacktrace"`

	status int
	class  string // of the exception
}

func fail(status int, kind, class, format string, a ...any) *failure {
	message := fmt.Sprintf(format, a...)
	return &failure{
		Error: kind, Message: message, status: status, class: class,
		Stacktrace: class + ": " + message + "\n\tat io.appium.uiautomator2.handler.request.SafeRequestHandler.handle(SafeRequestHandler.java:59)\n" +
			"\tat io.appium.uiautomator2.server.AppiumServlet.handleRequest(AppiumServlet.java:262)\n",
	}
}

const exceptions = "io.appium.uiautomator2.common.exceptions."

func invalid(format string, a ...any) *failure {
	return fail(http.StatusBadRequest, "invalid argument", exceptions+"InvalidArgumentException", format, a...)
}

func encode(status int, session *string, value any) answer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(envelope{value, session}); err != nil {
		return answer{status: http.StatusInternalServerError, body: []byte("{}")}
	}
	return answer{status: status, body: bytes.TrimRight(b.Bytes(), "\n")}
}

// route is a request that is understood. A path has "*" for the session.
type route struct {
	method, path string
	free         bool // needs no session
	run          func(s *Server, ctx context.Context, body []byte) (any, *failure)
}

var routes = []route{
	{http.MethodGet, "status", true, (*Server).status},
	{http.MethodGet, "sessions", true, (*Server).list},
	{http.MethodPost, "session", true, (*Server).create},
	{http.MethodGet, "session/*", false, (*Server).details},
	{http.MethodDelete, "session/*", false, func(*Server, context.Context, []byte) (any, *failure) { return nil, nil }},
	{http.MethodGet, "session/*/source", false, (*Server).source},
	{http.MethodGet, "session/*/screenshot", false, (*Server).screenshot},
	{http.MethodGet, "session/*/appium/settings", false, (*Server).getSettings},
	{http.MethodPost, "session/*/appium/settings", false, (*Server).update},
	{http.MethodPost, "session/*/appium/reset_ax_cache", false, (*Server).resetCache},
	{http.MethodPost, "session/*/appium/device/set_clipboard", false, (*Server).setClipboard},
	{http.MethodPost, "session/*/appium/device/get_clipboard", false, (*Server).getClipboard},
}

// match finds the session in a path that is a route's.
func (r *route) match(path string) (session string, ok bool) {
	want, got := strings.Split(r.path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return "", false
	}
	for i := range want {
		if want[i] == "*" {
			session = got[i]
		} else if want[i] != got[i] {
			return "", false
		}
	}
	return session, true
}

func (s *Server) answer(ctx context.Context, req *request) answer {
	path := strings.TrimPrefix(strings.TrimPrefix(req.path, "/wd/hub"), "/")
	for i := range routes {
		r := &routes[i]
		session, ok := r.match(path)
		if !ok || r.method != req.method {
			continue
		}
		shown := &session
		if r.free {
			none := noSession
			shown = &none
		} else if !s.known(session) {
			return s.refuse(shown, fail(http.StatusNotFound, "invalid session id", exceptions+"NoSuchDriverException",
				"The session identified by %s is not known", session))
		}
		value, failed := r.run(s, ctx, req.body)
		if failed != nil {
			return s.refuse(shown, failed)
		}
		if created, ok := value.(sessionValue); ok {
			shown = &created.SessionID
		}
		a := encode(http.StatusOK, shown, value)
		a.ends = r.method == http.MethodDelete
		return a
	}
	return s.refuse(nil, fail(http.StatusNotFound, "unknown command", exceptions+"UnknownCommandException",
		"The requested resource could not be found, or a request was received using an HTTP method that is not supported by the mapped resource"))
}

func (s *Server) refuse(session *string, f *failure) answer { return encode(f.status, session, f) }

func (s *Server) known(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session != "" && session == s.session
}

func (s *Server) status(context.Context, []byte) (any, *failure) {
	type build struct {
		Version     string `json:"version"`
		VersionCode int    `json:"versionCode"`
	}
	return struct {
		Ready   bool   `json:"ready"`
		Message string `json:"message"`
		Build   build  `json:"build"`
	}{true, "UiAutomator2 Server is ready to accept commands", build{Version, VersionCode}}, nil
}

func (s *Server) list(context.Context, []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := []map[string]any{}
	if s.session != "" {
		sessions = append(sessions, map[string]any{"id": s.session, "capabilities": map[string]any{}})
	}
	return sessions, nil
}

// sessionValue is what a new session is answered with.
type sessionValue struct {
	SessionID    string          `json:"sessionId"`
	Capabilities json.RawMessage `json:"capabilities"`
}

func (s *Server) create(_ context.Context, body []byte) (any, *failure) {
	refused := func(cause string) *failure {
		return fail(http.StatusInternalServerError, "session not created", exceptions+"SessionNotCreatedException", "%s", cause)
	}
	var in struct {
		Capabilities *struct {
			AlwaysMatch map[string]any   `json:"alwaysMatch"`
			FirstMatch  []map[string]any `json:"firstMatch"`
		} `json:"capabilities"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refused("com.google.gson.JsonSyntaxException: " + err.Error())
	}
	if in.Capabilities == nil {
		return nil, refused(exceptions + "InvalidArgumentException: 'capabilities' are mandatory for session creation")
	}
	var whole struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, refused("com.google.gson.JsonSyntaxException: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	s.session = fmt.Sprintf("%08x-7a3c-4c1e-9b5d-%012x", 0x5e551000+s.sessions, 0xa11ce+s.sessions)
	s.settings = defaultSettings()
	s.last = ""
	for name, v := range in.Capabilities.AlwaysMatch {
		name = strings.TrimPrefix(name, "appium:")
		if _, known := s.settings[name]; known {
			s.settings[name] = v
		}
	}
	return sessionValue{s.session, whole.Capabilities}, nil
}

func (s *Server) details(context.Context, []byte) (any, *failure) {
	d := s.phone.Display()
	return map[string]any{
		"deviceScreenSize": fmt.Sprintf("%dx%d", d.Width, d.Height), "deviceScreenDensity": d.Density, "deviceApiLevel": s.config.API,
		"pixelRatio": float64(d.Density) / 160, "statBarHeight": d.StatusBarBottom,
	}, nil
}

// defaultSettings are some of those that there are: their type is that of the value.
func defaultSettings() map[string]any {
	return map[string]any{
		"actionAcknowledgmentTimeout": 3000.0, "allowInvisibleElements": false, "alwaysTraversableViewClasses": "", "compressed": false,
		"deferAccessibilityCacheReset": false, "elementResponseAttributes": "name,text",
		"enableMultiWindows": false, "enableNotificationListener": true, "enableTopmostWindowFromActivePackage": false, "ignoreUnimportantViews": false,
		"keyInjectionDelay": 0.0, "limitXPathContextScope": true, "normalizeTagNames": false, "scrollAcknowledgmentTimeout": 200.0,
		"shouldUseCompactResponses": true, "simpleBoundsCalculation": false, "snapshotMaxDepth": 70.0, "trackScrollEvents": true,
		"waitForIdleTimeout": 10000.0, "waitForSelectorTimeout": 10000.0, "wakeLockTimeout": 86400000.0,
	}
}

func (s *Server) getSettings(context.Context, []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]any, len(s.settings))
	for k, v := range s.settings {
		out[k] = v
	}
	return out, nil
}

// update changes settings; one that is not known is passed over.
func (s *Server) update(_ context.Context, body []byte) (any, *failure) {
	var in struct {
		Settings map[string]any `json:"settings"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Settings == nil {
		return nil, invalid("com.google.gson.JsonSyntaxException: settings are required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, v := range in.Settings {
		old, known := s.settings[name]
		if !known {
			continue
		}
		if fmt.Sprintf("%T", v) != fmt.Sprintf("%T", old) {
			return nil, invalid("Invalid setting value type. Got: %T. Expected: %T.", v, old)
		}
		s.settings[name] = v
	}
	return nil, nil
}

func (s *Server) setting(name string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings[name]
}

func (s *Server) resetCache(ctx context.Context, _ []byte) (any, *failure) {
	return nil, s.waitIdle(ctx)
}

// waitIdle waits until the screen is at rest, no longer than the setting says; a restless screen is no failure.
func (s *Server) waitIdle(ctx context.Context) *failure {
	ms, _ := s.setting("waitForIdleTimeout").(float64)
	limit := time.Duration(min(ms, 1e7)) * time.Millisecond
	for waited := time.Duration(0); waited < limit && !s.phone.Idle(); waited += pollEvery {
		if err := s.phone.Wait(ctx, pollEvery); err != nil {
			return fail(http.StatusInternalServerError, "unknown error", "java.lang.InterruptedException", "interrupted")
		}
	}
	return nil
}

// automation is what a dead or broken automation answers with.
func (s *Server) automation() *failure {
	kind := s.phone.Faults().Error
	if s.config.Detached {
		kind = NotConnected
	}
	switch kind {
	case NotConnected:
		return fail(http.StatusInternalServerError, "unknown error", "java.lang.IllegalStateException",
			"java.lang.IllegalStateException: UiAutomation not connected, UiAutomation@5bde0ab[id=-1, displayId=0, flags=0]")
	case StaleObject:
		return fail(http.StatusNotFound, "stale element reference", exceptions+"StaleElementReferenceException",
			"androidx.test.uiautomator.StaleObjectException")
	case DeadObject:
		return fail(http.StatusInternalServerError, "unknown error", "java.lang.RuntimeException",
			"java.lang.RuntimeException: android.os.DeadObjectException")
	}
	return nil
}

func (s *Server) screenshot(context.Context, []byte) (any, *failure) {
	if f := s.automation(); f != nil {
		return nil, f
	}
	img := s.phone.Screenshot()
	if img == nil {
		return nil, fail(http.StatusInternalServerError, "unable to capture screen", exceptions+"TakeScreenshotException",
			"Failed to capture a screenshot. Does the current view have 'secure' flag set?")
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, fail(http.StatusInternalServerError, "unknown error", "java.io.IOException", "%v", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// clip is the body of both clipboard requests.
type clip struct {
	Content     *string `json:"content"`
	ContentType string  `json:"contentType"`
	Label       string  `json:"label"`
}

func readClip(body []byte) (c clip, f *failure) {
	if len(body) > 0 {
		if err := json.Unmarshal(body, &c); err != nil {
			return c, invalid("com.google.gson.JsonSyntaxException: %v", err)
		}
	}
	if c.ContentType != "" && !strings.EqualFold(c.ContentType, "plaintext") {
		return c, invalid("Only '[PLAINTEXT]' content types are supported. '%s' is given instead", c.ContentType)
	}
	return c, nil
}

func (s *Server) setClipboard(_ context.Context, body []byte) (any, *failure) {
	c, f := readClip(body)
	if f != nil {
		return nil, f
	}
	if c.Content == nil {
		return nil, invalid("The value of 'content' is required")
	}
	text, err := base64.StdEncoding.DecodeString(*c.Content)
	if err != nil {
		return nil, invalid("java.lang.IllegalArgumentException: bad base-64")
	}
	if err := s.phone.SetClipboard(string(text)); err != nil {
		return nil, fail(http.StatusInternalServerError, "unknown error", "java.lang.RuntimeException", "%v", err)
	}
	return nil, nil
}

// getClipboard gives nothing from Android 10 on: the server has not the focus.
func (s *Server) getClipboard(_ context.Context, body []byte) (any, *failure) {
	if _, f := readClip(body); f != nil {
		return nil, f
	}
	const lastOpen = 28
	if s.config.API > lastOpen {
		return "", nil
	}
	return base64.StdEncoding.EncodeToString([]byte(s.phone.Clipboard())), nil
}
