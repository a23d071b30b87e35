package status_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/firmware/status"
	"phonerack/sync/wire"
)

// flow is the other end of a stream, without a network.
type flow struct {
	mu     sync.Mutex
	header http.Header
	code   int
	text   strings.Builder
}

func (f *flow) Header() http.Header { return f.header }

func (f *flow) WriteHeader(code int) { f.mu.Lock(); f.code = code; f.mu.Unlock() }

func (f *flow) Write(p []byte) (int, error) { f.mu.Lock(); defer f.mu.Unlock(); return f.text.Write(p) }

func (f *flow) Flush() {}

func (f *flow) SetWriteDeadline(time.Time) error { return nil }

func (f *flow) SetReadDeadline(time.Time) error { return nil }

// got is what came, and takes it away.
func (f *flow) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text.String()
	f.text.Reset()
	return text
}

// open begins a stream that lasts until ctx ends; done is closed when its handler returns.
func (b *bench) open(ctx context.Context, target, from string) (*flow, chan struct{}) {
	f := &flow{header: http.Header{}}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	r.Host, r.RemoteAddr = "192.168.1.20", from
	if b.cookie != "" {
		r.Header.Set("Cookie", "rack_session="+b.cookie)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.page.ServeHTTP(f, r)
	}()
	return f, done
}

const change = "event: change\ndata:\n\n"

func TestAStreamTellsOfChangesAndAnIdleOneCostsAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		ctx, cancel := context.WithCancel(t.Context())
		f, done := b.open(ctx, "/events", b.from)
		synctest.Wait()
		if got := f.got(); got != "retry: 3000\n"+change {
			t.Errorf("begins with %q", got)
		}
		_, before := b.Asked()
		time.Sleep(10*time.Minute + time.Second)
		if got := f.got(); got != strings.Repeat(":\n\n", 30) {
			t.Errorf("10 idle minutes: %q", got)
		}
		if _, after := b.Asked(); after != before {
			t.Errorf("the rack was asked %d times while nothing changed", after-before)
		}
		// A line that goes off is on the page within 2 s; many changes are a few words.
		nothing := func(*status.Snapshot) {}
		b.Change(nothing)
		time.Sleep(200 * time.Millisecond)
		if got := f.got(); got != change {
			t.Errorf("after a change: %q", got)
		}
		for range 100 {
			b.Change(nothing)
			time.Sleep(30 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if n := strings.Count(f.got(), change); n < 2 || n > 5 {
			t.Errorf("100 changes in 3 s are told as %d", n)
		}
		cancel()
		<-done
	})
}

func TestAStreamIsOpenedAnewAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		_, done := b.open(t.Context(), "/events", b.from)
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("it is still open")
		}
	})
}

func TestTheLogIsLiveForWhoHasThePIN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := signedIn(t)
		b.Say("WARN", "second")
		ctx, cancel := context.WithCancel(t.Context())
		f, done := b.open(ctx, "/events?log=1", b.from)
		synctest.Wait()
		if got := f.got(); !strings.Contains(got, `id: 2`+"\nevent: log\n"+`data: [{"seq":2,`) || strings.Contains(got, "rackd started") {
			t.Errorf("begins with %q", got)
		}
		time.Sleep(2 * time.Second)
		b.Say("INFO", "a\nb "+strings.Repeat("x", 400))
		time.Sleep(2 * time.Second)
		if got := f.got(); strings.Count(got, "\n") > 5 || !strings.Contains(got, `"seq":3`) || len(got) > 600 {
			t.Errorf("a long line of two: %q", got)
		}
		// A flood is told in a few words.
		for range 1000 {
			b.Say("INFO", "flood")
		}
		time.Sleep(3 * time.Second)
		if n := strings.Count(f.got(), "event: log"); n < 1 || n > 4 {
			t.Errorf("1000 lines are told in %d", n)
		}
		b.ask("POST", "/signout", "")
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("the log goes on after signing out")
		}
		cancel()
		<-done
	})
}

