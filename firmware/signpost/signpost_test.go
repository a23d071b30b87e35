package signpost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/qrcode"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var sign = Sign{Rack: "rack-1", Slot: 7, Addresses: []string{"http://192.0.2.7:8080/", "http://rack-1.local:8080/"}}

func TestThePageIsSafeAndBounded(t *testing.T) {
	s := Sign{Rack: "<script>", Slot: 7, Addresses: []string{"http://192.0.2.7/?a=<b>&c"}}
	for range 20 {
		s.Addresses = append(s.Addresses, "http://192.0.2.7/"+strings.Repeat("x", maxAddress), "http://10.0.0.1/")
	}
	raw, err := s.HTML()
	html := string(raw)
	if err != nil || strings.Contains(html, "<script") || !strings.Contains(html, "http://192.0.2.7/?a=&lt;b&gt;&amp;c") {
		t.Errorf("%s, %v", html, err)
	}
	if n := strings.Count(html, "<li>"); n != maxAddresses || strings.Contains(html, "xxxx") {
		t.Errorf("%d addresses, or one that is too long", n)
	}
	if !strings.Contains(html, `<path stroke="#000" d="M4 4.5h7`) || len(html) > 20<<10 {
		t.Errorf("%d bytes", len(html))
	}
	s = Sign{Addresses: []string{"http://192.0.2.7:8080/"}, Path: "/P/SECRET"}
	code, err := qrcode.Draw("http://192.0.2.7:8080/P/SECRET")
	if raw, err2 := s.HTML(); err != nil || err2 != nil || !strings.Contains(string(raw), code.Path) || strings.Contains(string(raw), "SECRET") {
		t.Errorf("with a path for the code alone: %s, %v, %v", raw, err, err2)
	}
	raw, err = Sign{Rack: "rack-1"}.HTML()
	if err != nil || !strings.Contains(string(raw), "no network address") || strings.Contains(string(raw), "<svg") {
		t.Errorf("without addresses: %s, %v", raw, err)
	}
}

// nothing is a phone's system that does nothing.
type nothing struct{ phonesim.System }

func (nothing) Property(string) string { return "" }

// stage is a phone that notes what it is told.
type stage struct {
	sim   *phonesim.Phone
	phone Phone
	did   chan string
	fails map[string]error
}

func setUp(t *testing.T) *stage {
	t.Helper()
	sim, err := phonesim.New(phonesim.Config{System: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- sim.ServeStream(context.Background(), far) }()
	conn, err := adb.Connect(t.Context(), adb.NewStreamLink(near), adb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		<-served
		if v := sim.Violations(); len(v) > 0 {
			t.Errorf("the host broke rules: %v", v)
		}
	})
	s := &stage{sim: sim, did: make(chan string, 10), fails: map[string]error{}}
	act := func(what string) error {
		s.did <- what
		return s.fails[what]
	}
	s.phone = Phone{
		Reverse: conn.Reverse,
		Wake:    func(context.Context) error { return act("wake") },
		OpenURL: func(_ context.Context, url, _ string) error { return act(url) },
		Key:     func(_ context.Context, name string) error { return act(name) },
	}
	return s
}

func TestAPhoneShowsTheWayAndIsPutBack(t *testing.T) {
	s := setUp(t)
	taken, err := s.phone.Reverse(t.Context(), firstPort)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Show(ctx, s.phone, sign) }()
	want := fmt.Sprintf("http://127.0.0.1:%d/", firstPort+1)
	if wake, url := <-s.did, <-s.did; wake != "wake" || url != want {
		t.Errorf("the phone was told %q and %q", wake, url)
	}
	for path, status := range map[string]int{"/": 200, "/favicon.ico": 404} {
		get(t, s.sim, path, status)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if key := <-s.did; key != "home" {
		t.Errorf("at the end the phone was told %q", key)
	}
	if _, err := s.sim.DialReverse(t.Context(), firstPort+1); !errors.Is(err, phonesim.ErrNoListener) {
		t.Errorf("the phone still listens: %v", err)
	}
	taken.Close()
}

// get is the browser of the phone.
func get(t *testing.T, sim *phonesim.Phone, path string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := sim.DialReverse(ctx, firstPort+1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status || (status == 200) != strings.Contains(string(body), "http://rack-1.local:8080/") {
		t.Errorf("%s: %d, %.100q, %v", path, r.StatusCode, body, err)
	}
	if status == 200 && !strings.HasPrefix(r.Header.Get("Content-Security-Policy"), "default-src 'none';") {
		t.Errorf("%s: policy %q", path, r.Header.Get("Content-Security-Policy"))
	}
}

func TestAPhoneThatIsLockedIsLeftAlone(t *testing.T) {
	s := setUp(t)
	s.fails["wake"] = errors.New("it asks for a PIN")
	if err := Show(t.Context(), s.phone, sign); !errors.Is(err, ErrNotShown) || !errors.Is(err, s.fails["wake"]) {
		t.Errorf("%v", err)
	}
	if len(s.did) != 1 {
		t.Errorf("%d acts on a locked phone", len(s.did))
	}
	if _, err := s.sim.DialReverse(t.Context(), firstPort); !errors.Is(err, phonesim.ErrNoListener) {
		t.Errorf("the phone still listens: %v", err)
	}
}
