package document

import (
	"strings"
)

// Kind is a kind of document, found from its content and not from its name.
type Kind string

// The kinds that are read.
const (
	PDF  Kind = "pdf"
	EPUB Kind = "epub"
	XPS  Kind = "xps"
	CBZ  Kind = "cbz" // a zip of pictures
	SVG  Kind = "svg"
	PNG  Kind = "png"
	JPEG Kind = "jpeg"
	GIF  Kind = "gif"
	BMP  Kind = "bmp"
	TIFF Kind = "tiff"
	JP2  Kind = "jp2" // JPEG 2000
)

// Kinds returns all kinds that are read.
func Kinds() []Kind { return []Kind{PDF, EPUB, XPS, CBZ, SVG, PNG, JPEG, GIF, BMP, TIFF, JP2} }

// Request says what to read of a document.
type Request struct {
	First int // the first page, counted from 1; 0 means 1
	Last  int // the last page; 0 means as many as Limits.Pages allows. What lies behind the end is left out

	Text     bool // the text of the pages
	Images   bool // a picture of each page
	Links    bool // the links of the pages
	Metadata bool // title, author, ...
	Contents bool // the table of contents

	MaxWidth   int    // pixels of a picture, at most MaxPixels; 0 means 720
	MaxHeight  int    // pixels of a picture, at most MaxPixels; 0 means 1600
	ImageBytes int    // of all pictures together; 0 means 4 MiB. A picture that does not fit is left out, and its page says so
	PNG        bool   // PNG pictures, not JPEG
	Password   string // of an encrypted document, at most MaxPassword bytes
}

// Bounds of a request.
const (
	MaxPixels   = 4096 // in each direction
	MaxPassword = 256  // bytes
)

// Document is what was read.
type Document struct {
	Name     string // as the source gave it: untrusted
	Kind     Kind
	Count    int       // how many pages the document has
	Metadata []Field   // in a fixed order, without empty ones
	Contents []Entry   // the table of contents, in order
	Pages    []Page    // those that were read, ascending
	Problems []Problem // of the document as a whole
}

// Field is a piece of metadata: title, author, subject, keywords, creator, producer, created or modified.
type Field struct {
	Name  string
	Value string // untrusted
}

// Entry is a line of the table of contents.
type Entry struct {
	Level int // from 1
	Title string
	Page  int    // from 1; 0 if not known
	URI   string // where it leads, if not to a page
}

// Page is a page that was read.
type Page struct {
	Number        int     // from 1
	Width, Height float64 // in points of 1/72 inch, whole numbers; of an EPUB as it was laid out
	Text          string  // valid UTF-8, lines end in "\n"
	Links         []string
	Image         *Image // nil if none was asked for, or see Problems
	Problems      []Problem
}

// Image is a picture of a page.
type Image struct {
	Format        string // "jpeg" or "png"
	Width, Height int    // pixels
	Data          []byte
}

// Problem is something that a page or a document lacks.
type Problem struct {
	Code   ProblemCode
	Detail string // may come from the document: untrusted
}

// ProblemCode names a kind of problem.
type ProblemCode string

// Problems of pages.
const (
	FontsMissing  ProblemCode = "fonts_missing"  // fonts are neither embedded nor here: text may be wrong, pictures lack it. Detail: their names
	GlyphsMissing ProblemCode = "glyphs_missing" // the text is right, but the picture lacks these characters. Detail: some of them
	TextGarbled   ProblemCode = "text_garbled"   // much of the text has no known characters
	PictureBlank  ProblemCode = "picture_blank"  // the page has text, its picture shows nothing
	PageDamaged   ProblemCode = "page_damaged"   // the page could not be read, or not to its end. Detail: why
	TextCut       ProblemCode = "text_cut"       // the text is longer than the limit
	LinksCut      ProblemCode = "links_cut"      // more or longer links than the limit
	NoPicture     ProblemCode = "no_picture"     // no picture was made. Detail: why
)

// Problems of a document.
const (
	FileDamaged  ProblemCode = "file_damaged"  // repaired on opening: something may be missing. Detail: what was noticed
	FontsUnknown ProblemCode = "fonts_unknown" // it could not be checked which fonts are embedded. Detail: why
	InfoMissing  ProblemCode = "info_missing"  // metadata or contents could not be read. Detail: why
	ContentsCut  ProblemCode = "contents_cut"  // a longer table of contents than the limit
)

// problemText is what a planner or a person reads; a detail follows.
var problemText = map[ProblemCode]string{
	FontsMissing:  "fonts not embedded, so the text may be wrong and the picture lacks it",
	GlyphsMissing: "no font for these characters, so the picture lacks them",
	TextGarbled:   "much of the text has no known characters, so it is wrong",
	PictureBlank:  "the picture shows nothing although the page has text",
	PageDamaged:   "the page could not be read to its end",
	TextCut:       "the text is longer than the limit and was cut",
	LinksCut:      "not all links are listed",
	NoPicture:     "no picture was made",
	FileDamaged:   "the file is damaged, so something may be missing",
	FontsUnknown:  "it is not known whether all fonts are embedded",
	InfoMissing:   "metadata or contents could not be read",
	ContentsCut:   "the table of contents is longer than the limit and was cut",
}

// String is one line of plain text; the detail in it is a JSON string.
func (p Problem) String() string {
	text, ok := problemText[p.Code]
	if !ok {
		text = string(p.Code)
	}
	if p.Detail == "" {
		return text
	}
	var b strings.Builder
	b.WriteString(text + ": ")
	quoteTo(&b, p.Detail, maxDetail)
	return b.String()
}