// TestTheLogEndsWithASessionThatNobodyUses: the page of the log asks for nothing while it listens.
func TestTheLogEndsWithASessionThatNobodyUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := signedIn(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, done := b.open(ctx, "/events?log=1", b.from)
		time.Sleep(29 * time.Minute)
		synctest.Wait()
		select {
		case <-done:
			t.Error("it ended before its session")
		default:
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("it goes on without a session")
			cancel()
			<-done
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		ctx, cancel := context.WithCancel(t.Context())
		var all []chan struct{}
		try := func(from string) int {
			f, done := b.open(ctx, "/events", from)
			all = append(all, done)
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.code
		}
		refused := 0
		for range 8 {
			if try("10.0.0.1:1") != 0 {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("of 8 streams of one address %d are refused", refused)
		}
		refused = 0
		for n := range 30 {
			if try("10.0.1."+string(rune('1'+n%8))+":1") == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 12 {
			t.Errorf("of 36 streams %d are refused", refused)
		}
		cancel()
		for _, done := range all {
			<-done
		}
		ctx, cancel = context.WithCancel(t.Context())
		if code := try("10.0.0.1:1"); code != 0 {
			t.Errorf("after all have ended: %d", code)
		}
		cancel()
		<-all[len(all)-1]
	})
}

// unread is a stream whose browser reads nothing, and whose buffers are full.
type unread struct {
	*flow
	until time.Time
	gone  <-chan struct{}
}

func (u *unread) SetWriteDeadline(t time.Time) error { u.until = t; return nil }

func (u *unread) Write([]byte) (int, error) {
	var over <-chan time.Time
	if !u.until.IsZero() {
		over = time.After(time.Until(u.until))
	}
	select {
	case <-over:
		return 0, os.ErrDeadlineExceeded
	case <-u.gone:
		return 0, net.ErrClosed
	}
}

// TestAStreamThatNobodyReadsEnds, and its place is free.
func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for range 6 {
			r := httptest.NewRequestWithContext(ctx, "GET", "/events", nil)
			r.Host, r.RemoteAddr = "192.168.1.20", b.from
			all.Go(func() { b.page.ServeHTTP(&unread{flow: &flow{header: http.Header{}}, gone: ctx.Done()}, r) })
		}
		synctest.Wait()
		if f, done := b.open(ctx, "/events", b.from); !ended(done) || f.code != http.StatusTooManyRequests {
			t.Errorf("a seventh beside them: %d", f.code)
		}
		time.Sleep(15 * time.Second)
		if f, done := b.open(ctx, "/events", b.from); ended(done) || f.code != 0 {
			t.Errorf("after 15 s there is no place: %d", f.code)
		}
		cancel()
		all.Wait()
	})
}

