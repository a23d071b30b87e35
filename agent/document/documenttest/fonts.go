package documenttest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/go-text/typesetting/font"
)

// Foreign is a PDF with text in a composite font that it does not carry. The encoding is one that PDF readers know, such as
// UniGB-UCS2-H for UTF-16, or Identity-H.
func Foreign(fontName, encoding, text string) []byte {
	var p PDF
	codes := hex.EncodeToString(utf16be(text))
	descriptor := p.Add("<</Type/FontDescriptor/FontName/%s/Flags 4/Ascent 800/Descent -200/CapHeight 700/ItalicAngle 0/StemV 80/FontBBox[0 -200 1000 800]>>", fontName)
	order := "GB1"
	if encoding == "Identity-H" {
		order = "Identity"
	}
	cid := p.Add("<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)/Ordering(%s)/Supplement 0>>/FontDescriptor %d 0 R/DW 1000>>", fontName, order, descriptor)
	font := p.Add("<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/%s/DescendantFonts[%d 0 R]>>", fontName, encoding, cid)
	tree := p.Add("")
	page := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", font), "BT /F 24 Tf 20 100 Td <"+codes+"> Tj ET")
	return p.Bytes(p.Tree(tree, page))
}

// Embedded is a PDF with text in a composite font that it carries whole, with a table from glyphs to characters. An
// OpenType font with PostScript outlines has to have its glyphs in the order of its CIDs.
func Embedded(program []byte, text string) ([]byte, error) {
	face, err := font.ParseTTF(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	var codes, table strings.Builder
	for _, r := range text {
		glyph, ok := face.NominalGlyph(r)
		if !ok {
			return nil, fmt.Errorf("no glyph for %q", r)
		}
		fmt.Fprintf(&codes, "%04x", int(glyph))
		fmt.Fprintf(&table, "<%04x> <%x>\n", int(glyph), utf16be(string(r)))
	}
	var p PDF
	subtype, key, more := "CIDFontType2", "FontFile2", fmt.Sprintf("/Length1 %d", len(program))
	if string(program[:4]) == "OTTO" {
		subtype, key, more = "CIDFontType0", "FontFile3", "/Subtype/OpenType"
	}
	file := p.Stream(more, program)
	descriptor := p.Add("<</Type/FontDescriptor/FontName/AAAAAA+Test/Flags 4/Ascent 800/Descent -200/CapHeight 700/ItalicAngle 0/StemV 80/FontBBox[0 -200 1000 800]/%s %d 0 R>>", key, file)
	mapping := ""
	if subtype == "CIDFontType2" {
		mapping = "/CIDToGIDMap/Identity"
	}
	cid := p.Add("<</Type/Font/Subtype/%s/BaseFont/AAAAAA+Test/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor %d 0 R/DW 1000%s>>", subtype, descriptor, mapping)
	unicode := p.Flate("", []byte("/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def /CMapType 2 def\n"+
		"1 begincodespacerange <0000> <ffff> endcodespacerange\n"+
		fmt.Sprintf("%d beginbfchar\n%sendbfchar\nendcmap end end", strings.Count(table.String(), "\n"), table.String())))
	composite := p.Add("<</Type/Font/Subtype/Type0/BaseFont/AAAAAA+Test/Encoding/Identity-H/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", cid, unicode)
	tree := p.Add("")
	page := p.Page(tree, 300, 200, fmt.Sprintf("/Font<</F %d 0 R>>", composite), "BT /F 24 Tf 20 100 Td <"+codes.String()+"> Tj ET")
	return p.Bytes(p.Tree(tree, page)), nil
}

func utf16be(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return b
}
