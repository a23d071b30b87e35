package frame

import (
	"encoding/binary"
	"image"
)

// jpegWriter writes a baseline JPEG in 4:2:0, sixteen rows at a time.
type jpegWriter struct {
	bits         bitWriter
	luma, chroma quantizer
	dc           [3]int32 // of the block before, a component each
	coefficients coefficients
	block        block
}

// stripRows is how many rows of luma a strip has, and how many columns one of
// its units. Chroma has half as many.
const stripRows = 16

// begin writes what stands before the picture.
func (w *jpegWriter) begin(size image.Point, quality int) {
	w.luma.plan(&lumaSteps, quality)
	w.chroma.plan(&chromaSteps, quality)
	w.dc = [3]int32{}
	b := append(w.bits.out[:0], 0xFF, 0xD8) // SOI
	for i, q := range []*quantizer{&w.luma, &w.chroma} {
		b = append(b, 0xFF, 0xDB, 0, 67, byte(i)) // DQT
		b = append(b, q.steps[:]...)
	}
	b = append(b, 0xFF, 0xC0, 0, 17, 8) // SOF0, 8 bits a sample
	b = binary.BigEndian.AppendUint16(b, uint16(size.Y))
	b = binary.BigEndian.AppendUint16(b, uint16(size.X))
	b = append(b, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1) // number, sampling and table of three components
	for i := range 2 {
		for class, h := range []*huffman{&dcTables[i], &acTables[i]} {
			b = append(b, 0xFF, 0xC4) // DHT
			b = binary.BigEndian.AppendUint16(b, uint16(2+1+len(h.counts)+len(h.symbols)))
			b = append(b, byte(class<<4|i))
			b = append(b, h.counts[:]...)
			b = append(b, h.symbols...)
		}
	}
	b = append(b, 0xFF, 0xDA, 0, 12, 3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0) // SOS: tables of the components, all coefficients
	w.bits = bitWriter{out: b}
}

// strip writes sixteen rows of luma, stride bytes each, and eight of chroma, each
// half as long; stride is a multiple of 16.
func (w *jpegWriter) strip(y, cb, cr []byte, stride int) {
	for x := 0; x < stride; x += stripRows {
		w.add(&w.luma, 0, 0, y[x:], stride)
		w.add(&w.luma, 0, 0, y[x+8:], stride)
		w.add(&w.luma, 0, 0, y[8*stride+x:], stride)
		w.add(&w.luma, 0, 0, y[8*stride+x+8:], stride)
		w.add(&w.chroma, 1, 1, cb[x/2:], stride/2)
		w.add(&w.chroma, 1, 2, cr[x/2:], stride/2)
	}
}

// add writes the 8x8 block at the beginning of in.
func (w *jpegWriter) add(q *quantizer, table, component int, in []byte, stride int) {
	if isFlat(in, stride) {
		q.flat(&w.block, in[0])
	} else {
		dct(&w.coefficients, in, stride)
		q.divide(&w.block, &w.coefficients)
	}
	dc := int32(w.block.values[0])
	w.bits.block(&dcCodes[table], &acCodes[table], dc-w.dc[component], &w.block)
	w.dc[component] = dc
}

// isFlat tells whether all samples of a block are equal, as in most of a screen.
//
//go:norace
func isFlat(in []byte, stride int) bool {
	_ = in[7*stride+7]
	first := binary.LittleEndian.Uint64(in)
	differ := first ^ (first<<8 | first>>56)
	for i := 1; i < 8; i++ {
		differ |= first ^ binary.LittleEndian.Uint64(in[i*stride:])
	}
	return differ == 0
}

// end completes the JPEG and returns it; it is valid until the next begin.
func (w *jpegWriter) end() []byte {
	w.bits.end()
	w.bits.out = append(w.bits.out, 0xFF, 0xD9) // EOI
	return w.bits.out
}
