package document

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/document/internal/protocol"
)

// TestMain makes the test binary a child that plays a part: the second argument names it.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "fake-child" {
		fake{os.Stdout}.play(os.Args[2])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fakeReader reads with a child that plays a part.
func fakeReader(t testing.TB, part string) *Reader {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{Program: []string{program, "fake-child", part}, Logger: slog.New(slog.DiscardHandler)}
}

// fake writes answers, true and false.
type fake struct{ out io.Writer }

func (f fake) send(t protocol.Type, v any) { _ = protocol.WriteJSON(f.out, t, v) }

func (f fake) raw(t protocol.Type, payload string) {
	_ = protocol.WriteFrame(f.out, t, []byte(payload))
}

func (f fake) stage(s protocol.Step, page int) {
	f.send(protocol.StageFrame, protocol.Stage{Step: s, Page: page})
}

func (f fake) begin(pages int) {
	f.stage(protocol.Confined, 0)
	f.stage(protocol.Opening, 0)
	f.send(protocol.DocumentFrame, protocol.Document{Kind: "pdf", Pages: pages})
}

// page sends a page, and its picture if one is asked for.
func (f fake) page(q protocol.Request, n int) {
	f.stage(protocol.ReadingPage, n)
	f.send(protocol.PageFrame, protocol.Page{Number: n, Width: 10, Height: 20, Text: fmt.Sprintf("page %d\n", n)})
	if q.Images {
		f.stage(protocol.Drawing, n)
		f.send(protocol.PictureFrame, protocol.Picture{Width: 4, Height: 3})
		f.raw(protocol.ImageFrame, jpegOf(4, 3))
	}
}

func (f fake) end() { f.raw(protocol.EndFrame, "") }

// good is an answer of three pages.
func (f fake) good(q protocol.Request) {
	f.begin(3)
	for n := q.First; n <= min(q.Last, 3); n++ {
		f.page(q, n)
	}
	f.end()
}

func jpegOf(w, h int) string {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h)), nil)
	return b.String()
}

// play does what a part says. What it shall not survive ends with a sleep that no test waits for.
func (f fake) play(part string) {
	request, _ := io.ReadAll(os.Stdin)
	var q protocol.Request
	if err := json.Unmarshal(request, &q); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if act, ok := parts[part]; ok {
		act(f, q)
		return
	}
	f.begin(1)
	liars[part].act(f)
	f.end()
}

const forever = time.Hour

