package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // the pictures that a child may send
	_ "image/png"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"phonerack/agent/document/internal/protocol"
)

// maxPages bounds the count that a child may claim. MuPDF's own numbers end at 2^31.
const maxPages = 1_000_000

// maxPoints bounds the width and height that a child may claim, in points: 3.5 km.
const maxPoints = 10_000_000

// errRefused is an answer that says why there is none.
var errRefused = errors.New("its reader refuses it")

// errRules is an answer that breaks the protocol.
var errRules = errors.New("its answer breaks the rules")

// answer is what has come of a child's answer so far.
type answer struct {
	ask     protocol.Request
	doc     *Document
	stage   protocol.Stage
	refusal *protocol.Refusal
	opened  bool              // the document frame has come
	awaited protocol.Type     // the only frame that may come next, but for a stage; 0 if the order rules
	picture *protocol.Picture // of the newest page, when its bytes are awaited
	order   int               // place of the newest frame
	stages  int               // so far
	left    int               // bytes that pictures may still have
	ended   bool
}

func newAnswer(name string, ask protocol.Request) *answer {
	return &answer{ask: ask, doc: &Document{Name: name}, stage: protocol.Stage{Step: protocol.Start}, left: ask.ImageBytes}
}

// read reads frames up to the last one and checks each. Nil means that the answer is whole. It calls confined when the
// child has set its limits.
func (a *answer) read(r io.Reader, confined func()) error {
	for !a.ended {
		t, payload, err := protocol.ReadFrame(r, a.bound)
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case errors.Is(err, protocol.ErrTooLong):
			return fmt.Errorf("%w: %w", errRules, err)
		case err != nil:
			return err
		}
		if err := a.take(t, payload); err != nil {
			return fmt.Errorf("%w: %w", errRules, err)
		}
		if a.refusal != nil {
			return errRefused
		}
		if t == protocol.StageFrame && a.stage.Step == protocol.Confined {
			confined()
		}
	}
	return nil
}

// bound is the greatest length of a frame's payload at this moment.
func (a *answer) bound(t protocol.Type) int {
	switch t {
	case protocol.PageFrame: // JSON writes a byte as \u0000 at worst
		return 6*(a.ask.TextBytes+protocol.MaxLinks*protocol.MaxURI+protocol.MaxProblems*protocol.MaxDetail) + 4096
	case protocol.ImageFrame:
		return a.left
	}
	return protocol.MaxNoteBytes
}

// The places of frames in an answer.
var places = map[protocol.Type]int{
	protocol.DocumentFrame: 1, protocol.PageFrame: 2, protocol.PictureFrame: 2, protocol.ImageFrame: 2,
	protocol.MetadataFrame: 3, protocol.ContentsFrame: 4, protocol.EndFrame: 5, protocol.RefusalFrame: 5,
}

// inPlace tells whether a frame may come now.
func (a *answer) inPlace(t protocol.Type) bool {
	place, known := places[t]
	switch {
	case !known:
		return false
	case a.awaited != 0:
		return t == a.awaited
	case t == protocol.PageFrame:
		return a.opened && place >= a.order
	case t == protocol.PictureFrame, t == protocol.ImageFrame:
		return false // only when awaited
	case t == protocol.DocumentFrame, t == protocol.RefusalFrame:
		return !a.opened
	}
	return a.pagesDone() && place > a.order
}

func (a *answer) take(t protocol.Type, payload []byte) error {
	if t == protocol.StageFrame && a.awaited != protocol.ImageFrame {
		return a.takeStage(payload)
	}
	if !a.inPlace(t) {
		return fmt.Errorf("a frame %q out of place", byte(t))
	}
	a.order, a.awaited = places[t], 0
	switch t {
	case protocol.DocumentFrame:
		return a.takeDocument(payload)
	case protocol.PageFrame:
		return a.takePage(payload)
	case protocol.PictureFrame:
		return a.takePicture(payload)
	case protocol.ImageFrame:
		return a.takeImage(payload)
	case protocol.MetadataFrame:
		return a.takeMetadata(payload)
	case protocol.ContentsFrame:
		return a.takeContents(payload)
	case protocol.RefusalFrame:
		a.refusal = &protocol.Refusal{}
		return decode(payload, a.refusal)
	}
	a.ended = true
	return nil
}

