package glyph

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-text/typesetting/di"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/shaping"
	"golang.org/x/image/math/fixed"
)

// Style of a paragraph.
type Style struct {
	Size  float64 // pixels per em
	Bold  bool
	Lines int // most lines, the last one cut with an ellipsis; 0: no limit
}

// Paragraph is text broken into lines.
type Paragraph struct {
	Width, Height int // of the widest line, of all lines
	Lines         []Line
	Size          float64
	RTL           bool // direction of the text itself
}

// Line of a paragraph.
type Line struct {
	Width    int
	Baseline int // from the top of the paragraph
	Glyphs   []Placed
}

// Placed is a glyph and where its origin is, from the line's left end on the baseline, in pixels.
type Placed struct {
	face *face
	gid  font.GID
	X, Y float32
}

// face is a font at hand, with what must be done to look bold.
type face struct {
	*font.Face
	embolden bool
}

// Typesetter lays text out and keeps what it has made. It is not safe for concurrent use.
type Typesetter struct {
	faces      [2][3]*face
	byFace     map[*font.Face]*face
	segmenter  shaping.Segmenter
	shaper     shaping.HarfbuzzShaper
	wrapper    shaping.LineWrapper
	paragraphs map[paragraphKey]*Paragraph
	masks      map[maskKey]*Mask
}

type paragraphKey struct {
	text  string
	style Style
	width int
}

// maxParagraphs and maxMasks bound the caches, which are emptied when full.
const (
	maxParagraphs = 2000
	maxMasks      = 6000
)

// New returns a Typesetter with the embedded fonts.
func New() *Typesetter {
	t := &Typesetter{byFace: make(map[*font.Face]*face), paragraphs: make(map[paragraphKey]*Paragraph), masks: make(map[maskKey]*Mask)}
	for weight, fam := range embedded() {
		for i, f := range fam {
			if f != nil {
				t.add(weight, i, f, false)
			}
		}
	}
	return t
}

func (t *Typesetter) add(weight, script int, f *font.Font, embolden bool) {
	fc := &face{font.NewFace(f), embolden}
	t.faces[weight][script] = fc
	t.byFace[fc.Face] = fc
}

// Check makes sure that every character of the text can be drawn, reading the Chinese font if it is the
// first to need it. The error is ErrNoCJKFont or ErrNoGlyph.
func (t *Typesetter) Check(text string) error {
	for _, r := range text {
		if invisible(r) || t.has(r) {
			continue
		}
		if t.faces[0][chinese] == nil {
			f, err := cjkFont()
			if err != nil && (unicode.Is(unicode.Han, r) || isCJKPunctuation(r)) {
				return err
			}
			if err == nil {
				t.add(0, chinese, f, false)
				t.add(1, chinese, f, true)
			}
		}
		if !t.has(r) {
			return fmt.Errorf("%w %q (U+%04X)", ErrNoGlyph, r, r)
		}
	}
	return nil
}

func isCJKPunctuation(r rune) bool { return r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef }

// invisible characters steer layout and have no picture.
func invisible(r rune) bool {
	return r == '\n' || r == '\u200e' || r == '\u200f' || r == '\u2068' || r == '\u2069'
}

// has reports that both weights have the character.
func (t *Typesetter) has(r rune) bool {
	drawable := func(f *face) bool {
		if f == nil {
			return false
		}
		_, ok := f.NominalGlyph(r)
		return ok
	}
	return slices.ContainsFunc(t.faces[0][:], drawable) && slices.ContainsFunc(t.faces[1][:], drawable)
}

// weight is the Fontmap of one weight.
type weight struct{ faces []*face }

func (w weight) ResolveFace(r rune) *font.Face {
	for _, f := range w.faces {
		if f == nil {
			continue
		}
		if _, ok := f.NominalGlyph(r); ok {
			return f.Face
		}
	}
	return w.faces[latin].Face
}

// Layout breaks text into lines of at most width pixels. The result is shared: it must not be changed.
func (t *Typesetter) Layout(text string, style Style, width int) *Paragraph {
	key := paragraphKey{text, style, width}
	if p := t.paragraphs[key]; p != nil {
		return p
	}
	if len(t.paragraphs) >= maxParagraphs {
		clear(t.paragraphs)
	}
	p := t.layout(text, style, width)
	t.paragraphs[key] = p
	return p
}

