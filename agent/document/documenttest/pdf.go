// Package documenttest writes small documents for tests: well-formed ones and such as make readers fail.
package documenttest

import (
	"bytes"
	"compress/zlib"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// PDF collects the objects of a PDF, which are numbered from 1. The zero value is empty.
type PDF struct {
	objects []object

	Trailer string // more entries of the trailer
	Pack    bool   // objects into an object stream, and the cross-references into another, as newer programs do
	// UserPassword and OwnerPassword encrypt the streams, with RC4 and 40 bits; text strings would stay as they are.
	UserPassword, OwnerPassword string
}

type object struct {
	body   string // without stream and Length
	stream []byte // nil if it has none
}

// Add adds an object and returns its number.
func (p *PDF) Add(format string, args ...any) int {
	p.objects = append(p.objects, object{body: fmt.Sprintf(format, args...)})
	return len(p.objects)
}

// Set replaces an object that was added before, so that objects can refer to each other.
func (p *PDF) Set(number int, format string, args ...any) {
	p.objects[number-1].body = fmt.Sprintf(format, args...)
}

// Stream adds a stream; entries are those of its dictionary beside the length.
func (p *PDF) Stream(entries string, data []byte) int {
	p.objects = append(p.objects, object{entries, append([]byte{}, data...)})
	return len(p.objects)
}

// Flate adds a packed stream.
func (p *PDF) Flate(entries string, data []byte) int {
	return p.Stream(entries+"/Filter/FlateDecode", deflate(data))
}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

// Page adds a page of a size in points with contents and resources, and returns its number. Parent is its page tree.
func (p *PDF) Page(parent int, width, height float64, resources, contents string) int {
	c := p.Flate("", []byte(contents))
	return p.Add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 %g %g]/Resources<<%s>>/Contents %d 0 R>>", parent, width, height, resources, c)
}

// Tree makes object number a page tree of the pages, and returns the number of a catalog for it.
func (p *PDF) Tree(number int, pages ...int) int {
	p.Set(number, "<</Type/Pages/Count %d/Kids[%s]>>", len(pages), refs(pages))
	return p.Add("<</Type/Catalog/Pages %d 0 R>>", number)
}

func refs(numbers []int) string {
	var s []string
	for _, n := range numbers {
		s = append(s, fmt.Sprintf("%d 0 R", n))
	}
	return strings.Join(s, " ")
}

// Bytes is the file; root is the number of its catalog.
func (p *PDF) Bytes(root int) []byte {
	b := bytes.NewBufferString("%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")
	trailer := fmt.Sprintf("/Root %d 0 R%s", root, p.Trailer)
	key := p.encrypt(&trailer)
	if p.Pack {
		p.writePacked(b, trailer)
		return b.Bytes()
	}
	offsets := make([]int, 0, len(p.objects))
	for i, o := range p.objects {
		offsets = append(offsets, b.Len())
		o.write(b, i+1, key)
	}
	start := b.Len()
	fmt.Fprintf(b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(b, "trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, trailer, start)
	return b.Bytes()
}

func (o object) write(b *bytes.Buffer, number int, key []byte) {
	if o.stream == nil {
		fmt.Fprintf(b, "%d 0 obj\n%s\nendobj\n", number, o.body)
		return
	}
	data := o.stream
	if key != nil { // algorithm 1 of ISO 32000-1, 7.6.2
		sum := md5.Sum(append(slices.Clone(key), byte(number), byte(number>>8), byte(number>>16), 0, 0))
		data = crypt(sum[:len(key)+5], data)
	}
	fmt.Fprintf(b, "%d 0 obj\n<<%s/Length %d>>\nstream\n%s\nendstream\nendobj\n", number, o.body, len(data), data)
}

// writePacked writes the objects that may go there into an object stream, behind them the cross-reference stream.
func (p *PDF) writePacked(b *bytes.Buffer, trailer string) {
	var head, body strings.Builder
	packed := 0
	entries := []byte{0, 0, 0, 0, 0, 0, 0}
	entry := func(kind byte, where, index int) {
		entries = append(entries, kind)
		entries = binary.BigEndian.AppendUint32(entries, uint32(where))
		entries = binary.BigEndian.AppendUint16(entries, uint16(index))
	}
	pack, xref := len(p.objects)+1, len(p.objects)+2
	for i, o := range p.objects {
		if o.stream != nil {
			entry(1, b.Len(), 0)
			o.write(b, i+1, nil)
			continue
		}
		fmt.Fprintf(&head, "%d %d ", i+1, body.Len())
		body.WriteString(o.body + "\n")
		entry(2, pack, packed)
		packed++
	}
	entry(1, b.Len(), 0)
	data := deflate([]byte(head.String() + body.String()))
	object{fmt.Sprintf("/Type/ObjStm/N %d/First %d/Filter/FlateDecode", packed, head.Len()), data}.write(b, pack, nil)
	start := b.Len()
	entry(1, start, 0)
	object{fmt.Sprintf("/Type/XRef/W[1 4 2]/Size %d%s", xref+1, trailer), entries}.write(b, xref, nil)
	fmt.Fprintf(b, "startxref\n%d\n%%%%EOF\n", start)
}

// padding is the one of algorithm 2 in ISO 32000-1, 7.6.3.3.
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

// encrypt adds what revision 2 of the standard security handler needs to the trailer, and returns the key.
func (p *PDF) encrypt(trailer *string) []byte {
	if p.UserPassword == "" && p.OwnerPassword == "" {
		return nil
	}
	const id, bits = "0123456789abcdef", -1 // all is permitted
	user, owner := (p.UserPassword + padding)[:32], (p.OwnerPassword + padding)[:32]
	ownerKey := md5.Sum([]byte(owner))
	o := crypt(ownerKey[:5], []byte(user))
	permissions := binary.LittleEndian.AppendUint32(nil, uint32(0xffffffff))
	sum := md5.Sum(slices.Concat([]byte(user), o, permissions, []byte(id)))
	key := sum[:5]
	*trailer += fmt.Sprintf("/ID[<%x><%x>]/Encrypt<</Filter/Standard/V 1/R 2/O<%x>/U<%x>/P %d>>",
		id, id, o, crypt(key, []byte(padding)), bits)
	return key
}

func crypt(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// Letter is a PDF with pages of letter size that hold lines of text in Helvetica, which needs no font file.
func Letter(pages ...[]string) []byte {
	var p PDF
	font := p.Add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	tree := p.Add("")
	var numbers []int
	for _, lines := range pages {
		contents := "BT /F 12 Tf 14 TL 72 720 Td\n"
		for _, line := range lines {
			contents += "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line) + ") ' \n"
		}
		numbers = append(numbers, p.Page(tree, 612, 792, fmt.Sprintf("/Font<</F %d 0 R>>", font), contents+"ET"))
	}
	return p.Bytes(p.Tree(tree, numbers...))
}
