package apk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Types of chunks.
const (
	chunkStrings      = 0x0001
	chunkXML          = 0x0003
	chunkStartElement = 0x0102
	chunkEndElement   = 0x0103
	chunkResourceMap  = 0x0180
)

// Types of attribute values.
const (
	valueReference = 0x01
	valueString    = 0x03
	valueDecimal   = 0x10
	valueHex       = 0x11
	valueBoolean   = 0x12
)

// Bounds of a manifest. The largest known ones have some thousand strings.
const (
	maxStrings  = 1 << 17
	maxElements = 1 << 16
	maxAttrs    = 1 << 18 // of all elements
	maxDepth    = 64
)

// errFormat is wrapped by all that is wrong with a binary XML document.
var errFormat = errors.New("binary XML")

// attribute is one of an element. Its name is the resource that it is known by if it has one, for tools take
// the text away.
type attribute struct {
	name     string
	resource uint32
	kind     uint8
	text     string // of a string, or as it was written
	number   uint32
}

// xmlReader reads a document from its beginning to its end.
type xmlReader struct {
	data      []byte
	pool      pool
	resources []uint32
	err       error // of the strings
	depth     int
	elements  int
	attrs     int
}

// walk calls start for each element, with its depth from 0 on, and end when it is over.
func walk(data []byte, start func(depth int, name string, attrs []attribute), end func(depth int)) error {
	x := &xmlReader{data: data}
	kind, header, size, err := x.chunk(0)
	if err != nil {
		return err
	}
	if kind != chunkXML {
		return fmt.Errorf("%w: begins with a chunk %#x", errFormat, kind)
	}
	for at := header; at < size; {
		kind, header, length, err := x.chunk(at)
		if err != nil {
			return err
		}
		if at+length > size {
			return fmt.Errorf("%w: a chunk at %d ends after the document", errFormat, at)
		}
		body := x.data[at : at+length]
		switch kind {
		case chunkStrings:
			err = x.readStrings(body)
		case chunkResourceMap:
			x.resources = x.resources[:0]
			for b := body[header:]; len(b) >= 4; b = b[4:] {
				x.resources = append(x.resources, binary.LittleEndian.Uint32(b))
			}
		case chunkStartElement:
			err = x.startElement(body, header, start)
		case chunkEndElement:
			if x.depth--; x.depth < 0 {
				err = fmt.Errorf("%w: an element ends that has not begun", errFormat)
			} else {
				end(x.depth)
			}
		}
		if err != nil {
			return err
		}
		at += length
	}
	if x.depth != 0 || x.elements == 0 {
		return fmt.Errorf("%w: %d elements, %d of them open at the end", errFormat, x.elements, x.depth)
	}
	return nil
}

// chunk reads the header of a chunk; its size is at least its header's, and within the data.
func (x *xmlReader) chunk(at int) (kind, header, size int, err error) {
	if len(x.data)-at < 8 {
		return 0, 0, 0, fmt.Errorf("%w: cut off at %d", errFormat, at)
	}
	b := x.data[at:]
	kind, header = int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	length := binary.LittleEndian.Uint32(b[4:])
	if header < 8 || uint64(length) < uint64(header) || uint64(length) > uint64(len(b)) {
		return 0, 0, 0, fmt.Errorf("%w: a chunk at %d of %d bytes, %d of them header", errFormat, at, length, header)
	}
	return kind, header, int(length), nil
}

func (x *xmlReader) readStrings(b []byte) error {
	const header = 28
	if len(b) < header {
		return fmt.Errorf("%w: a string pool of %d bytes", errFormat, len(b))
	}
	count := binary.LittleEndian.Uint32(b[8:])
	flags := binary.LittleEndian.Uint32(b[16:])
	start := binary.LittleEndian.Uint32(b[20:])
	if count > maxStrings || header+uint64(count)*4 > uint64(len(b)) || uint64(start) > uint64(len(b)) {
		return fmt.Errorf("%w: a string pool of %d strings in %d bytes", errFormat, count, len(b))
	}
	x.pool = pool{offsets: b[header:][:4*count], data: b[start:], wide: flags&(1<<8) == 0, known: map[uint32]string{}}
	return nil
}