// ended tells whether a stream's handler has returned, when nothing more happens.
func ended(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// TestServeEndsWithItsContext, the streams too, on a real network.
func TestServeEndsWithItsContext(t *testing.T) {
	b := newBench()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.page.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + l.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && lines.Text() != "event: change" {
	}
	b.signIn(pin)
	begun, _ := b.Block() // for ever: the act ends with the page
	request, err := http.NewRequest("POST", "http://"+l.Addr().String()+"/act", strings.NewReader("act=identify&slot=3"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Cookie": {"rack_session=" + b.cookie}, "Content-Type": {"application/x-www-form-urlencoded"}}
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
		}
	}()
	<-begun
	start := time.Now()
	cancel()
	defer func() { <-acted }()
	if err := <-ended; err != nil || time.Since(start) > 4*time.Second {
		t.Errorf("ended after %v with %v", time.Since(start), err)
	}
	for lines.Scan() {
	}
	if _, err := client.Get("http://" + l.Addr().String() + "/"); err == nil {
		t.Error("it still answers")
	}
}

func TestBundleHasEverythingButSecrets(t *testing.T) {
	b := signedIn(t)
	b.Say("INFO", "token=abc123 for mqtts://rack:hunter2@broker.example")
	b.Say("INFO", "somebody typed "+pin+" as a name")
	b.Attach("config.toml", []byte("pin = \""+pin+"\"\nbroker = \"mqtts://broker.example\"\n"))
	b.Attach("../../etc/passwd", []byte("x"))
	b.Attach("big.log", bytes.Repeat([]byte(strings.Repeat("x y ", 31)+"end\n"), 1<<15))
	for n := range 5 {
		b.Attach(fmt.Sprintf("kernel%d.log", n), bytes.Repeat([]byte(strings.Repeat("abc ", 31)+"end\n"), 1<<13))
	}
	read := func(target string) map[string]string {
		w := b.ask("GET", target, "")
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/zip" || !strings.Contains(w.Header().Get("Content-Disposition"), "phonerack-door-side.zip") {
			t.Fatalf("%s: %d %v", target, w.Code, w.Header())
		}
		z, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = readAll(t, r)
			if f.Modified.Year() < 1980 {
				t.Errorf("%s has no date that programs take: %v", f.Name, f.Modified)
			}
		}
		return files
	}
	files := read("/support/bundle.zip")
	for _, name := range []string{"snapshot.json", "events.json", "tasks.json", "log.txt", "errors.txt", "files/config.toml", "files/big.log"} {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	attached := 0
	for name, text := range files {
		if strings.HasPrefix(name, "files/") {
			attached += len(text)
		}
		for _, secret := range []string{pin, "hunter2", "abc123"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
		if strings.Contains(name, "..") || strings.HasPrefix(name, "pictures/") || len(text) > 2<<20 {
			t.Errorf("%s, %d bytes, should not be there", name, len(text))
		}
	}
	if attached < 3<<20 || attached > 4<<20+100 { // what stands for a secret may be longer than it
		t.Errorf("%d bytes are attached, at most 4 MiB should be", attached)
	}
	if !strings.Contains(files["files/config.toml"], "broker.example") || !strings.Contains(files["snapshot.json"], "R5CT000003") {
		t.Error("what is no secret is missing")
	}
	for name := range files { // once is enough
		if attached, ok := strings.CutPrefix(name, "files/"); ok {
			b.Attach(attached, nil)
		}
	}
	pictures, _ := b.Asked()
	if pictures != 0 {
		t.Errorf("%d pictures were taken unasked", pictures)
	}
	if files = read("/support/bundle.zip?pictures=1"); len(files["pictures/slot-3.jpg"]) < 100 || len(files["pictures/slot-1.jpg"]) > 0 {
		t.Error("the pictures that were asked for are not those of the phones that are ready")
	}
	b.Refuse(wire.Refuse(wire.PhoneTimeout, map[string]any{"slot": 3}))
	if files = read("/support/bundle.zip?pictures=1"); !strings.Contains(files["errors.txt"], "picture of slot 3: ") {
		t.Errorf("a phone without a picture is not told: %q", files["errors.txt"])
	}
}

// FuzzRequest: whatever comes, the answer is whole, has its policy, and nothing is done without the PIN.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/", "text/html", "rack_session=x", "")
	f.Add("POST", "/signin", "", "rack_lang=zh", "pin=1&name=%zz")
	f.Add("POST", "/act", "application/json", "", "act=quarantine&slot=3&minutes=30")
	f.Add("GET", "/slot/0009", "*/*", "rack_lang", "")
	b := newBench()
	f.Fuzz(func(t *testing.T, method, target, accept, cookie, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || strings.HasPrefix(u.Path, "/events") {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Host, r.RemoteAddr = "192.168.1.20", "10.0.0.1:1"
		r.Header = http.Header{"Accept": {accept}, "Cookie": {cookie}, "Accept-Language": {accept}, "Content-Type": {"application/x-www-form-urlencoded"}}
		w := httptest.NewRecorder()
		b.page.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: no policy", method, target)
		}
		if b.Calls() != "" {
			t.Errorf("%s %s did %s", method, target, b.Calls())
		}
	})
}

// TestSixtySlotsCostLittle: what rendering takes of the processor, on this machine.
func TestSixtySlotsCostLittle(t *testing.T) {
	b := newBench()
	b.ask("GET", "/", "") // reads the templates
	const times = 20
	before := processor(t)
	for range times {
		if w := b.ask("GET", "/", ""); w.Code != 200 {
			t.Fatal(w.Code)
		}
	}
	if each := (processor(t) - before) / times; each > 50*time.Millisecond {
		t.Errorf("a page of 60 slots takes %v of the processor", each)
	}
}

func processor(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkPage60(b *testing.B) {
	for _, target := range []string{"/", "/slot/12", "/map", "/controller"} {
		b.Run(strings.TrimPrefix(strings.ReplaceAll(target, "/", "_"), "_")+"page", func(b *testing.B) {
			bench := newBench()
			for b.Loop() {
				if w := bench.ask("GET", target, ""); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