func (a *answer) takeStage(payload []byte) error {
	if a.stages++; a.stages > 10+2*(a.ask.Last-a.ask.First+1) { // one of each step, two for each page
		return errors.New("too many stages")
	}
	a.stage = protocol.Stage{}
	return decode(payload, &a.stage)
}

func (a *answer) takeDocument(payload []byte) error {
	var d protocol.Document
	if err := decode(payload, &d); err != nil {
		return err
	}
	if !slices.Contains(Kinds(), Kind(d.Kind)) {
		return fmt.Errorf("a kind %.20q", d.Kind)
	}
	if d.Pages < a.ask.First || d.Pages > maxPages {
		return fmt.Errorf("%d pages", d.Pages)
	}
	problems, err := checkProblems(d.Problems)
	if err != nil {
		return err
	}
	a.opened = true
	a.doc.Kind, a.doc.Count, a.doc.Problems = Kind(d.Kind), d.Pages, problems
	return nil
}

// last is the last page that has to come.
func (a *answer) last() int { return min(a.ask.Last, a.doc.Count) }

// pagesDone tells whether all pages have come.
func (a *answer) pagesDone() bool {
	return a.opened && a.awaited == 0 && len(a.doc.Pages) == a.last()-a.ask.First+1
}

func (a *answer) takePage(payload []byte) error {
	var p protocol.Page
	if err := decode(payload, &p); err != nil {
		return err
	}
	if p.Number != a.ask.First+len(a.doc.Pages) || p.Number > a.last() {
		return fmt.Errorf("page %d out of turn", p.Number)
	}
	if !(p.Width >= 0 && p.Width <= maxPoints && p.Height >= 0 && p.Height <= maxPoints) {
		return fmt.Errorf("a page of %gx%g points", p.Width, p.Height)
	}
	if len(p.Text) > a.ask.TextBytes || p.Text != "" && !a.ask.Text {
		return fmt.Errorf("%d bytes of text", len(p.Text))
	}
	if len(p.Links) > protocol.MaxLinks || len(p.Links) > 0 && !a.ask.Links || slices.ContainsFunc(p.Links, tooLong(protocol.MaxURI)) {
		return errors.New("too many or too long links")
	}
	problems, err := checkProblems(p.Problems)
	if err != nil {
		return err
	}
	a.doc.Pages = append(a.doc.Pages, Page{Number: p.Number, Width: p.Width, Height: p.Height, Text: p.Text, Links: p.Links, Problems: problems})
	if a.ask.Images {
		a.awaited = protocol.PictureFrame
	}
	return nil
}

// newest is the page that came last.
func (a *answer) newest() *Page { return &a.doc.Pages[len(a.doc.Pages)-1] }

func (a *answer) takePicture(payload []byte) error {
	var p protocol.Picture
	if err := decode(payload, &p); err != nil {
		return err
	}
	problems, err := checkProblems(p.Problems)
	if err != nil {
		return err
	}
	page := a.newest()
	page.Problems = append(page.Problems, problems...)
	switch {
	case p.Width == 0 && p.Height == 0:
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == NoPicture }) {
			return errors.New("no picture and no reason")
		}
		return nil
	case p.Width < 1 || p.Height < 1 || p.Width > a.ask.MaxWidth || p.Height > a.ask.MaxHeight:
		return fmt.Errorf("a picture of %dx%d pixels", p.Width, p.Height)
	}
	a.awaited, a.picture = protocol.ImageFrame, &p
	return nil
}

func (a *answer) takeImage(payload []byte) error {
	format := "jpeg"
	if a.ask.PNG {
		format = "png"
	}
	c, f, err := image.DecodeConfig(bytes.NewReader(payload))
	if err != nil || f != format || c.Width != a.picture.Width || c.Height != a.picture.Height {
		return fmt.Errorf("a picture that is not the promised %s of %dx%d: %s of %dx%d, %w",
			format, a.picture.Width, a.picture.Height, f, c.Width, c.Height, err)
	}
	a.newest().Image = &Image{Format: format, Width: c.Width, Height: c.Height, Data: payload}
	a.left -= len(payload)
	return nil
}

