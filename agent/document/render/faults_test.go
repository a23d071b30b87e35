package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	japanese "eliasnaur.com/font/noto/sans/jp/regular"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/sys/unix"

	"phonerack/agent/document"
	"phonerack/agent/document/documenttest"
	"phonerack/agent/document/render"
	"phonerack/sync/wire"
)

// pageTreeCycle is a page tree that is its own grandchild.
func pageTreeCycle() []byte {
	var p documenttest.PDF
	tree := p.Add("")
	p.Add("<</Type/Pages/Count 5/Kids[%d 0 R]>>", tree)
	p.Set(tree, "<</Type/Pages/Count 5/Kids[%d 0 R]>>", tree+1)
	return p.Bytes(p.Add("<</Type/Catalog/Pages %d 0 R>>", tree))
}

// manyPages claims to have two thousand million pages.
func manyPages() []byte {
	var p documenttest.PDF
	tree := p.Add("")
	page := p.Page(tree, 300, 200, "", "")
	p.Set(tree, "<</Type/Pages/Count 2000000000/Kids[%d 0 R]>>", page)
	return p.Bytes(p.Add("<</Type/Catalog/Pages %d 0 R>>", tree))
}

// outlineCycle has a table of contents without an end.
func outlineCycle() []byte {
	var p documenttest.PDF
	tree := p.Add("")
	page := p.Page(tree, 300, 200, "", "")
	p.Tree(tree, page)
	outlines := p.Add("")
	item := p.Add("")
	p.Set(outlines, "<</Type/Outlines/First %d 0 R/Last %d 0 R/Count 1>>", item, item)
	p.Set(item, "<</Title(x)/Parent %d 0 R/Next %d 0 R/First %d 0 R>>", outlines, item, item)
	return p.Bytes(p.Add("<</Type/Catalog/Pages %d 0 R/Outlines %d 0 R>>", tree, outlines))
}

// contentBomb is a small file whose first page is harmless and whose second unpacks to 8 MB of strokes, which take far more
// than a few seconds to draw.
var contentBomb = sync.OnceValue(func() []byte {
	var p documenttest.PDF
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	good := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 24 Tf 20 100 Td (Before) Tj ET")
	bomb := p.Page(tree, 300, 200, "", strings.Repeat("0 0 m 300 200 l S 0 200 m 300 0 l S\n", 8_000_000/36))
	return p.Bytes(p.Tree(tree, good, bomb))
})