func (t *Typesetter) layout(text string, style Style, width int) *Paragraph {
	faces := t.faces[0][:]
	if style.Bold {
		faces = t.faces[1][:]
	}
	dir := di.DirectionLTR
	if baseRTL([]rune(text)) {
		dir = di.DirectionRTL
	}
	p := &Paragraph{Size: style.Size, RTL: dir == di.DirectionRTL}
	ascent, descent := extents(faces[latin].Face, style.Size)
	parts := hardLines(text)
	shaped := make([][]shaping.Output, len(parts))
	for i, part := range parts {
		for _, run := range t.segmenter.Split(input(part, style, dir, faces), weight{faces}) {
			shaped[i] = append(shaped[i], t.shaper.Shape(run))
			a, d := extents(run.Face, style.Size)
			ascent, descent = max(ascent, a), max(descent, d)
		}
	}
	for i, part := range parts {
		left := style.Lines - len(p.Lines)
		if style.Lines > 0 && left == 0 {
			break
		}
		if len(shaped[i]) == 0 {
			p.Lines = append(p.Lines, Line{})
			continue
		}
		config := shaping.WrapConfig{Direction: dir, TextContinues: i < len(parts)-1}
		if style.Lines > 0 {
			config.TruncateAfterLines = left
			config = config.WithTruncator(&t.shaper, input([]rune("…"), style, dir, faces))
		}
		lines, _ := t.wrapper.WrapParagraph(config, max(width, 1), part, shaping.NewSliceIterator(shaped[i]))
		for _, l := range lines {
			p.Lines = append(p.Lines, t.place(visual(l, part, p.RTL)))
		}
	}
	height := int(math.Ceil(ascent + descent))
	for i := range p.Lines {
		p.Lines[i].Baseline = i*height + int(math.Round(ascent))
		p.Width = max(p.Width, p.Lines[i].Width)
	}
	p.Height = height * len(p.Lines)
	return p
}

// input is what is shaped of a line.
func input(text []rune, style Style, dir di.Direction, faces []*face) shaping.Input {
	return shaping.Input{
		Text: text, RunEnd: len(text), Direction: dir, Face: faces[latin].Face,
		Size: fixed.Int26_6(math.Round(style.Size * 64)), Script: language.Latin, Language: language.NewLanguage("en"),
	}
}

// hardLines cuts a text where the Unicode Bidirectional Algorithm ends a paragraph (class B): the segmenter shapes the
// first one only, and the wrapper fails on the rest. There is always one line; after a last separator comes an empty one.
func hardLines(text string) [][]rune {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var lines [][]rune
	for {
		at := strings.IndexFunc(text, endsParagraph)
		if at < 0 {
			return append(lines, []rune(text))
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		lines, text = append(lines, []rune(text[:at])), text[at+size:]
	}
}

func endsParagraph(r rune) bool {
	return r == '\n' || r == '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2029
}

// visual brings the runs of a line from the order of reading to that from left to right (rule L2 of the
// Unicode Bidirectional Algorithm). The wrapper's own order knows only the runs' directions and would put
// a number that follows Arabic within a left-to-right line on the wrong side.
func visual(l shaping.Line, text []rune, rtl bool) []shaping.Output {
	runs := slices.Clone(l)
	levels := make([]int, len(runs))
	for i, run := range runs {
		switch {
		case run.Direction == di.DirectionRTL:
			levels[i] = 1
		case rtl, i > 0 && levels[i-1] > 0 && isNumber(text[run.Runes.Offset:run.Runes.Offset+run.Runes.Count]):
			levels[i] = 2
		}
	}
	for level := 2; level > 0; level-- {
		for i := 0; i < len(runs); i++ {
			j := i
			for j < len(runs) && levels[j] >= level {
				j++
			}
			if j > i {
				slices.Reverse(runs[i:j])
				slices.Reverse(levels[i:j])
				i = j
			}
		}
	}
	return runs
}

func isNumber(text []rune) bool {
	return len(text) > 0 && unicode.IsDigit(text[0]) && !slices.ContainsFunc(text, unicode.IsLetter)
}

// place puts runs one after another from left to right.
func (t *Typesetter) place(runs []shaping.Output) Line {
	var out Line
	var x float32
	for _, run := range runs {
		f := t.byFace[run.Face]
		for _, g := range run.Glyphs {
			out.Glyphs = append(out.Glyphs, Placed{f, g.GlyphID, x + toFloat(g.XOffset), -toFloat(g.YOffset)})
			x += toFloat(g.Advance)
		}
	}
	out.Width = int(math.Ceil(float64(x)))
	return out
}

func toFloat(v fixed.Int26_6) float32 { return float32(v) / 64 }

// Arabic fonts reserve room for stacked marks that a screen's texts don't have: lines stand as close as
// these allow, in ems.
const maxAscent, maxDescent = 1.06, 0.44

func extents(f *font.Face, size float64) (ascent, descent float64) {
	e, _ := f.FontHExtents()
	em := float64(f.Upem())
	return min(float64(e.Ascender)/em, maxAscent) * size, min(-float64(e.Descender)/em, maxDescent) * size
}

// baseRTL lets the first strong character decide, as Android does. Without one, as in "1080 × 2400", text
// runs from left to right whatever the layout.
func baseRTL(text []rune) bool {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Arabic, unicode.Hebrew) && unicode.IsLetter(r):
			return true
		case unicode.IsLetter(r):
			return false
		}
	}
	return false
}