var parts = map[string]func(fake, protocol.Request){
	"good": fake.good,
	"echo": func(f fake, q protocol.Request) { // tells what it has been given
		doc := os.NewFile(protocol.DocumentFD, "document")
		st, _ := doc.Stat()
		b := make([]byte, st.Size())
		_, _ = doc.ReadAt(b, 0)
		dir, _ := os.Getwd()
		f.begin(1)
		f.stage(protocol.ReadingPage, 1)
		f.send(protocol.PageFrame, protocol.Page{Number: 1, Text: fmt.Sprintf("%s|%s|%s|%s", b, q.Password, strings.Join(os.Environ(), ","), dir)})
		f.end()
	},
	"limits": func(f fake, _ protocol.Request) { // tells the limits that the parent has set
		f.begin(1)
		f.stage(protocol.ReadingPage, 1)
		var b []byte
		for range 500 { // until the parent has heard of the first stage
			b, _ = os.ReadFile("/proc/self/limits")
			if addressSpace := regexp.MustCompile(`Max address space +\d`); addressSpace.Match(b) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		f.send(protocol.PageFrame, protocol.Page{Number: 1, Text: string(b)})
		f.end()
	},
	"slow": func(f fake, q protocol.Request) {
		time.Sleep(200 * time.Millisecond)
		f.begin(1)
		f.page(q, 1)
		f.end()
	},
	"hang": func(fake, protocol.Request) { time.Sleep(forever) },
	"hang late": func(f fake, q protocol.Request) {
		f.begin(2)
		f.page(q, 1)
		f.stage(protocol.ReadingPage, 2)
		time.Sleep(forever)
	},
	"hang at end": func(f fake, q protocol.Request) { f.begin(1); f.page(q, 1); f.end(); time.Sleep(forever) },
	"close stdout": func(f fake, _ protocol.Request) {
		f.begin(1)
		_ = os.Stdout.Close()
		time.Sleep(forever)
	},
	"spin": func(f fake, q protocol.Request) { f.begin(2); f.page(q, 1); f.stage(protocol.ReadingPage, 2); spin() },
	"exit": func(fake, protocol.Request) { os.Exit(0) },
	"abort": func(f fake, q protocol.Request) {
		f.begin(2)
		f.page(q, 1)
		f.stage(protocol.ReadingPage, 2)
		fmt.Fprintln(os.Stderr, "some error: broken\n\x1b[2J")
		os.Exit(7)
	},
	"segfault": func(f fake, _ protocol.Request) {
		f.stage(protocol.Counting, 0)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(forever)
	},
	"out of memory": func(f fake, _ protocol.Request) {
		f.stage(protocol.Opening, 0)
		fmt.Fprintln(os.Stderr, "fatal error: runtime: cannot allocate memory")
		os.Exit(2)
	},
	"contents fail": func(f fake, q protocol.Request) {
		f.begin(1)
		f.page(q, 1)
		f.stage(protocol.Contents, 0)
		os.Exit(1)
	},
	"picture fails": func(f fake, _ protocol.Request) {
		f.begin(2)
		f.stage(protocol.ReadingPage, 1)
		f.send(protocol.PageFrame, protocol.Page{Number: 1, Text: "kept"})
		f.stage(protocol.Drawing, 1)
		os.Exit(1)
	},
	"flood": func(f fake, _ protocol.Request) {
		for {
			if _, err := f.out.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	},
	"flood of stages": func(f fake, _ protocol.Request) {
		for {
			if err := protocol.WriteJSON(f.out, protocol.StageFrame, protocol.Stage{Step: protocol.Opening}); err != nil {
				return
			}
		}
	},
	"flood of complaints": func(f fake, _ protocol.Request) {
		f.stage(protocol.Opening, 0)
		for {
			fmt.Fprintln(os.Stderr, strings.Repeat("error: x ", 1000))
		}
	},
	"complain": func(f fake, q protocol.Request) {
		fmt.Fprintln(os.Stderr, "syntax error: cannot find builtin CJK font\nformat error: broken\nformat error: again")
		f.good(q)
	},
	"offspring": func(f fake, q protocol.Request) { // a process that outlives it and holds its pipes
		sleep := exec.Command("/bin/sleep", "3600")
		sleep.Stdout, sleep.Stderr = os.Stdout, os.Stderr
		if err := sleep.Start(); err != nil {
			panic(err)
		}
		f.begin(1)
		f.stage(protocol.ReadingPage, 1)
		f.send(protocol.PageFrame, protocol.Page{Number: 1, Text: fmt.Sprint(sleep.Process.Pid)})
		if q.Password == nil {
			f.end()
		}
		os.Exit(3)
	},
	"unknown refusal": func(f fake, _ protocol.Request) {
		f.send(protocol.RefusalFrame, protocol.Refusal{Cause: "because", Detail: "x\ny"})
	},
	"unreadable": func(f fake, _ protocol.Request) {
		f.send(protocol.RefusalFrame, protocol.Refusal{Cause: protocol.Unreadable, Detail: "it is {name}\n\u202e" + strings.Repeat("z", 200)})
	},
}

func spin() {
	for i := 0; ; i++ {
		_ = i
	}
}

// lie is an answer that breaks a rule, between a true beginning and a true end.
type lie struct {
	ask Request
	act func(fake)
}

func pageFrame(p protocol.Page) func(fake) {
	return func(f fake) { f.send(protocol.PageFrame, p) }
}

func picture(p protocol.Picture, payload string) func(fake) {
	return func(f fake) {
		f.send(protocol.PageFrame, protocol.Page{Number: 1})
		f.send(protocol.PictureFrame, p)
		f.raw(protocol.ImageFrame, payload)
	}
}

func pngOf(w, h int) string {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h)))
	return b.String()
}

var (
	text      = Request{Text: true}
	pictures  = Request{Images: true, MaxWidth: 100, MaxHeight: 100, ImageBytes: 5000}
	meta      = Request{Metadata: true, Contents: true}
	good      = protocol.Page{Number: 1, Width: 1, Height: 1}
	noPicture = protocol.Problem{Code: string(NoPicture)}
)

