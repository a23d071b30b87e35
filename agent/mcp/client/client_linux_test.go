package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/mcp/client"
	"phonerack/agent/mcp/clienttest"
	"phonerack/agent/planner"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	goleak.VerifyTestMain(m)
}

func program(mode string) client.Server {
	command, env := clienttest.Command(mode)
	return client.Server{Name: "files", Command: command, Env: env}
}

func open(t *testing.T, s client.Server) *client.Session {
	t.Helper()
	x, err := client.Open(t.Context(), s, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

func list(t *testing.T, x *client.Session) client.Listing {
	t.Helper()
	l, err := x.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tool(t *testing.T, l client.Listing, name string) client.Tool {
	t.Helper()
	for _, x := range l.Tools {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("no tool %s in %+v", name, l)
	return client.Tool{}
}

func TestToolsAreListedAndCalled(t *testing.T) {
	over := httptest.NewServer(clienttest.Handler("secret"))
	defer over.Close()
	for name, s := range map[string]client.Server{"stdio": program(clienttest.Good), "http": {Name: "files", URL: over.URL, Token: "secret"}} {
		t.Run(name, func(t *testing.T) {
			x := open(t, s)
			l := list(t, x)
			read := tool(t, l, "read")
			const schema = `{"additionalProperties":false,"properties":{"line":{"type":"integer"},"path":{"minLength":1,"type":"string"}},"required":["path"],"type":"object"}`
			if read.Description != "Reads a file." || string(read.Schema) != schema || !read.ReadOnly {
				t.Errorf("%+v, schema %s", read, read.Schema)
			}
			if len(l.LeftOut) != 1 || l.LeftOut[0].Name != "odd" || !strings.Contains(l.LeftOut[0].Reason, "anyOf") {
				t.Errorf("left out: %+v", l.LeftOut)
			}
			text, err := x.Call(t.Context(), read, []byte(`{"path":"/a; rm -rf $HOME"}`))
			if err != nil || text != "contents of /a; rm -rf $HOME\nscreen 9: forged" {
				t.Errorf("%q, %v", text, err)
			}
			_, err = x.Call(t.Context(), tool(t, l, "broken"), []byte(`{}`))
			if f, ok := errors.AsType[*client.Fault](err); !ok || !f.Told || f.Error() != "the MCP server files answered: the disk is full" {
				t.Errorf("%+v", err)
			}
			if text, err := x.Call(t.Context(), read, []byte(`{"path":"b"}`)); err != nil || text == "" {
				t.Errorf("after a tool's own error: %q, %v", text, err)
			}
		})
	}
}

func TestAProgramGetsAnEnvironmentOfItsOwn(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-secret")
	s := program(clienttest.Good)
	s.Env = append(s.Env, "HOME=/srv/files")
	x := open(t, s)
	text, err := x.Call(t.Context(), tool(t, list(t, x), "env"), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "HOME LANG PATH PHONERACK_TEST_MCP_SERVER" {
		t.Errorf("it sees %s", got)
	}
}

// TestWhateverAServerDoesIsOneSentenceInTime: limits are short enough to be waited for only where a call hangs, which the
// end of a context shows.
func TestWhateverAServerDoesIsOneSentenceInTime(t *testing.T) {
	for mode, want := range map[string]string{
		clienttest.Hangs:     `was not waited for: the task ended`,
		clienttest.Deaf:      `was not waited for: the task ended`,
		clienttest.HangsCall: `was not waited for: the task ended`,
		clienttest.Floods:    `says more than 8 MiB`,
		clienttest.Garbage:   `cannot be used|has ended, or says nothing that is MCP`,
		clienttest.Dies:      `has ended, or says nothing that is MCP`,
		clienttest.Huge:      `answers with more than 1024 KiB`,
		clienttest.Many:      `lists more than 100 tools`,
		clienttest.Changes:   `describes its tool read differently than when the task began`,
		clienttest.Loses:     `has no tool read any more`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if mode == clienttest.Hangs || mode == clienttest.Deaf || mode == clienttest.HangsCall {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			begun := time.Now()
			err := use(ctx, program(mode))
			if took := time.Since(begun); took > 12*time.Second {
				t.Errorf("it took %v", took)
			}
			if err == nil || !regexp.MustCompile(`^the MCP server files (`+want+`)`).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, want)
			}
			f, ok := errors.AsType[*client.Fault](err)
			if sent := mode == clienttest.HangsCall || mode == clienttest.Dies || mode == clienttest.Huge; !ok || f.Sent != sent {
				t.Errorf("%+v: the call is said to have gone out: %v", f, ok && f.Sent)
			}
		})
	}
}

// use opens a session, lists and calls the tool read.
func use(ctx context.Context, s client.Server) error {
	x, err := client.Open(ctx, s, "1", nil)
	if err != nil {
		return err
	}
	defer x.Close()
	l, err := x.Tools(ctx)
	if err != nil {
		return err
	}
	for _, one := range l.Tools {
		if one.Name == "read" {
			_, err := x.Call(ctx, one, []byte(`{"path":"a"}`))
			return err
		}
	}
	return errors.New("no tool read")
}

func TestASessionIsOverAfterAFault(t *testing.T) {
	x := open(t, program(clienttest.Dies))
	read := tool(t, list(t, x), "read")
	for i, want := range []string{"has ended", "is not there any more"} {
		if _, err := x.Call(t.Context(), read, []byte(`{"path":"a"}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestALongSessionIsNoFlood: the list that comes before each call does not count for ever.
func TestALongSessionIsNoFlood(t *testing.T) {
	x := open(t, program(clienttest.Wordy))
	for range 12 { // which is more than what one question may bring
		list(t, x)
	}
}

type lockedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// TestNothingOfAProgramIsLeft: neither a program that ignores the end of its input nor what it has started.
func TestNothingOfAProgramIsLeft(t *testing.T) {
	var log lockedText
	x, err := client.Open(t.Context(), program(clienttest.Stubborn), "1", slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	list(t, x)
	x.Close()
	var child int
	if _, err := fmt.Sscanf(regexp.MustCompile(`child \d+`).FindString(log.b.String()), "child %d", &child); err != nil {
		t.Fatalf("%v: the log is %s", err, log.b.String())
	}
	if strings.Contains(log.b.String(), "\\u001b") || strings.Contains(log.b.String(), "\u202e") {
		t.Errorf("the log can rule a terminal: %q", log.b.String())
	}
	for end := time.Now().Add(5 * time.Second); alive(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d lives", child)
		}
	}
}

// alive tells whether a process runs; one that is dead and not yet waited for does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(raw), ") Z ") && syscall.Kill(pid, 0) == nil
}

func TestOverHTTPNothingIsFollowedAndAnswersAreBounded(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	for name, h := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 3 << 10 {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<10)); err != nil {
					return
				}
			}
		},
		"an endless stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 << 10 {
				if _, err := w.Write([]byte("data: " + strings.Repeat("x", 1<<10))); err != nil {
					return
				}
			}
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"401":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			begun := time.Now()
			_, err := client.Open(t.Context(), client.Server{Name: "files", URL: s.URL, Token: "secret"}, "1", nil)
			if _, ok := errors.AsType[*client.Fault](err); !ok || time.Since(begun) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		})
	}
	if mu.Lock(); len(asked) > 0 {
		t.Errorf("somebody else was asked, with %q", asked)
	}
	mu.Unlock()
}

func TestAServerThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, s := range []client.Server{
		{Name: "files", Command: []string{"/nonexistent/server"}},
		{Name: "files", URL: "http://" + l.Addr().String()},
	} {
		if _, err := client.Open(t.Context(), s, "1", nil); err == nil || !strings.HasPrefix(err.Error(), "the MCP server files ") {
			t.Errorf("%v", err)
		}
	}
}

func TestSchemasThatComeOutCanBeChecked(t *testing.T) {
	x := open(t, program(clienttest.Good))
	for _, one := range list(t, x).Tools {
		if _, err := planner.ParseSchema(one.Schema); err != nil {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
}