// pool holds the strings of a document. They may overlap, so each is decoded when it is asked for, and all of them
// together are bounded.
type pool struct {
	offsets, data []byte
	wide          bool // UTF-16
	known         map[uint32]string
	decoded       int // bytes
}

// maxDecoded bounds the strings that a document uses, in bytes.
const maxDecoded = 8 << 20

// get decodes a string; an index that is none gives nothing.
func (p *pool) get(index uint32) (string, error) {
	if uint64(index)*4 >= uint64(len(p.offsets)) {
		return "", nil
	}
	if s, ok := p.known[index]; ok {
		return s, nil
	}
	offset := binary.LittleEndian.Uint32(p.offsets[4*index:])
	if uint64(offset) > uint64(len(p.data)) {
		return "", fmt.Errorf("%w: string %d lies outside", errFormat, index)
	}
	decode := decode8
	if p.wide {
		decode = decode16
	}
	s, ok := decode(p.data[offset:])
	if p.decoded += len(s); !ok || p.decoded > maxDecoded {
		return "", fmt.Errorf("%w: string %d is cut off or too long", errFormat, index)
	}
	p.known[index] = s
	return s, nil
}

// decode8 reads a string of UTF-8: its length in characters, its length in bytes, the bytes.
func decode8(b []byte) (string, bool) {
	_, b, ok := length8(b)
	if !ok {
		return "", false
	}
	n, b, ok := length8(b)
	if !ok || n > len(b) || !utf8.Valid(b[:n]) {
		return "", false
	}
	return string(b[:n]), true
}

// length8 reads a length of one byte, or of two if the highest bit is set.
func length8(b []byte) (n int, rest []byte, ok bool) {
	switch {
	case len(b) < 1:
		return 0, nil, false
	case b[0]&0x80 == 0:
		return int(b[0]), b[1:], true
	case len(b) < 2:
		return 0, nil, false
	}
	return int(b[0]&0x7f)<<8 | int(b[1]), b[2:], true
}

// decode16 reads a string of UTF-16: its length in units of two bytes, the units.
func decode16(b []byte) (string, bool) {
	if len(b) < 2 {
		return "", false
	}
	n := int(binary.LittleEndian.Uint16(b))
	b = b[2:]
	if n&0x8000 != 0 {
		if len(b) < 2 {
			return "", false
		}
		n = n&0x7fff<<16 | int(binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	if 2*n > len(b) {
		return "", false
	}
	units := make([]uint16, n)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units)), true
}

// text is a string of the pool, or nothing.
func (x *xmlReader) text(index uint32) string {
	s, err := x.pool.get(index)
	if err != nil && x.err == nil {
		x.err = err
	}
	return s
}

func (x *xmlReader) startElement(b []byte, header int, start func(int, string, []attribute)) error {
	const fixed = 20 // bytes before the attributes
	if len(b) < header+fixed {
		return fmt.Errorf("%w: an element of %d bytes", errFormat, len(b))
	}
	if x.elements++; x.elements > maxElements || x.depth >= maxDepth {
		return fmt.Errorf("%w: %d elements, %d deep", errFormat, x.elements, x.depth)
	}
	e := b[header:]
	name := x.text(binary.LittleEndian.Uint32(e[4:]))
	first, size := int(binary.LittleEndian.Uint16(e[8:])), int(binary.LittleEndian.Uint16(e[10:]))
	count := int(binary.LittleEndian.Uint16(e[12:]))
	if x.attrs += count; size < 20 && count > 0 || first+count*size > len(e) || x.attrs > maxAttrs {
		return fmt.Errorf("%w: %d attributes of %d bytes in %d", errFormat, count, size, len(e))
	}
	attrs := make([]attribute, count)
	for i := range attrs {
		attrs[i] = x.attribute(e[first+i*size:])
	}
	if x.err != nil {
		return x.err
	}
	start(x.depth, name, attrs)
	x.depth++
	return nil
}

func (x *xmlReader) attribute(b []byte) attribute {
	name := binary.LittleEndian.Uint32(b[4:])
	a := attribute{
		name: x.text(name), text: x.text(binary.LittleEndian.Uint32(b[8:])), kind: b[15], number: binary.LittleEndian.Uint32(b[16:]),
	}
	if int64(name) < int64(len(x.resources)) {
		a.resource = x.resources[name]
	}
	if a.kind == valueString {
		a.text = x.text(a.number)
	}
	return a
}
