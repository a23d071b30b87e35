package documenttest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
)

// File is a file of an archive.
type File struct{ Name, Text string }

// Zip is an archive of files in their order. The first one is stored, as EPUB wants its first file.
func Zip(files ...File) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, f := range files {
		var err error
		if i == 0 { // with its sizes in front, not behind
			var w interface{ Write([]byte) (int, error) }
			w, err = z.CreateRaw(&zip.FileHeader{
				Name: f.Name, Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(f.Text)),
				CompressedSize64: uint64(len(f.Text)), UncompressedSize64: uint64(len(f.Text)),
			})
			if err == nil {
				_, err = w.Write([]byte(f.Text))
			}
		} else {
			var w interface{ Write([]byte) (int, error) }
			if w, err = z.Create(f.Name); err == nil {
				_, err = w.Write([]byte(f.Text))
			}
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// EPUB is a book with a title and chapters, each the inside of an HTML body, and with more files.
func EPUB(title string, chapters []string, more ...File) []byte {
	var manifest, spine, points strings.Builder
	files := []File{
		{"mimetype", "application/epub+zip"},
		{"META-INF/container.xml", `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">` +
			`<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`},
	}
	for i, body := range chapters {
		name := fmt.Sprintf("chapter%d.xhtml", i+1)
		fmt.Fprintf(&manifest, `<item id="c%d" href="%s" media-type="application/xhtml+xml"/>`, i+1, name)
		fmt.Fprintf(&spine, `<itemref idref="c%d"/>`, i+1)
		fmt.Fprintf(&points, `<navPoint id="p%d" playOrder="%d"><navLabel><text>Chapter %d</text></navLabel><content src="%s"/></navPoint>`, i+1, i+1, i+1, name)
		files = append(files, File{name, `<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>` + body + `</body></html>`})
	}
	files = append(
		files,
		File{"book.opf", `<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i">` +
			`<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>` + title + `</dc:title></metadata>` +
			`<manifest><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>` + manifest.String() + `</manifest>` +
			`<spine toc="ncx">` + spine.String() + `</spine></package>`},
		File{"toc.ncx", `<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>` + points.String() + `</navMap></ncx>`},
	)
	return Zip(append(files, more...)...)
}

// XPS is a page of 816x1056 units (letter) with a line of text, drawn with a TrueType font.
func XPS(text string, font []byte) []byte {
	const ns = `http://schemas.microsoft.com/xps/2005/06`
	return Zip(
		File{"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
			`<Default Extension="fdseq" ContentType="application/vnd.ms-package.xps-fixeddocumentsequence+xml"/>` +
			`<Default Extension="fdoc" ContentType="application/vnd.ms-package.xps-fixeddocument+xml"/>` +
			`<Default Extension="fpage" ContentType="application/vnd.ms-package.xps-fixedpage+xml"/>` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Default Extension="ttf" ContentType="application/vnd.ms-opentype"/></Types>`},
		File{"_rels/.rels", `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Type="` + ns + `/fixedrepresentation" Target="/pages.fdseq" Id="r1"/></Relationships>`},
		File{"pages.fdseq", `<FixedDocumentSequence xmlns="` + ns + `"><DocumentReference Source="/d.fdoc"/></FixedDocumentSequence>`},
		File{"d.fdoc", `<FixedDocument xmlns="` + ns + `"><PageContent Source="/1.fpage"/></FixedDocument>`},
		File{"1.fpage", `<FixedPage xmlns="` + ns + `" Width="816" Height="1056" xml:lang="en"><Glyphs Fill="#ff000000" FontUri="/f.ttf" ` +
			`FontRenderingEmSize="24" OriginX="96" OriginY="96" UnicodeString="` + text + `"/></FixedPage>`},
		File{"_rels/1.fpage.rels", `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Type="` + ns + `/required-resource" Target="/f.ttf" Id="r1"/></Relationships>`},
		File{"f.ttf", string(font)},
	)
}

// Picture is an image with a dark square in its middle.
func Picture(width, height int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{240, 240, 240, 255}
			if x > width/4 && x < width*3/4 && y > height/4 && y < height*3/4 {
				c = color.RGBA{20, 40, 60, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// PNG is Picture as PNG.
func PNG(width, height int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, Picture(width, height)); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// JPEG is Picture as JPEG.
func JPEG(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, Picture(width, height), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// SVG is a drawing of 200x100 points with a square and a line of text.
func SVG(text string) []byte {
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect width="40" height="40"/>` +
		`<text x="10" y="80" font-size="20">` + text + `</text></svg>`)
}
