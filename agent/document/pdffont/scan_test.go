package pdffont

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/document/documenttest"
)

// book is a PDF of four pages: no font, a foreign one of its own, one inherited from the tree, one within a form.
func book(pack bool) []byte {
	p := documenttest.PDF{Pack: pack}
	composite := func(name, more string) int {
		descriptor := p.Add("<</Type/FontDescriptor/FontName/%s%s>>", name, more)
		cid := p.Add("<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/FontDescriptor %d 0 R>>", name, descriptor)
		return p.Add("<</Type/Font/Subtype/Type0/BaseFont/%s/DescendantFonts[%d 0 R]>>", name, cid)
	}
	simple := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	foreign, inherited, inner := composite("ABCDEF+SimSun", ""), composite("MS#20Mincho", ""), composite("Batang", "")
	embedded := composite("Embedded", fmt.Sprintf("/FontFile2 %d 0 R", p.Stream("", []byte("font"))))
	tree, branch := p.Add(""), p.Add("")
	form := p.Stream(fmt.Sprintf("/Type/XObject/Subtype/Form/Resources<</Font<</A %d 0 R/B %d 0 R>>/XObject<</Me %d 0 R>>>>", inner, foreign, branch+1), nil)
	one := p.Page(tree, 1, 1, fmt.Sprintf("/Font<</A %d 0 R/B %d 0 R>>", simple, embedded), "(1 0 obj) endobj")
	two := p.Page(tree, 1, 1, fmt.Sprintf("/Font<</A %d 0 R /B %d 0 R>>", foreign, embedded), "")
	three := p.Add("<</Type /Page /Parent %d 0 R /MediaBox [0 0 1 1] %% a comment >>\n /T (a ) string \\) >>) /S <28> /N null>>", branch)
	four := p.Page(tree, 1, 1, fmt.Sprintf("/XObject<</F %d 0 R>>", form), "")
	p.Set(branch, "<</Type/Pages/Count 1/Kids[%d 0 R]/Resources<</Font %d 0 R>>>>", three, p.Add("<</A %d 0 R>>", inherited))
	p.Set(tree, "<</Type/Pages/Count 4/Kids[%d 0 R %d 0 R %d 0 R %d 0 R %d 0 R]>>", one, two, branch, four, tree)
	return p.Bytes(p.Add("<</Type/Catalog/Pages %d 0 R>>", tree))
}

func TestForeignFontsOfEachPage(t *testing.T) {
	want := map[int][]string{2: {"SimSun"}, 3: {"MS Mincho"}, 4: {"Batang", "SimSun"}}
	for name, text := range map[string][]byte{
		"plain": book(false), "packed": book(true),
		"without a trailer": bytes.Replace(book(false), []byte("/Root"), []byte("/Rxxt"), 1),
		"of mac lines":      bytes.ReplaceAll(book(false), []byte("\n"), []byte("\r")),
	} {
		got, err := Scan(text, 1, 10)
		if err != nil || !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := Scan(book(false), 3, 3); err != nil || len(got) != 1 || got[3] == nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLaterVersionOfAnObjectCounts(t *testing.T) {
	text := book(false)
	i := bytes.Index(text, []byte("/Subtype/Type0/BaseFont/ABCDEF+SimSun"))
	start := bytes.LastIndex(text[:i], []byte(" 0 obj"))
	number := string(text[bytes.LastIndexByte(text[:start], '\n')+1 : start])
	text = append(text, "\n"+number+" 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Courier>>\nendobj\n"...)
	if got, err := Scan(text, 2, 2); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFilesThatTellNothing(t *testing.T) {
	bomb := documenttest.PDF{}
	bomb.Flate("/Type/ObjStm/N 1/First 4", make([]byte, 1001))
	for name, c := range map[string]struct {
		text []byte
		err  error
	}{
		"nothing":   {nil, ErrNoPages},
		"head":      {[]byte("%PDF-1.7\n"), ErrNoPages},
		"no kids":   {[]byte("1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]>>endobj"), ErrNoPages},
		"encrypted": {append(book(true), "/Encrypt"...), ErrEncrypted},
		"bomb":      {bomb.Bytes(1), ErrTooLarge},
		"objects":   {[]byte(strings.Repeat("1 0 obj\n", 101)), ErrTooLarge},
		"far away":  {[]byte("1 0 obj<</Type/ObjStm/N 1/First 9223372036854775807>>stream\n1 5 \n2 0 obj<</Type/Catalog/Pages 1 0 R>>endobj"), nil},
		"too far":   {[]byte("1 0 obj<</Type/ObjStm/N 1/First 9>>stream\n1 9223372036854775807 \n2 0 obj<</Type/Catalog/Pages 1 0 R>>endobj"), nil},
	} {
		f := &file{text: c.text, objects: map[int]place{}, room: 100, unpacked: 1000}
		if got, err := f.scan(1, 10); !errors.Is(err, c.err) || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R 2 0 R]>>endobj 3 0 obj<</Resources<</Font<</A 4 0 R>>>>>>endobj " +
		"4 0 obj<</Subtype/Type0/DescendantFonts[5 0 R]>>endobj 5 0 obj<</BaseFont/Sim#53un>>endobj trailer<</Root 1 0 R>>"))
	f.Add([]byte("1 0 obj<</Type/ObjStm/N 1/First 4>>stream\n2 0 <<(a\\)>><6>%x\n[[/A#]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		missing, err := Scan(text, 1, 20)
		for n, names := range missing {
			if n < 1 || n > 20 || len(names) == 0 {
				t.Errorf("page %d: %q, %v", n, names, err)
			}
		}
	})
}
