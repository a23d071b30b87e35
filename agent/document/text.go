package document

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"phonerack/agent/document/internal/protocol"
)

// MinText is the least bound that Text takes, in bytes: the head of a document fits into it.
const MinText = 1024

// maxDetail bounds a detail, in bytes.
const maxDetail = protocol.MaxDetail

// Text describes the document to a planner, in at most maxBytes bytes of lines that end in "\n"; MinText if maxBytes is
// less.
//
//	document "manual.pdf": pdf, 12 pages, of which 3 to 6 were read
//	title: "User manual"
//	contents: "Safety" page 2
//	page 3: 595x842 points
//	problem: fonts not embedded, so the text may be wrong and the picture lacks it: "SimSun"
//	| first line of the page
//	| second line
//	link: "https://example.org/"
//	cut: what follows of pages 3 to 6 does not fit
//
// Every line of the document's own text begins with "| ", and whatever could break or reorder a line, or that nobody sees, is
// written as an escape; other strings of the document are JSON strings. So no document can forge a line.
func (d *Document) Text(maxBytes int) string {
	w := &lines{left: max(maxBytes, MinText) - cutReserve}
	head := "document " + quote(d.Name, 200) + fmt.Sprintf(": %s, %s", d.Kind, plural(d.Count, "page"))
	if n := len(d.Pages); n > 0 && n < d.Count {
		head += fmt.Sprintf(", of which %d to %d were read", d.Pages[0].Number, d.Pages[n-1].Number)
	}
	w.add(head)
	for _, p := range d.Problems {
		w.add("problem: " + p.String())
	}
	for _, f := range d.Metadata {
		w.add(f.Name + ": " + quote(f.Value, 200))
	}
	keep := w.left * 3 / 4 // for the pages
	for i, e := range d.Contents {
		line := e.line()
		if w.left-len(line) < keep {
			w.add(fmt.Sprintf("contents: %d more lines do not fit", len(d.Contents)-i))
			break
		}
		w.add(line)
	}
	for _, p := range d.Pages {
		p.text(w)
		if w.full {
			fmt.Fprintf(&w.b, "cut: what follows of pages %d to %d does not fit\n", p.Number, d.Pages[len(d.Pages)-1].Number)
			return w.b.String()
		}
	}
	if w.full {
		w.b.WriteString("cut: the rest does not fit\n")
	}
	return w.b.String()
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (e Entry) line() string {
	line := "contents: " + strings.Repeat("  ", max(0, min(e.Level-1, 8))) + quote(e.Title, 200)
	switch {
	case e.Page > 0:
		return line + fmt.Sprintf(" page %d", e.Page)
	case e.URI != "":
		return line + " link " + quote(e.URI, 200)
	}
	return line
}

func (p Page) text(w *lines) {
	w.add(fmt.Sprintf("page %d: %gx%g points", p.Number, p.Width, p.Height))
	for _, problem := range p.Problems {
		w.add("problem: " + problem.String())
	}
	text := strings.TrimRightFunc(p.Text, unicode.IsSpace)
	if text == "" {
		w.add("no text on this page")
	}
	for line := range strings.SplitSeq(text, "\n") {
		for line = strings.TrimRightFunc(line, unicode.IsSpace); line != ""; {
			short := cut(line, maxLine)
			w.add("| " + escape(short))
			line = line[len(short):]
		}
	}
	for _, l := range p.Links {
		w.add("link: " + quote(l, 500))
	}
}

// maxLine is the longest line of a document's text, in bytes: a longer one goes on in the next.
const maxLine = 400

// cutReserve is kept for the note that something does not fit.
const cutReserve = 80

// lines collects whole lines up to a bound.
type lines struct {
	b    strings.Builder
	left int
	full bool
}

func (w *lines) add(line string) {
	if w.full || len(line)+1 > w.left {
		w.full = true
		return
	}
	w.b.WriteString(line + "\n")
	w.left -= len(line) + 1
}

// escape writes what could break, reorder or hide a line as \uXXXX.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		escapeTo(&b, r)
	}
	return b.String()
}

func escapeTo(b *strings.Builder, r rune) {
	switch {
	case r == '\t', unicode.Is(unicode.Zs, r):
		b.WriteByte(' ')
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

func quote(s string, limit int) string {
	var b strings.Builder
	quoteTo(&b, s, limit)
	return b.String()
}

// quoteTo writes s as a JSON string. A longer one than limit bytes ends in "…".
func quoteTo(b *strings.Builder, s string, limit int) {
	b.WriteByte('"')
	short := cut(s, limit)
	for _, r := range short {
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
		}
		escapeTo(b, r)
	}
	if len(short) < len(s) {
		b.WriteRune('…')
	}
	b.WriteByte('"')
}

// cut returns the longest beginning of s of at most n bytes that splits no character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
