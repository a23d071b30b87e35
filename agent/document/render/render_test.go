package render_test

import (
	"bytes"
	"fmt"
	"image"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/font/gofont/goregular"

	"phonerack/agent/document"
	"phonerack/agent/document/documenttest"
	"phonerack/agent/document/render"
	"phonerack/sync/wire"
)

// TestMain makes the test binary the child, as rackd is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		var err error
		switch os.Args[1] {
		case "render-document":
			err = render.Main()
		case "probe":
			err = probe()
		default:
			os.Exit(m.Run())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reader reads with the test binary as the child.
func reader(t testing.TB) *document.Reader {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &document.Reader{Program: []string{program, "render-document"}, Logger: slog.New(slog.DiscardHandler)}
}

// everything asks for all that there is.
var everything = document.Request{Text: true, Images: true, Links: true, Metadata: true, Contents: true}

func read(t testing.TB, r *document.Reader, text []byte, q document.Request) *document.Document {
	t.Helper()
	d, err := r.Read(t.Context(), document.FromBytes("test", text), q)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// codes are the problems of a page, or of a document.
func codes(problems []document.Problem) string {
	var s []string
	for _, p := range problems {
		s = append(s, string(p.Code))
	}
	return strings.Join(s, " ")
}

// visible tells whether a picture is more than one colour.
func visible(t *testing.T, i *document.Image) bool {
	t.Helper()
	if i == nil {
		t.Fatal("no picture")
	}
	img, format, err := image.Decode(bytes.NewReader(i.Data))
	if err != nil || format != i.Format || img.Bounds().Dx() != i.Width || img.Bounds().Dy() != i.Height {
		t.Fatalf("%s of %dx%d: %v, %v", i.Format, i.Width, i.Height, img.Bounds(), err)
	}
	first, _, _, _ := img.At(0, 0).RGBA()
	for y := range i.Height {
		for x := range i.Width {
			if c, _, _, _ := img.At(x, y).RGBA(); max(c, first)-min(c, first) > 0x4000 {
				return true
			}
		}
	}
	return false
}

func TestEveryKindIsRead(t *testing.T) {
	svg := string(documenttest.SVG("Hello SVG"))
	for name, c := range map[string]struct {
		text  []byte
		kind  document.Kind
		words string // "" for pictures
	}{
		"pdf":                     {documenttest.Letter([]string{"Hello PDF"}), document.PDF, "Hello PDF"},
		"pdf behind junk":         {append([]byte("HTTP/1.1 200 OK\r\n\r\n"), documenttest.Letter([]string{"Hello PDF"})...), document.PDF, "Hello PDF"},
		"epub":                    {documenttest.EPUB("Book", []string{"<p>Hello EPUB</p>"}), document.EPUB, "Hello EPUB"},
		"xps":                     {documenttest.XPS("Hello XPS", goregular.TTF), document.XPS, "Hello XPS"},
		"svg":                     {[]byte(svg), document.SVG, "Hello SVG"},
		"svg with a prolog":       {[]byte("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- > -->\n<!DOCTYPE svg>\n" + svg), document.SVG, "Hello SVG"},
		"comic book":              {documenttest.Zip(documenttest.File{Name: "2.png", Text: string(documenttest.PNG(90, 60))}, documenttest.File{Name: "1.jpg", Text: string(documenttest.JPEG(60, 90))}), document.CBZ, ""},
		"png":                     {documenttest.PNG(120, 80), document.PNG, ""},
		"jpeg":                    {documenttest.JPEG(120, 80), document.JPEG, ""},
		"png of a single pixel":   {documenttest.PNG(1, 1), document.PNG, ""},
		"pdf of packed objects":   {packed("Hello packed"), document.PDF, "Hello packed"},
		"pdf without a text page": {documenttest.Letter(nil), document.PDF, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := read(t, reader(t), c.text, everything)
			if d.Kind != c.kind || d.Count < 1 || len(d.Pages) != d.Count || len(d.Problems) > 0 {
				t.Fatalf("%+v", d)
			}
			p := d.Pages[0]
			if name == "comic book" && (d.Count != 2 || p.Image.Width > p.Image.Height) { // 1.jpg comes before 2.png
				t.Errorf("%d pages, the first is %dx%d", d.Count, p.Image.Width, p.Image.Height)
			}
			if got := strings.TrimSpace(p.Text); got != c.words || len(p.Problems) > 0 {
				t.Errorf("text %q, problems %v", got, p.Problems)
			}
			if seen := visible(t, p.Image); seen != (c.words != "" || min(p.Image.Width, p.Image.Height) > 10 && c.kind != document.PDF) {
				t.Errorf("visible: %v", seen)
			}
		})
	}
}

func packed(words string) []byte {
	p := documenttest.PDF{Pack: true}
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	page := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 24 Tf 20 100 Td ("+words+") Tj ET")
	return p.Bytes(p.Tree(tree, page))
}

func TestWhatIsNoDocumentIsNamed(t *testing.T) {
	docx := documenttest.Zip(documenttest.File{Name: "[Content_Types].xml", Text: "<Types/>"}, documenttest.File{Name: "word/document.xml", Text: "<w/>"})
	apk := documenttest.Zip(documenttest.File{Name: "AndroidManifest.xml", Text: "x"}, documenttest.File{Name: "res/icon.png", Text: "x"})
	for name, c := range map[string]struct {
		text []byte
		code wire.Code
		part string // of the sentence
	}{
		"text":           {[]byte("To be, or not to be.\n"), wire.DocumentUnsupported, "it is plain text"},
		"web page":       {[]byte("<!doctype HTML><html><body>x</body></html>"), wire.DocumentUnsupported, "it is a web page"},
		"word":           {docx, wire.DocumentUnsupported, "it is a Word document"},
		"app":            {apk, wire.DocumentUnsupported, "it is an Android app"},
		"zip":            {documenttest.Zip(documenttest.File{Name: "a.txt", Text: "a"}), wire.DocumentUnsupported, "it is a zip archive without pictures"},
		"webp":           {[]byte("RIFF\x00\x00\x00\x00WEBPVP8 xxxxxxxxxxxxxxxxxxxxxxx"), wire.DocumentUnsupported, "it is a WebP picture"},
		"noise":          {bytes.Repeat([]byte{0, 1, 0xfe, 0xff}, 400), wire.DocumentUnsupported, "it is no known kind of document"},
		"empty":          {nil, wire.DocumentUnreadable, "it is empty"},
		"pdf head only":  {[]byte("%PDF-1.7\n"), wire.DocumentUnreadable, "it is damaged, or not the pdf that it begins as"},
		"epub cut off":   {documenttest.EPUB("Book", []string{"<p>Hello</p>"})[:400], wire.DocumentUnreadable, "zip archive is damaged or cut off"},
		"png head only":  {documenttest.PNG(50, 50)[:8], wire.DocumentUnreadable, "it is damaged"},
		"comic of texts": {documenttest.Zip(documenttest.File{Name: "mimetype", Text: "application/vnd.oasis.opendocument.text"}), wire.DocumentUnsupported, "an OpenDocument file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := reader(t).Read(t.Context(), document.FromBytes("report.pdf", c.text), everything)
			if d != nil || !wire.Is(err, c.code) || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), "report.pdf") {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
}

func TestOnlyWhatIsAskedForIsRead(t *testing.T) {
	text := documenttest.Letter([]string{"one"}, []string{"two"}, []string{"three"}, []string{"four"})
	d := read(t, reader(t), text, document.Request{First: 2, Last: 3, Text: true})
	if d.Count != 4 || len(d.Pages) != 2 || d.Pages[0].Number != 2 || d.Pages[0].Text != "two\n" || d.Pages[1].Text != "three\n" {
		t.Errorf("%+v", d)
	}
	if p := d.Pages[0]; p.Image != nil || p.Links != nil || d.Metadata != nil || p.Width != 612 || p.Height != 792 {
		t.Errorf("%+v", p)
	}
	if d := read(t, reader(t), text, document.Request{First: 4, Last: 9}); len(d.Pages) != 1 || d.Pages[0].Text != "" {
		t.Errorf("%+v", d)
	}
	_, err := reader(t).Read(t.Context(), document.FromBytes("x", text), document.Request{First: 5, Text: true})
	if !wire.Is(err, wire.BadRequest) || !strings.Contains(err.Error(), "only 4 pages") {
		t.Error(err)
	}
}

func TestMetadataContentsAndLinks(t *testing.T) {
	var p documenttest.PDF
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	one := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 24 Tf 20 100 Td (One) Tj ET")
	web := p.Add("<</Type/Annot/Subtype/Link/Rect[0 0 100 100]/A<</S/URI/URI(https://example.org/a?b=c)>>>>")
	two := p.Add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 300 200]/Annots[%d 0 R]>>", tree, web)
	p.Tree(tree, one, two)
	outlines := p.Add("")
	first := p.Add("<</Title(First)/Parent %d 0 R/Dest[%d 0 R/Fit]/Next %d 0 R>>", outlines, one, outlines+2)
	second := p.Add("<</Title<FEFF7B2C4E8C>/Parent %d 0 R/Dest[%d 0 R/Fit]>>", outlines, two)
	p.Set(outlines, "<</Type/Outlines/First %d 0 R/Last %d 0 R/Count 2>>", first, second)
	info := p.Add("<</Title(A title)/Author<FEFF5F204E09>/CreationDate(D:20260301100000Z)>>")
	p.Trailer = fmt.Sprintf("/Info %d 0 R", info)
	root := p.Add("<</Type/Catalog/Pages %d 0 R/Outlines %d 0 R>>", tree, outlines)
	d := read(t, reader(t), p.Bytes(root), everything)
	if want := []document.Field{{Name: "title", Value: "A title"}, {Name: "author", Value: "张三"}, {Name: "created", Value: "D:20260301100000Z"}}; !slices.Equal(d.Metadata, want) {
		t.Errorf("metadata %+v", d.Metadata)
	}
	if want := []document.Entry{{Level: 1, Title: "First", Page: 1}, {Level: 1, Title: "第二", Page: 2}}; !slices.Equal(d.Contents, want) {
		t.Errorf("contents %+v", d.Contents)
	}
	if !slices.Equal(d.Pages[1].Links, []string{"https://example.org/a?b=c"}) || d.Pages[0].Links != nil {
		t.Errorf("links %q", d.Pages[1].Links)
	}
	book := read(t, reader(t), documenttest.EPUB("Ein Buch", []string{"<p>a</p>", `<p><a href="https://example.org/">b</a></p>`}), everything)
	if len(book.Contents) != 2 || book.Contents[1].Title != "Chapter 2" || book.Contents[1].Page != 0 || !strings.Contains(book.Contents[1].URI, "chapter2") {
		t.Errorf("contents %+v", book.Contents)
	}
	if len(book.Metadata) != 1 || book.Metadata[0].Value != "Ein Buch" || !slices.Equal(book.Pages[1].Links, []string{"https://example.org/"}) {
		t.Errorf("%+v", book)
	}
}

func TestPasswords(t *testing.T) {
	p := documenttest.PDF{UserPassword: "gast", OwnerPassword: "chef"}
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	page := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 24 Tf 20 100 Td (Secret) Tj ET")
	text := p.Bytes(p.Tree(tree, page))
	if bytes.Contains(text, []byte("Secret")) {
		t.Fatal("the fixture is not encrypted")
	}
	for password, part := range map[string]string{
		"": "needs a password", "falsch": "has another password", "gast": "", "chef": "",
		strings.Repeat("x", document.MaxPassword): "has another password",
	} {
		q := everything
		q.Password = password
		d, err := reader(t).Read(t.Context(), document.FromBytes("letter.pdf", text), q)
		switch {
		case part != "" && (!wire.Is(err, wire.DocumentEncrypted) || !strings.Contains(err.Error(), part)):
			t.Errorf("%.10q: %v", password, err)
		case part == "" && (err != nil || d.Pages[0].Text != "Secret\n" || !visible(t, d.Pages[0].Image)):
			t.Errorf("%q: %+v, %v", password, d, err)
		}
	}
	plain := everything
	plain.Password = "not needed"
	if d := read(t, reader(t), documenttest.Letter([]string{"open"}), plain); d.Pages[0].Text != "open\n" {
		t.Errorf("%+v", d)
	}
}

func TestPicturesStayWithinTheirBounds(t *testing.T) {
	for _, size := range [][2]float64{{300, 200}, {612.5, 792.9}, {0.4, 0.4}, {14400, 14400}, {200000, 200000}, {5000, 3}, {3, 5000}} {
		var p documenttest.PDF
		tree := p.Add("")
		page := p.Page(tree, size[0], size[1], "", fmt.Sprintf("0 0 %g %g re f", size[0]/2, size[1]/2))
		text := p.Bytes(p.Tree(tree, page))
		for _, png := range []bool{false, true} {
			q := document.Request{Images: true, MaxWidth: 64, MaxHeight: 100, PNG: png}
			d := read(t, reader(t), text, q)
			i := d.Pages[0].Image
			if size[0]/size[1] > 64 || size[1]/size[0] > 100 {
				if i != nil || codes(d.Pages[0].Problems) != "no_picture" {
					t.Errorf("%v: %+v", size, d.Pages[0])
				}
				continue
			}
			if i == nil || i.Width > 64 || i.Height > 100 || !visible(t, i) && size[0] > 1 {
				t.Errorf("%v: %+v", size, d.Pages[0])
			}
		}
	}
	q := document.Request{Images: true, Text: true, ImageBytes: 12000}
	d := read(t, reader(t), documenttest.Letter([]string{"one"}, []string{"two"}), q)
	if len(d.Pages) != 2 || d.Pages[0].Image == nil || d.Pages[1].Image != nil || codes(d.Pages[1].Problems) != "no_picture" || d.Pages[1].Text != "two\n" {
		t.Errorf("%+v", d)
	}
}

func TestLongTextIsCutAndSaysSo(t *testing.T) {
	r := reader(t)
	r.Limits.TextBytes = 10
	d := read(t, r, documenttest.Letter([]string{"0123456789abcdef"}), document.Request{Text: true})
	if p := d.Pages[0]; p.Text != "0123456789" || codes(p.Problems) != "text_cut" || p.Problems[0].Detail != "10 bytes of 17" {
		t.Errorf("%+v", p)
	}
}

// probe tries what a process in the child's confinement must not be able to do, and what it has to.
func probe() error {
	if err := render.Confine(probeLimits); err != nil {
		return err
	}
	for name, try := range probes {
		if err := try(); err != nil {
			fmt.Println(name, "fails")
		} else {
			fmt.Println(name, "works")
		}
	}
	return nil
}

func TestConfinementHolds(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "probe")
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name := range probes {
		want := name + " fails"
		if strings.HasPrefix(name, "may ") {
			want = name + " works"
		}
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("not %q:\n%s", want, out)
		}
	}
}
