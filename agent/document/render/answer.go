package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/gen2brain/go-fitz"

	"phonerack/agent/document"
	"phonerack/agent/document/internal/protocol"
	"phonerack/agent/document/pdffont"
)

// maxPages bounds the pages that a document may have.
const maxPages = 1_000_000

// book is an open document.
type book struct {
	f        *fitz.Document
	kind     document.Kind
	pages    int
	fonts    map[int][]string // those that are missing, by page
	ownFonts bool             // an EPUB that brings fonts
}

// answer reads the document and sends what was asked for.
func (c *child) answer() error {
	c.left = c.ask.ImageBytes
	if err := c.stage(protocol.Confined, 0); err != nil {
		return err
	}
	if err := c.stage(protocol.Opening, 0); err != nil {
		return err
	}
	kind, text, err := kindOf(c.text)
	if err != nil {
		return err
	}
	f, err := open(text, kind, c.ask.Password)
	if err != nil {
		return err
	}
	if err := c.stage(protocol.Counting, 0); err != nil {
		return err
	}
	pages := f.NumPage()
	switch {
	case pages < 1:
		return refuse(protocol.Unreadable, "it has no pages")
	case pages > maxPages:
		return refuse(protocol.Unreadable, fmt.Sprintf("it claims to have %d pages", pages))
	case pages < c.ask.First:
		return refusal{protocol.Refusal{Cause: protocol.NoSuchPage, Pages: pages}}
	}
	last := min(c.ask.Last, pages)
	fonts, problems := checkFonts(text, kind, c.ask.First, last)
	if kind == document.PDF {
		problems = append(problems, checkEnd(text)...)
	}
	if err := c.send(protocol.DocumentFrame, protocol.Document{Kind: string(kind), Pages: pages, Problems: problems}); err != nil {
		return err
	}
	b := book{f: f, kind: kind, pages: pages, fonts: fonts, ownFonts: kind == document.EPUB && carriesFonts(text)}
	for n := c.ask.First; n <= last; n++ {
		if err := c.page(b, n); err != nil {
			return err
		}
	}
	if err := c.about(b); err != nil {
		return err
	}
	return protocol.WriteFrame(c.out, protocol.EndFrame, nil)
}

// about sends what the document says of itself.
func (c *child) about(b book) error {
	if c.ask.Metadata {
		if err := c.stage(protocol.Metadata, 0); err != nil {
			return err
		}
		if err := c.send(protocol.MetadataFrame, metadata(b.f)); err != nil {
			return err
		}
	}
	if c.ask.Contents {
		if err := c.stage(protocol.Contents, 0); err != nil {
			return err
		}
		return c.send(protocol.ContentsFrame, contents(b))
	}
	return nil
}

// checkFonts finds the fonts that a PDF does not carry, by page.
func checkFonts(text []byte, kind document.Kind, first, last int) (map[int][]string, []protocol.Problem) {
	if kind != document.PDF {
		return nil, nil
	}
	fonts, err := pdffont.Scan(text, first, last)
	if err != nil {
		return nil, []protocol.Problem{{Code: string(document.FontsUnknown), Detail: err.Error()}}
	}
	return fonts, nil
}

// checkEnd tells whether a PDF is cut off: MuPDF repairs it in silence, and what is lost is lost.
func checkEnd(text []byte) []protocol.Problem {
	text = bytes.TrimRight(text, "\x00 \t\r\n")
	if bytes.Contains(text[max(0, len(text)-1024):], []byte("%%EOF")) {
		return nil
	}
	return []protocol.Problem{{Code: string(document.FileDamaged), Detail: "its end is missing"}}
}

// fields are the pieces of metadata by the names that go-fitz has for them, in the order of the answer.
var fields = []struct{ name, key string }{
	{"title", "title"},
	{"author", "author"},
	{"subject", "subject"},
	{"keywords", "keywords"},
	{"creator", "creator"},
	{"producer", "producer"},
	{"created", "creationDate"},
	{"modified", "modDate"},
}

func metadata(f *fitz.Document) protocol.MetadataFields {
	m := protocol.MetadataFields{Fields: []protocol.Field{}}
	known := f.Metadata()
	for _, field := range fields {
		if value := strings.TrimSpace(clean(cString(known[field.key]), protocol.MaxField)); value != "" {
			m.Fields = append(m.Fields, protocol.Field{Name: field.name, Value: value})
		}
	}
	return m
}

func contents(b book) protocol.ContentsEntries {
	c := protocol.ContentsEntries{Entries: []protocol.Entry{}}
	outline, err := b.f.ToC()
	if errors.Is(err, fitz.ErrLoadOutline) { // there is none
		return c
	}
	for _, o := range outline {
		if len(c.Entries) == protocol.MaxEntries {
			c.Cut = true
			break
		}
		e := protocol.Entry{Level: max(1, o.Level), Title: clean(o.Title, protocol.MaxTitle), URI: clean(o.URI, protocol.MaxURI)}
		// In an EPUB the page is counted within a chapter that go-fitz does not name.
		if n := o.Page + 1; b.kind != document.EPUB && n >= 1 && n <= b.pages {
			e.Page, e.URI = n, ""
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

// clean makes s valid UTF-8 of at most n bytes.
func clean(s string, n int) string { return cut(strings.ToValidUTF8(s, "\uFFFD"), n) }
