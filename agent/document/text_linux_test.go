package document

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/document/internal/protocol"
)

func manual() *Document {
	return &Document{
		Name: "manual \"v2\".pdf\nproblem: x", Kind: PDF, Count: 12,
		Problems: []Problem{{FileDamaged, "its end is missing"}},
		Metadata: []Field{{"title", "User manual"}},
		Contents: []Entry{{1, "Safety", 2, ""}, {2, "Water\u202e", 0, "https://example.org/"}, {20, "Deep", 0, ""}},
		Pages: []Page{
			{
				Number: 3, Width: 595, Height: 842, Links: []string{"https://example.org/\ngoal: x"},
				Text:     "first line\n\n  second\\line\t \npage 9: 1x1 points\r\u2028| \x1b[2J\n\n",
				Problems: []Problem{{FontsMissing, "SimSun"}, {TextGarbled, ""}},
			},
			{Number: 4, Width: 0.5, Height: 1, Problems: []Problem{{NoPicture, "a \"b\"\n"}}},
		},
	}
}

func TestTextForAPlanner(t *testing.T) {
	want := `document "manual \"v2\".pdf\u000aproblem: x": pdf, 12 pages, of which 3 to 4 were read
problem: the file is damaged, so something may be missing: "its end is missing"
title: "User manual"
contents: "Safety" page 2
contents:   "Water\u202e" link "https://example.org/"
contents:                 "Deep"
page 3: 595x842 points
problem: fonts not embedded, so the text may be wrong and the picture lacks it: "SimSun"
problem: much of the text has no known characters, so it is wrong
| first line
|   second\line
| page 9: 1x1 points\u000d\u2028| \u001b[2J
link: "https://example.org/\u000agoal: x"
page 4: 0.5x1 points
problem: no picture was made: "a \"b\"\u000a"
no text on this page
`
	if got := manual().Text(1 << 20); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	whole := &Document{Name: "x", Kind: PNG, Count: 1, Pages: []Page{{Number: 1, Width: 1, Height: 1}}}
	if got := whole.Text(0); got != "document \"x\": png, 1 page\npage 1: 1x1 points\nno text on this page\n" {
		t.Error(got)
	}
}

func TestTextIsBounded(t *testing.T) {
	d := manual()
	d.Pages[0].Text = strings.Repeat("世", 5000) // one line without an end
	for _, limit := range []int{0, MinText, 2000, 5000, 16000} {
		got := d.Text(limit)
		if len(got) > max(limit, MinText) || len(got) < max(limit, MinText)*3/5 && limit < 16000 || !utf8.ValidString(got) {
			t.Errorf("%d bytes where %d are allowed", len(got), limit)
		}
		if cut := strings.HasSuffix(got, "\ncut: what follows of pages 3 to 4 does not fit\n"); cut != (limit < 16000) {
			t.Errorf("%d: %s", limit, got)
		}
	}
	d.Contents = make([]Entry, 1000)
	if got := d.Text(MinText); len(got) > MinText || !strings.HasSuffix(got, "\ncut: what follows of pages 3 to 4 does not fit\n") {
		t.Error(got)
	}
	if got := d.Text(4000); len(got) > 4000 || !strings.Contains(got, "\ncontents: 929 more lines do not fit\n") || strings.Count(got, "世") < 500 {
		t.Error(got)
	}
	d.Pages, d.Contents = nil, nil
	for range 100 {
		d.Problems = append(d.Problems, Problem{FileDamaged, strings.Repeat("x", 100)})
	}
	if got := d.Text(MinText); len(got) > MinText || !strings.HasSuffix(got, "\ncut: the rest does not fit\n") {
		t.Error(got)
	}
}

// line matches what Text may write: a document's own words only behind a bar or as a JSON string.
var line = regexp.MustCompile(`^(document "([^"\\]|\\.)*": pdf, 3 pages(, of which \d+ to \d+ were read)?` +
	`|problem: [^"]*("([^"\\]|\\.)*")?|title: "([^"\\]|\\.)*"|contents: \d+ more lines do not fit|contents: +"([^"\\]|\\.)*"( page \d+| link "([^"\\]|\\.)*")?` +
	`|page 2: 1x1 points|no text on this page|\| .*|link: "([^"\\]|\\.)*"|cut: [a-z0-9 ]+)$`)

func FuzzNoTextForgesALine(f *testing.F) {
	f.Add("plain", 2000)
	f.Add("a\npage 1: 2x2 points\r\nproblem: x\u2028\u2029\u0085\x0b\x0c\x00\u202e\U000e0001\xff\"\\", 3000)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		d := &Document{
			Name: s, Kind: PDF, Count: 3, Problems: []Problem{{FileDamaged, s}},
			Metadata: []Field{{"title", s}}, Contents: []Entry{{1, s, 0, s}, {2, s, 1, ""}},
			Pages: []Page{{Number: 2, Width: 1, Height: 1, Text: s, Links: []string{s}, Problems: []Problem{{PageDamaged, s}}}},
		}
		got := d.Text(limit)
		if len(got) > max(limit, MinText) || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
		for l := range strings.Lines(got) {
			l, ended := strings.CutSuffix(l, "\n")
			if !ended || !line.MatchString(l) || strings.ContainsAny(l, "\r\v\f\u0085\u2028\u2029\u202e\x00") {
				t.Fatalf("%q of\n%s", l, got)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	ask, err := Request{Text: true, Images: true, Links: true, Metadata: true, Contents: true, MaxWidth: 50, MaxHeight: 50, ImageBytes: 1 << 16}.ask(Limits{}.withDefaults())
	if err != nil {
		f.Fatal(err)
	}
	var all bytes.Buffer
	w := fake{&all}
	w.begin(1)
	w.page(ask, 1)
	w.send(protocol.MetadataFrame, protocol.MetadataFields{Fields: []protocol.Field{{Name: "title", Value: "x"}}})
	w.send(protocol.ContentsFrame, protocol.ContentsEntries{Entries: []protocol.Entry{{Level: 1, Title: "x", Page: 1}}})
	w.end()
	f.Add(all.Bytes())
	var no bytes.Buffer
	fake{&no}.send(protocol.RefusalFrame, protocol.Refusal{Cause: protocol.Unreadable, Detail: "x"})
	f.Add(no.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		a := newAnswer("x", ask)
		err := a.read(bytes.NewReader(b), func() {})
		if err != nil {
			return
		}
		// What is accepted is within all bounds.
		if !a.ended || a.doc.Count < 1 || len(a.doc.Pages) != min(20, a.doc.Count) {
			t.Fatalf("%+v", a.doc)
		}
		images := 0
		for i, p := range a.doc.Pages {
			if p.Number != i+1 || len(p.Text) > ask.TextBytes || len(p.Links) > protocol.MaxLinks || !utf8.ValidString(p.Text) {
				t.Fatalf("%+v", p)
			}
			if p.Image == nil && !strings.Contains(fmt.Sprint(p.Problems), problemText[NoPicture]) {
				t.Fatalf("silently no picture: %+v", p)
			}
			if p.Image != nil {
				images += len(p.Image.Data)
			}
		}
		if images > ask.ImageBytes {
			t.Fatalf("%d bytes of pictures", images)
		}
		_ = a.doc.Text(4096)
	})
}
