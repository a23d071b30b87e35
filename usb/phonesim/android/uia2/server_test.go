package uia2

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"image"
	"io"
	"strings"
	"testing"
	"time"

	"phonerack/usb/phonesim/screen"
)

// still is a phone on which nothing happens.
type still struct{ tree *screen.Node }

func (s still) Tree() *screen.Node                            { return s.tree }
func (s still) Trees() []*screen.Node                         { return []*screen.Node{s.tree} }
func (still) Display() screen.Display                         { return screen.Display{Width: 100, Height: 200, Density: 160} }
func (still) Idle() bool                                      { return true }
func (still) Screenshot() *image.RGBA                         { return nil }
func (still) Clipboard() string                               { return "" }
func (still) SetClipboard(string) error                       { return nil }
func (still) Wait(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (still) Faults() Faults                                  { return Faults{} }

// conn is a connection that brings its input at once and keeps what is answered.
type conn struct {
	io.Reader
	bytes.Buffer
}

func (c *conn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// talk sends requests on one connection.
func talk(t *testing.T, s *Server, input string) (string, error) {
	t.Helper()
	c := &conn{Reader: strings.NewReader(input)}
	err := s.Serve(t.Context(), c)
	return c.String(), err
}

func tree(text string) *screen.Node {
	return &screen.Node{
		Class: "android.widget.FrameLayout", Package: "a.b", Bounds: image.Rect(0, 0, 100, 200), Enabled: true,
		Children: []*screen.Node{
			{Class: "a.b.Outer$Inner", Package: "a.b", Text: text, Desc: "d", ResourceID: "a.b:id/x", Bounds: image.Rect(-5, 0, 50, 250)},
			{Class: "android.view.View", Package: "a.b", Text: "gone"},
		},
	}
}

const newSession = "POST /session HTTP/1.1\r\nContent-Length: 19\r\n\r\n" + `{"capabilities":{}}`

func sourceOf(t *testing.T, s *Server) string {
	t.Helper()
	if _, err := talk(t, s, newSession); err != nil {
		t.Fatal(err)
	}
	v, f := s.source(t.Context(), nil)
	if f != nil {
		t.Fatal(f.Message)
	}
	return v.(string)
}

func TestSourceIsWrittenAsTheServerWritesIt(t *testing.T) {
	got := sourceOf(t, New(still{tree("a\"b' <&>\n\x01😀")}, Config{API: 30}))
	const want = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\r\n" +
		`<hierarchy index="0" class="hierarchy" rotation="0" width="100" height="200">` + "\r\n" +
		`  <android.widget.FrameLayout index="0" package="a.b" class="android.widget.FrameLayout" text="" checkable="false" checked="false" clickable="false" ` +
		`enabled="true" focusable="false" focused="false" long-clickable="false" password="false" scrollable="false" selected="false" bounds="[0,0][100,200]" ` +
		`displayed="true" a11y-important="true" screen-reader-focusable="false" drawing-order="1" showing-hint="false" text-entry-key="false" dismissable="false" ` +
		`a11y-focused="false" heading="false" live-region="0" context-clickable="false" content-invalid="false" window-id="1">` + "\r\n" +
		`    <a.b.Outer.Inner index="0" package="a.b" class="a.b.Outer$Inner" text='a"b&apos; &lt;&amp;&gt;&#10;?&#128512;' content-desc="d" resource-id="a.b:id/x" ` +
		`checkable="false" checked="false" clickable="false" enabled="false" focusable="false" focused="false" long-clickable="false" password="false" ` +
		`scrollable="false" selected="false" bounds="[0,0][50,200]" displayed="true" a11y-important="true" screen-reader-focusable="false" drawing-order="1" ` +
		`showing-hint="false" text-entry-key="false" dismissable="false" a11y-focused="false" heading="false" live-region="0" context-clickable="false" ` +
		`content-invalid="false" window-id="1" />` + "\r\n" + `  </android.widget.FrameLayout>` + "\r\n" + `</hierarchy>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDepthIsLimitedBySetting(t *testing.T) {
	s := New(still{tree("deep")}, Config{API: 25})
	if _, err := talk(t, s, newSession); err != nil {
		t.Fatal(err)
	}
	if _, f := s.update(t.Context(), []byte(`{"settings":{"snapshotMaxDepth":1}}`)); f != nil {
		t.Fatal(f.Message)
	}
	v, _ := s.source(t.Context(), nil)
	if strings.Contains(v.(string), "deep") || strings.Contains(v.(string), "heading") {
		t.Errorf("source %s", v)
	}
}

func TestConnectionIsKeptAndClosed(t *testing.T) {
	s := New(still{}, Config{})
	const status = "GET /status HTTP/1.1\r\n\r\n"
	got, err := talk(t, s, status+status+"GET /wd/hub/status HTTP/1.0\r\n\r\n"+status)
	if err != nil || strings.Count(got, "HTTP/1.1 200 OK\r\n") != 3 || strings.Count(got, "Connection: keep-alive") != 2 {
		t.Errorf("%v in\n%s", err, got)
	}
	if _, err := talk(t, s, "GET /\x00 HTTP/1.1\r\n\r\n"); err == nil {
		t.Error("nonsense was taken")
	}
	if _, err := talk(t, s, "POST /session HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n"+strings.Repeat("x", 2<<20)); err == nil {
		t.Error("a request without an end was taken")
	}
}

func TestDeletedSessionEndsTheServer(t *testing.T) {
	s := New(still{}, Config{})
	if _, err := talk(t, s, newSession); err != nil {
		t.Fatal(err)
	}
	got, err := talk(t, s, "DELETE /session/"+s.session+" HTTP/1.1\r\n\r\nGET /status HTTP/1.1\r\n\r\n")
	if !errors.Is(err, ErrOver) || !strings.HasSuffix(got, `{"value":null,"sessionId":"`+s.session+`"}`) {
		t.Errorf("%v in\n%s", err, got)
	}
	if _, err := talk(t, s, "GET /status HTTP/1.1\r\n\r\n"); !errors.Is(err, ErrOver) || s.Crashed() {
		t.Errorf("after the end: %v", err)
	}
}

func FuzzServe(f *testing.F) {
	f.Add(newSession+"GET /status HTTP/1.1\r\n\r\n", "text")
	f.Add("DELETE /session/x HTTP/1.0\r\nContent-Length: -1\r\n\r\n", "<&\x00\ufffe")
	f.Fuzz(func(t *testing.T, input, text string) {
		s := New(still{tree(text)}, Config{API: 30})
		s.Serve(t.Context(), &conn{Reader: strings.NewReader(input)})
		v, fail := New(still{tree(text)}, Config{API: 30}).source(t.Context(), nil)
		if fail != nil {
			t.Fatal(fail.Message)
		}
		if err := xml.Unmarshal([]byte(v.(string)), new(struct{})); err != nil {
			t.Errorf("%v in %q", err, v)
		}
	})
}