// fieldNames are the names that metadata may have, in their order.
var fieldNames = []string{"title", "author", "subject", "keywords", "creator", "producer", "created", "modified"}

func (a *answer) takeMetadata(payload []byte) error {
	var m protocol.MetadataFields
	if err := decode(payload, &m); err != nil {
		return err
	}
	next := 0
	for _, f := range m.Fields {
		i := slices.Index(fieldNames[next:], f.Name)
		if i < 0 || len(f.Value) > protocol.MaxField || !a.ask.Metadata {
			return fmt.Errorf("a field %.20q", f.Name)
		}
		next += i + 1
		a.doc.Metadata = append(a.doc.Metadata, Field(f))
	}
	return nil
}

func (a *answer) takeContents(payload []byte) error {
	var c protocol.ContentsEntries
	if err := decode(payload, &c); err != nil {
		return err
	}
	if len(c.Entries) > protocol.MaxEntries || !a.ask.Contents {
		return fmt.Errorf("%d lines of contents", len(c.Entries))
	}
	for _, e := range c.Entries {
		if e.Level < 1 || e.Page < 0 || e.Page > a.doc.Count || len(e.Title) > protocol.MaxTitle || len(e.URI) > protocol.MaxURI {
			return errors.New("a line of contents out of bounds")
		}
		a.doc.Contents = append(a.doc.Contents, Entry(e))
	}
	if c.Cut {
		a.problem(ContentsCut, "")
	}
	return nil
}

// explainMissingPicture says why the newest page of an answer that broke off has no picture.
func (a *answer) explainMissingPicture(why string) {
	if a.awaited != 0 {
		page := a.newest()
		page.Problems = append(page.Problems, Problem{NoPicture, cut(why, maxDetail)})
	}
}

func (a *answer) problem(code ProblemCode, detail string) {
	a.doc.Problems = append(a.doc.Problems, Problem{code, cut(detail, maxDetail)})
}

// cjkComplaint is what MuPDF says when it lacks a font for Chinese, Japanese or Korean.
const cjkComplaint = "builtin CJK font"

// addComplaints adds what MuPDF said on its standard error: it has no other way to tell of damage that it got over.
func (a *answer) addComplaints(stderr string) {
	named := slices.ContainsFunc(a.doc.Pages, func(p Page) bool {
		return slices.ContainsFunc(p.Problems, func(p Problem) bool { return p.Code == FontsMissing })
	})
	damage := ""
	for line := range strings.SplitSeq(stderr, "\n") {
		switch {
		case strings.Contains(line, cjkComplaint) && !named:
			a.problem(FontsMissing, "some for Chinese, Japanese or Korean")
			named = true
		case strings.Contains(line, "error") && !strings.Contains(line, cjkComplaint) && damage == "":
			damage = strings.TrimSpace(line)
		}
	}
	known := slices.ContainsFunc(a.doc.Problems, func(p Problem) bool { return p.Code == FileDamaged })
	if damage != "" && !known {
		a.problem(FileDamaged, damage)
	}
}

func checkProblems(list []protocol.Problem) ([]Problem, error) {
	if len(list) > protocol.MaxProblems {
		return nil, fmt.Errorf("%d problems", len(list))
	}
	var problems []Problem
	for _, p := range list {
		code := ProblemCode(p.Code)
		if _, known := problemText[code]; !known || len(p.Detail) > protocol.MaxDetail {
			return nil, fmt.Errorf("a problem %.20q", p.Code)
		}
		problems = append(problems, Problem{code, p.Detail})
	}
	return problems, nil
}

func tooLong(n int) func(string) bool { return func(s string) bool { return len(s) > n } }

// decode reads exactly one JSON value without unknown members.
func decode(payload []byte, v any) error {
	if !utf8.Valid(payload) {
		return errors.New("a payload is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows a payload")
	}
	return nil
}
