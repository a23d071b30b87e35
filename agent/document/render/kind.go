package render

import (
	"archive/zip"
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"phonerack/agent/document"
	"phonerack/agent/document/internal/protocol"
)

// headBytes is how far from its beginning the kind of a file shows. A PDF's header may stand within the first 1024 bytes
// (ISO 32000-1, annex H).
const headBytes = 1024

// magic is a beginning that tells a kind.
type magic struct {
	at     int
	prefix string
	kind   document.Kind // or
	what   string        // words for what is not read
}

var magics = []magic{
	{0, "\x89PNG\r\n\x1a\n", document.PNG, ""},
	{0, "\xff\xd8\xff", document.JPEG, ""},
	{0, "GIF8", document.GIF, ""},
	{0, "II*\x00", document.TIFF, ""},
	{0, "MM\x00*", document.TIFF, ""},
	{0, "\x00\x00\x00\x0cjP  \r\n\x87\n", document.JP2, ""},
	{0, "\xff\x4f\xff\x51", document.JP2, ""},
	{0, "BM", document.BMP, ""},
	{8, "WEBP", "", "a WebP picture"},
	{4, "ftyphei", "", "a HEIC picture"},
	{4, "ftypmif1", "", "a HEIF picture"},
	{4, "ftypavif", "", "an AVIF picture"},
	{4, "ftyp", "", "a video"},
	{0, "\x1aE\xdf\xa3", "", "a video"},
	{0, "ID3", "", "a sound file"},
	{0, "Rar!", "", "a RAR archive"},
	{0, "7z\xbc\xaf", "", "a 7z archive"},
	{0, "\x1f\x8b", "", "a gzip archive"},
	{0, "\xd0\xcf\x11\xe0", "", "an old Office document"},
	{0, "{\\rtf", "", "an RTF document"},
	{60, "BOOKMOBI", "", "a MOBI book"},
	{0, "%!PS", "", "a PostScript file"},
	{0, "SQLite format 3", "", "a database"},
	{0, "\x7fELF", "", "a program"},
	{0, "PK\x05\x06", "", "an empty zip archive"},
}

// kindOf finds the kind of a document from its content. It returns the document without what stands before its header.
func kindOf(text []byte) (document.Kind, []byte, error) {
	head := text[:min(len(text), headBytes)]
	if i := bytes.Index(head, []byte("%PDF-")); i >= 0 {
		return document.PDF, text[i:], nil
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		kind, err := kindOfZip(text)
		return kind, text, err
	}
	for _, m := range magics {
		if len(head) > m.at && bytes.HasPrefix(head[m.at:], []byte(m.prefix)) {
			if m.kind == "" {
				return "", nil, refuse(protocol.NotSupported, m.what)
			}
			return m.kind, text, nil
		}
	}
	what, svg := markup(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if svg != nil {
		return document.SVG, svg, nil
	}
	return "", nil, refuse(protocol.NotSupported, what)
}

// markup says what kind of XML, HTML or other text it is. Of a drawing it returns the element, without what stands before
// it: go-fitz does not get over each comment.
func markup(text []byte) (what string, svg []byte) {
	const far = 64 << 10 // where the first element has to begin
	rest := bytes.TrimLeft(text, " \t\r\n")
	xml := bytes.HasPrefix(rest, []byte("<?xml"))
	for len(text)-len(rest) < far && (bytes.HasPrefix(rest, []byte("<?")) || bytes.HasPrefix(rest, []byte("<!"))) {
		end := []byte(">")
		if bytes.HasPrefix(rest, []byte("<!--")) {
			end = []byte("-->")
		}
		declaration, _, found := bytes.Cut(rest[:min(len(rest), far)], end)
		if d := strings.ToLower(string(declaration[:min(len(declaration), 60)])); strings.HasPrefix(d, "<!doctype") && strings.Contains(d, "html") {
			return "a web page", nil
		}
		if !found {
			break
		}
		rest = bytes.TrimLeft(rest[len(declaration)+len(end):], " \t\r\n")
	}
	switch {
	case bytes.HasPrefix(rest, []byte("<svg")):
		return "", rest
	case bytes.HasPrefix(bytes.ToLower(rest[:min(len(rest), 5)]), []byte("<html")):
		return "a web page", nil
	case xml:
		return "an XML file", nil
	case plain(text[:min(len(text), headBytes)]):
		return "plain text", nil
	}
	return "no known kind of document", nil
}

// plain tells whether the beginning of a file is text.
func plain(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n < 2 && len(head) > utf8.UTFMax || r < ' ' && !unicode.IsSpace(r) {
			return false
		}
		head = head[n:]
	}
	return true
}

// pictureNames are the endings of the files that make a zip a comic book.
var pictureNames = []string{".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".jp2"}

// kindOfZip tells the kinds apart that come as zip archives, from what the archive holds.
func kindOfZip(text []byte) (document.Kind, error) {
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return "", refuse(protocol.Unreadable, "the directory of its zip archive is damaged or cut off")
	}
	pictures := false
	for _, f := range z.File {
		switch n := strings.ToLower(f.Name); {
		case n == "mimetype":
			if kind, err := kindOfMimetype(f); kind != "" || err != nil {
				return kind, err
			}
		case n == "meta-inf/container.xml":
			return document.EPUB, nil
		case strings.HasSuffix(n, ".fdseq"):
			return document.XPS, nil
		case strings.HasPrefix(n, "word/"):
			return "", refuse(protocol.NotSupported, "a Word document")
		case strings.HasPrefix(n, "xl/"):
			return "", refuse(protocol.NotSupported, "an Excel document")
		case strings.HasPrefix(n, "ppt/"):
			return "", refuse(protocol.NotSupported, "a PowerPoint document")
		case n == "androidmanifest.xml":
			return "", refuse(protocol.NotSupported, "an Android app")
		case slices.Contains(pictureNames, path.Ext(n)):
			pictures = true
		}
	}
	if !pictures {
		return "", refuse(protocol.NotSupported, "a zip archive without pictures")
	}
	return document.CBZ, nil
}

// kindOfMimetype looks at the file that EPUB and OpenDocument begin with; nothing if it is neither.
func kindOfMimetype(f *zip.File) (document.Kind, error) {
	r, err := f.Open()
	if err != nil {
		return "", nil
	}
	defer r.Close()
	b, _ := io.ReadAll(io.LimitReader(r, 100))
	switch s := strings.TrimSpace(string(b)); {
	case s == "application/epub+zip":
		return document.EPUB, nil
	case strings.HasPrefix(s, "application/vnd.oasis.opendocument"):
		return "", refuse(protocol.NotSupported, "an OpenDocument file")
	}
	return "", nil
}

// carriesFonts tells whether an EPUB brings fonts of its own.
func carriesFonts(text []byte) bool {
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	return err == nil && slices.ContainsFunc(z.File, func(f *zip.File) bool {
		return slices.Contains([]string{".ttf", ".otf", ".ttc", ".woff", ".woff2"}, strings.ToLower(path.Ext(f.Name)))
	})
}