func TestReport24_DocumentsThatEndTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		part string
	}{
		"page tree cycle": {pageTreeCycle(), "counting its pages made its reader fail"},
		"page count":      {manyPages(), "counting its pages made its reader fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := reader(t).Read(t.Context(), document.FromBytes("bad.pdf", c.text), everything)
			if d != nil || !wire.Is(err, wire.DocumentCrashed) || !strings.Contains(err.Error(), c.part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	t.Run("outline cycle costs the contents only", func(t *testing.T) {
		d := read(t, reader(t), outlineCycle(), everything)
		if len(d.Pages) != 1 || d.Pages[0].Image == nil || codes(d.Problems) != "info_missing" {
			t.Errorf("%+v", d)
		}
	})
	t.Run("giant page", func(t *testing.T) {
		for _, side := range []float64{14400, 200000} {
			var p documenttest.PDF
			font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
			tree := p.Add("")
			page := p.Page(tree, side, side, fmt.Sprintf("/Font<</F %d 0 R>>", font), fmt.Sprintf("BT /F %g Tf 0 0 Td (Huge) Tj ET", side/3))
			d := read(t, reader(t), p.Bytes(p.Tree(tree, page)), everything)
			if g := d.Pages[0]; g.Width != side || g.Text != "Huge\n" || !visible(t, g.Image) || g.Image.Width > 720 {
				t.Errorf("%+v", g)
			}
		}
	})
}

func TestPageBombIsEndedAndTheRestIsKept(t *testing.T) {
	r := reader(t)
	r.Limits.Wall = 3 * time.Second
	bomb := contentBomb()
	begun := time.Now()
	d, err := r.Read(t.Context(), document.FromBytes("bomb.pdf", bomb), document.Request{Text: true, Images: true})
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if !wire.Is(err, wire.DocumentTimeout) || !strings.Contains(err.Error(), "page 2 took longer than 3000 ms") {
		t.Error(err)
	}
	if d == nil || d.Pages[0].Text != "Before\n" || !visible(t, d.Pages[0].Image) {
		t.Fatalf("%+v", d)
	}
	if len(d.Pages) == 2 && codes(d.Pages[1].Problems) != "no_picture" {
		t.Errorf("%+v", d.Pages[1])
	}
}

func TestProcessorTimeIsLimited(t *testing.T) {
	r := reader(t)
	r.Limits.CPU = time.Second
	d, err := r.Read(t.Context(), document.FromBytes("bomb.pdf", contentBomb()), document.Request{First: 2, Images: true})
	if !wire.Is(err, wire.DocumentTimeout) || !strings.Contains(err.Error(), "longer than 1000 ms") {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestMemoryIsLimited(t *testing.T) {
	var p documenttest.PDF
	tree := p.Add("")
	page := p.Page(tree, 1000, 1000, "", "0 0 500 500 re f")
	text := p.Bytes(p.Tree(tree, page))
	q := document.Request{Images: true, MaxWidth: document.MaxPixels, MaxHeight: document.MaxPixels}
	if d := read(t, reader(t), text, q); d.Pages[0].Image == nil || d.Pages[0].Image.Width < 2800 {
		t.Fatalf("%+v", d)
	}
	for _, limit := range []int64{20, 60, 100, 140} { // MiB; MuPDF would end the process
		r := reader(t)
		r.Limits.MemoryBytes = limit << 20
		d, err := r.Read(t.Context(), document.FromBytes("x.pdf", text), q)
		if err != nil || codes(d.Pages[0].Problems) != "no_picture" || !strings.Contains(d.Pages[0].Problems[0].Detail, "memory") {
			t.Errorf("%d MiB: %+v, %v", limit, d, err)
		}
	}
}

func TestTextBombIsEnded(t *testing.T) {
	var p documenttest.PDF
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	line := "(" + strings.Repeat("x", 60) + ") '\n"
	page := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 1 Tf 1 TL 0 200 Td\n"+strings.Repeat(line, 50_000)+"ET")
	r := reader(t)
	r.Limits.MemoryBytes = 128 << 20
	d, err := r.Read(t.Context(), document.FromBytes("x.pdf", p.Bytes(p.Tree(tree, page))), document.Request{Text: true})
	switch { // whether it is MuPDF that notices, or the Go runtime
	case err == nil && d.Pages[0].Text == "" && codes(d.Pages[0].Problems) == "page_damaged":
	case wire.Is(err, wire.DocumentTooLarge):
	default:
		t.Errorf("%+v, %v", d, err)
	}
}

func TestReport25_FontsThatAreNotEmbedded(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		want string // the fonts
	}{
		"utf-16":    {documenttest.Foreign("SimSun", "UniGB-UCS2-H", "你好世界"), "SimSun"},
		"identity":  {documenttest.Foreign("ABCDEF+MS#20Mincho", "Identity-H", "こんにちは"), "MS Mincho"},
		"unlabeled": {documenttest.Foreign("HeiseiMin-W3", "UniJIS-UCS2-H", "日本語"), "HeiseiMin-W3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, reader(t), c.text, everything)
			p := d.Pages[0]
			if !strings.HasPrefix(codes(p.Problems), "fonts_missing") || p.Problems[0].Detail != c.want {
				t.Errorf("%+v", p)
			}
			if want := `problem: fonts not embedded, so the text may be wrong and the picture lacks it: "` + c.want + `"`; !strings.Contains(d.Text(4096), want) {
				t.Error(d.Text(4096))
			}
		})
	}
	t.Run("embedded", func(t *testing.T) {
		for words, font := range map[string][]byte{"日本語テスト": japanese.TTF, "Hello Ωμέγα": goregular.TTF} {
			text, err := documenttest.Embedded(font, words)
			if err != nil {
				t.Fatal(err)
			}
			p := read(t, reader(t), text, everything).Pages[0]
			if p.Text != words+"\n" || len(p.Problems) > 0 || !visible(t, p.Image) {
				t.Errorf("%+v", p)
			}
		}
	})
	t.Run("encrypted", func(t *testing.T) { // what MuPDF says is all that there is
		text := bytes.Replace(documenttest.Foreign("SimSun", "UniGB-UCS2-H", "你好世界"), []byte("%\xe2\xe3"), []byte("%/Encrypt /ObjStm \xe2\xe3"), 1)
		d := read(t, reader(t), text, everything)
		if got := codes(d.Problems); !strings.Contains(got, "fonts_unknown") || !strings.Contains(got, "fonts_missing") {
			t.Errorf("%+v", d)
		}
	})
	t.Run("book", func(t *testing.T) {
		for _, text := range [][]byte{documenttest.EPUB("本", []string{"<p>Hello 你好</p>"}), documenttest.SVG("Hello 你好")} {
			p := read(t, reader(t), text, everything).Pages[0]
			if strings.TrimSpace(p.Text) != "Hello 你好" || codes(p.Problems) != "glyphs_missing" || p.Problems[0].Detail != "你好" {
				t.Errorf("%+v", p)
			}
		}
	})
}

// TestDrawableCharacters holds the table of characters that the linked fonts have against what they draw.
func TestDrawableCharacters(t *testing.T) {
	r := reader(t)
	for _, word := range []string{
		"Hello", "Ωμέγα", "Привет", "→←", "∑√∞", "€£¥", "“–”…•", "ʃəŋ", "™℃№", "½⅓", "ﬁﬂ", "ąłž", // drawn
		"ềỗữ", "שלום", "سلام", "नमस्ते", "สวัสดี", "한글", "かな", "你好", "✓✗", "■●", "😀", "Ａ", "。「", "Հայ", "ἀ", // not
	} {
		// No square beside it, as documenttest.SVG has.
		text := `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><text x="10" y="80" font-size="40">` + word + `</text></svg>`
		p := read(t, r, []byte(text), document.Request{Images: true, MaxWidth: 200, MaxHeight: 100}).Pages[0]
		if drawn := visible(t, p.Image); drawn != (render.Undrawable(word) == "") {
			t.Errorf("%s: drawn %v, undrawable %q", word, drawn, render.Undrawable(word))
		}
	}
}

func TestDocumentsCutOffAnywhere(t *testing.T) {
	r := reader(t)
	for name, text := range map[string][]byte{
		"pdf": documenttest.Letter([]string{"one"}, []string{"two"}), "packed pdf": packed("x"),
		"epub": documenttest.EPUB("x", []string{"<p>x</p>"}), "xps": documenttest.XPS("x", goregular.TTF),
		"comic": documenttest.Zip(documenttest.File{Name: "1.png", Text: string(documenttest.PNG(50, 50))}),
		"svg":   documenttest.SVG("x"), "png": documenttest.PNG(50, 50), "jpeg": documenttest.JPEG(50, 50),
	} {
		for i := 1; i < 8; i++ {
			part := text[:len(text)*i/8]
			d, err := r.Read(t.Context(), document.FromBytes(name, part), everything)
			refusal, refused := errors.AsType[*wire.Refusal](err)
			if err != nil && (!refused || refusal.Code == wire.DocumentTimeout || strings.Contains(err.Error(), "unknown")) {
				t.Errorf("%s cut to %d: %v", name, len(part), err)
			}
			// What is missing is told: of a picture MuPDF draws the rest as if nothing was wrong.
			if name == "pdf" && err == nil && len(d.Problems) == 0 {
				t.Errorf("%s cut to %d: %+v", name, len(part), d)
			}
		}
	}
}

func TestEightDocumentsAtOnce(t *testing.T) {
	r := reader(t)
	text := documenttest.Letter([]string{"one"}, []string{"two"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d, err := r.Read(t.Context(), document.FromBytes("x", text), everything)
			if err != nil || len(d.Pages) != 2 {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	wg.Wait()
}

func TestCancelEndsTheChild(t *testing.T) {
	bomb := contentBomb()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("the task is over"))
	defer cancel()
	begun := time.Now()
	d, err := reader(t).Read(ctx, document.FromBytes("bomb.pdf", bomb), document.Request{First: 2, Images: true})
	if d != nil || err == nil || !strings.Contains(err.Error(), "the task is over") || time.Since(begun) > 5*time.Second {
		t.Errorf("%+v, %v after %v", d, err, time.Since(begun))
	}
}

// letters is a PDF of pages full of text.
func letters(n int) []byte {
	var page []string
	for i := range 45 {
		page = append(page, fmt.Sprintf("%02d the quick brown fox jumps over the lazy dog and reads a manual", i))
	}
	return documenttest.Letter(slices.Repeat([][]string{page}, n)...)
}

func BenchmarkText10Pages(b *testing.B) {
	benchmark(b, letters(10), document.Request{Text: true}, func(d *document.Document) bool {
		return len(d.Pages) == 10 && len(d.Pages[9].Text) > 2000
	})
}

func BenchmarkPageImage720(b *testing.B) {
	benchmark(b, letters(1), document.Request{Images: true}, func(d *document.Document) bool { return d.Pages[0].Image != nil })
}

// benchmark reads a document again and again, each time in a child of its own, and reports the memory of the largest.
func benchmark(b *testing.B, text []byte, q document.Request, good func(*document.Document) bool) {
	r := reader(b)
	b.ReportAllocs()
	for b.Loop() {
		if d := read(b, r, text, q); !good(d) {
			b.Fatalf("%+v", d)
		}
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/1024, "child-MiB")
}

// TestParentNeverLeaks reads good and bad documents many times and counts what this process has.
func TestParentNeverLeaks(t *testing.T) {
	r := reader(t)
	r.Limits.Wall = 500 * time.Millisecond
	documents := [][]byte{
		documenttest.Letter([]string{"x"}), pageTreeCycle(), manyPages(), outlineCycle(), []byte("text"), nil,
		documenttest.PNG(300, 300), documenttest.EPUB("x", []string{"<p>x</p>"}), documenttest.Letter([]string{"x"})[:200],
	}
	round := func(times int) {
		for range times {
			for _, text := range documents {
				_, _ = r.Read(t.Context(), document.FromBytes("x", text), everything)
			}
		}
	}
	round(2)
	before := holdings(t)
	round(6)
	after := holdings(t)
	if after.files > before.files || after.children > 0 || after.bytes > before.bytes+32<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// held is what a process has of the system.
type held struct {
	files, children int
	bytes           int // resident
}

func holdings(t *testing.T) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h := held{files: len(files)}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children") // zombies too
		if err == nil {
			h.children += len(bytes.Fields(b))
		}
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(statm), "%d %d", new(int), &h.bytes); err != nil {
		t.Fatal(err)
	}
	h.bytes *= os.Getpagesize()
	return h
}
