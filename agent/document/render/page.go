package render

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gen2brain/go-fitz"

	"phonerack/agent/document"
	"phonerack/agent/document/internal/protocol"
)

// Bounds of a picture.
const (
	maxDPI      = 300       // a small page is not blown up beyond it
	maxSide     = 1_000_000 // points of a page
	jpegQuality = 80

	maxArea       = 8 << 20  // pixels
	bytesPerPixel = 5 * 4    // MuPDF's picture, two copies in Go, and what the heap rounds up
	reserve       = 64 << 20 // bytes for everything else
)

// page sends one page: first what it says, so that it is there whatever drawing it does, then its picture.
func (c *child) page(b book, n int) error {
	if err := c.stage(protocol.ReadingPage, n); err != nil {
		return err
	}
	p := protocol.Page{Number: n}
	note := func(code document.ProblemCode, detail string) {
		p.Problems = append(p.Problems, problem(code, detail))
	}
	bound, err := b.f.Bound(n - 1)
	if err != nil {
		note(document.PageDamaged, "it cannot be loaded")
	}
	p.Width, p.Height = float64(min(bound.Dx(), maxSide)), float64(min(bound.Dy(), maxSide))
	if names := b.fonts[n]; len(names) > 0 {
		note(document.FontsMissing, strings.Join(names, ", "))
	}
	text := ""
	if err == nil && (c.ask.Text || c.ask.Images && drawsLetters(b.kind)) {
		if text, err = b.f.Text(n - 1); err != nil {
			note(document.PageDamaged, "its text cannot be read")
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if c.ask.Text {
		if p.Text = cut(text, c.ask.TextBytes); len(p.Text) < len(text) {
			note(document.TextCut, fmt.Sprintf("%d bytes of %d", len(p.Text), len(text)))
		}
		if garbled(p.Text) {
			note(document.TextGarbled, "")
		}
	}
	if c.ask.Links && err == nil {
		var whole bool
		if p.Links, whole = links(b.f, n); !whole {
			note(document.LinksCut, "")
		}
	}
	if err := c.send(protocol.PageFrame, p); err != nil || !c.ask.Images {
		return err
	}
	if err := c.stage(protocol.Drawing, n); err != nil {
		return err
	}
	return c.picture(b, n, bound, text)
}

// links returns the links of a page, and whether these are all.
func links(f *fitz.Document, n int) (uris []string, whole bool) {
	found, err := f.Links(n - 1)
	whole = err == nil
	for _, l := range found {
		if len(uris) == protocol.MaxLinks || len(l.URI) > protocol.MaxURI {
			whole = false
			continue
		}
		if uri := strings.ToValidUTF8(l.URI, ""); uri != "" {
			uris = append(uris, uri)
		}
	}
	return uris, whole
}

// picture sends the picture of a page, or why there is none.
func (c *child) picture(b book, n int, bound image.Rectangle, text string) error {
	img, packed, why := c.draw(b.f, n, bound)
	if why != "" {
		return c.send(protocol.PictureFrame, protocol.Picture{Problems: []protocol.Problem{problem(document.NoPicture, why)}})
	}
	c.left -= len(packed)
	p := protocol.Picture{Width: img.Rect.Dx(), Height: img.Rect.Dy()}
	if drawsLetters(b.kind) && !b.ownFonts {
		if lost := undrawable(text); lost != "" {
			p.Problems = append(p.Problems, problem(document.GlyphsMissing, lost))
		}
	}
	if strings.TrimSpace(text) != "" && oneColour(img) {
		p.Problems = append(p.Problems, problem(document.PictureBlank, ""))
	}
	if err := c.send(protocol.PictureFrame, p); err != nil {
		return err
	}
	return protocol.WriteFrame(c.out, protocol.ImageFrame, packed)
}

// draw makes the picture of a page, at a resolution at which it fits whatever size the page has. No more is ever
// allocated.
func (c *child) draw(f *fitz.Document, n int, bound image.Rectangle) (img *image.RGBA, packed []byte, why string) {
	// Bound cuts fractions off: the page may be almost a point larger.
	width, height := float64(bound.Dx()+1), float64(bound.Dy()+1)
	dpi := min(maxDPI, 72*float64(c.ask.MaxWidth)/width, 72*float64(c.ask.MaxHeight)/height, 72*math.Sqrt(maxArea/(width*height)))
	switch {
	case bound.Min != image.Point{}:
		return nil, nil, "the page does not begin at its origin" // go-fitz would copy from outside the picture
	case width > maxSide || height > maxSide:
		return nil, nil, "the page is larger than any picture can show"
	case width*dpi < 72 || height*dpi < 72:
		return nil, nil, "the page is too narrow for its length"
	case width*height*dpi*dpi/(72*72)*bytesPerPixel > float64(c.ask.Limits.Memory)-reserve:
		return nil, nil, "at this size it needs more memory than is allowed" // MuPDF would end the process
	}
	img, err := f.ImageDPI(n-1, dpi)
	if err != nil {
		return nil, nil, "the page cannot be drawn"
	}
	if size := img.Rect.Size(); size.X < 1 || size.Y < 1 || size.X > c.ask.MaxWidth || size.Y > c.ask.MaxHeight {
		return nil, nil, fmt.Sprintf("it would have %dx%d pixels", size.X, size.Y)
	}
	var w bytes.Buffer
	if c.ask.PNG {
		err = png.Encode(&w, img)
	} else {
		err = jpeg.Encode(&w, img, &jpeg.Options{Quality: jpegQuality})
	}
	if err != nil {
		return nil, nil, err.Error()
	}
	if w.Len() > c.left {
		return nil, nil, fmt.Sprintf("its %d bytes are more than the %d that are left for pictures", w.Len(), c.left)
	}
	return img, w.Bytes(), ""
}

// drawsLetters tells whether the letters of a kind are drawn with fonts that are linked here, so that pictures lack those
// that these do not have.
func drawsLetters(k document.Kind) bool { return k == document.EPUB || k == document.SVG }

// drawable are the characters that the linked fonts have, as found by drawing some of each block: Latin without its later
// additions, Greek, Cyrillic and common signs.
var drawable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0000, 0x017f, 1},
		{0x0250, 0x02ff, 1}, // phonetic and modifying letters
		{0x0370, 0x052f, 1}, // Greek, Cyrillic
		{0x2000, 0x22ff, 1}, // punctuation, currencies, arrows, mathematics
		{0xfb00, 0xfb04, 1}, // ligatures
		{0xfffd, 0xfffd, 1},
	},
}

// undrawable returns some of the characters of a text that no linked font has.
func undrawable(text string) string {
	var lost []rune
	for _, r := range text {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(drawable, r) && !slices.Contains(lost, r) {
			if lost = append(lost, r); len(lost) == 12 {
				break
			}
		}
	}
	return string(lost)
}

// garbled tells whether a fifth of a text or more are characters that nobody writes: such as MuPDF makes of glyphs that it
// knows no character for.
func garbled(text string) bool {
	bad, all := 0, 0
	for _, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		all++
		if r == utf8.RuneError || unicode.Is(unicode.Co, r) || unicode.IsControl(r) {
			bad++
		}
	}
	return bad > 0 && bad*5 >= all
}

// oneColour tells whether nothing is to be seen in a picture.
func oneColour(img *image.RGBA) bool {
	for i := 4; i < len(img.Pix); i += 4 {
		if !bytes.Equal(img.Pix[i:i+4], img.Pix[:4]) {
			return false
		}
	}
	return true
}

func problem(code document.ProblemCode, detail string) protocol.Problem {
	return protocol.Problem{Code: string(code), Detail: cut(detail, protocol.MaxDetail)}
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