var liars = map[string]lie{
	"no page":             {text, func(fake) {}},
	"page 0":              {text, pageFrame(protocol.Page{Number: 0})},
	"page 2 of 1":         {text, pageFrame(protocol.Page{Number: 2})},
	"the page twice":      {text, func(f fake) { pageFrame(good)(f); pageFrame(good)(f) }},
	"two documents":       {text, func(f fake) { f.begin(1); pageFrame(good)(f) }},
	"negative size":       {text, pageFrame(protocol.Page{Number: 1, Width: -1})},
	"endless size":        {text, func(f fake) { f.raw(protocol.PageFrame, `{"number":1,"width":1e300,"height":1}`) }},
	"unknown member":      {text, func(f fake) { f.raw(protocol.PageFrame, `{"number":1,"width":1,"height":1,"path":"/etc/passwd"}`) }},
	"two values":          {text, func(f fake) { f.raw(protocol.PageFrame, `{"number":1,"width":1,"height":1}{}`) }},
	"no JSON":             {text, func(f fake) { f.raw(protocol.PageFrame, "page") }},
	"no UTF-8":            {text, func(f fake) { f.raw(protocol.PageFrame, "{\"number\":1,\"text\":\"\xff\xfe\"}") }},
	"unasked text":        {meta, pageFrame(protocol.Page{Number: 1, Text: "x"})},
	"too much text":       {text, pageFrame(protocol.Page{Number: 1, Text: strings.Repeat("x", 256<<10+1)})},
	"unasked links":       {text, pageFrame(protocol.Page{Number: 1, Links: []string{"x"}})},
	"too many links":      {Request{Links: true}, pageFrame(protocol.Page{Number: 1, Links: make([]string, protocol.MaxLinks+1)})},
	"too long a link":     {Request{Links: true}, pageFrame(protocol.Page{Number: 1, Links: []string{strings.Repeat("x", protocol.MaxURI+1)}})},
	"unknown problem":     {text, pageFrame(protocol.Page{Number: 1, Problems: []protocol.Problem{{Code: "x"}}})},
	"long problem":        {text, pageFrame(protocol.Page{Number: 1, Problems: []protocol.Problem{{Code: "text_cut", Detail: strings.Repeat("x", 301)}}})},
	"too many problems":   {text, pageFrame(protocol.Page{Number: 1, Problems: make([]protocol.Problem, 17)})},
	"unasked picture":     {text, picture(protocol.Picture{Width: 4, Height: 3}, jpegOf(4, 3))},
	"no picture":          {pictures, pageFrame(good)},
	"no picture's reason": {pictures, func(f fake) { pageFrame(good)(f); f.send(protocol.PictureFrame, protocol.Picture{}) }},
	"half a picture":      {pictures, picture(protocol.Picture{Width: 4, Problems: []protocol.Problem{noPicture}}, jpegOf(4, 3))},
	"too wide":            {pictures, picture(protocol.Picture{Width: 101, Height: 3}, jpegOf(101, 3))},
	"other size":          {pictures, picture(protocol.Picture{Width: 4, Height: 4}, jpegOf(4, 3))},
	"other format":        {pictures, picture(protocol.Picture{Width: 4, Height: 3}, pngOf(4, 3))},
	"no image":            {pictures, picture(protocol.Picture{Width: 4, Height: 3}, "<html>")},
	"empty image":         {pictures, picture(protocol.Picture{Width: 4, Height: 3}, "")},
	"too many bytes":      {pictures, picture(protocol.Picture{Width: 4, Height: 3}, jpegOf(4, 3)+strings.Repeat("x", 5000))},
	"picture of no page":  {pictures, func(f fake) { f.send(protocol.PictureFrame, protocol.Picture{Width: 4, Height: 3}) }},
	"long frame":          {text, func(f fake) { _, _ = f.out.Write(binary.BigEndian.AppendUint32([]byte{'P'}, 0xffffffff)) }},
	"unknown frame":       {text, func(f fake) { pageFrame(good)(f); f.raw('X', "") }},
	"late refusal":        {text, func(f fake) { f.send(protocol.RefusalFrame, protocol.Refusal{Cause: protocol.Unreadable}) }},
	"unasked metadata": {text, func(f fake) {
		pageFrame(good)(f)
		f.send(protocol.MetadataFrame, protocol.MetadataFields{Fields: []protocol.Field{{Name: "title", Value: "x"}}})
	}},
	"unknown metadata": {meta, func(f fake) {
		pageFrame(good)(f)
		f.send(protocol.MetadataFrame, protocol.MetadataFields{Fields: []protocol.Field{{Name: "titel", Value: "x"}}})
	}},
	"metadata twice": {meta, func(f fake) {
		pageFrame(good)(f)
		f.send(protocol.MetadataFrame, protocol.MetadataFields{})
		f.send(protocol.MetadataFrame, protocol.MetadataFields{})
	}},
	"metadata first": {meta, func(f fake) { f.send(protocol.MetadataFrame, protocol.MetadataFields{}); pageFrame(good)(f) }},
	"contents out of bounds": {meta, func(f fake) {
		pageFrame(good)(f)
		f.send(protocol.ContentsFrame, protocol.ContentsEntries{Entries: []protocol.Entry{{Level: 1, Title: "x", Page: 2}}})
	}},
	"contents too long": {meta, func(f fake) {
		pageFrame(good)(f)
		f.send(protocol.ContentsFrame, protocol.ContentsEntries{Entries: make([]protocol.Entry, protocol.MaxEntries+1)})
	}},
}
