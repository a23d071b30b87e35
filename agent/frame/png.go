package frame

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"io"
)

const (
	pngSignature = "\x89PNG\r\n\x1a\n"

	// maxLead bounds the text before a PNG or JPEG: a phone with several displays
	// warns there, in about 400 bytes.
	maxLead = 16 << 10
	// maxPNG bounds the chunks of a PNG, in bytes.
	maxPNG = 64 << 20
)

// ReadPNG makes a picture of what `screencap -p` sends. Text may stand before
// and after the PNG. It blocks as ReadRaw does.
func ReadPNG(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return sets.readPNG(ctx, r, o)
}

func (p *pool) readPNG(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return p.read(ctx, r, o, func(ctx context.Context, in *input, s *scratch, o Options) (*Picture, error) {
		s.rows.reset(in)
		if err := s.rows.find(pngSignature, "PNG"); err != nil {
			return nil, err
		}
		d := pngReader{b: &s.rows, pixels: p.pixels, budget: maxPNG}
		return d.picture(ctx, in, s, o)
	})
}

// find reads until what is searched for is at the beginning of what is there.
func (b *buffer) find(what, name string) error {
	for n := len(what); ; n = len(b.rest()) + 1 {
		err := b.need(n)
		if at := bytes.Index(b.rest(), []byte(what)); at >= 0 {
			b.skip(at)
			return nil
		}
		if err == io.EOF && len(b.rest()) == 0 {
			return fmt.Errorf("no %s: %w", name, ErrTruncated)
		}
		if err == io.EOF || err == nil && len(b.rest()) >= maxLead {
			return fmt.Errorf("no %s but %q: %w", name, excerpt(b.rest()), ErrMalformed)
		}
		if err != nil {
			return failed(err, name)
		}
	}
}

// pngReader reads the chunks of a PNG (W3C PNG, third edition). As an io.Reader it
// reads what the IDAT chunks hold.
type pngReader struct {
	b      *buffer
	pixels int // it may have
	budget int // bytes of chunks that may still come
	kind   string
	left   int    // data bytes of the chunk that are not read
	sum    uint32 // of the chunk so far
	fault  error

	width, height int
	samples       int  // 3 or 4 a pixel
	deep          bool // 16 bits a sample, else 8
}

// chunk reads the beginning of the next chunk.
func (d *pngReader) chunk() error {
	if err := d.b.need(8); err != nil {
		return failed(err, "PNG without IEND")
	}
	head := d.b.rest()
	length := binary.BigEndian.Uint32(head)
	d.kind = string(head[4:8])
	if int64(length)+12 > int64(d.budget) {
		return fmt.Errorf("PNG with %d bytes in a chunk %q: %w", length, d.kind, ErrTooLarge)
	}
	d.budget -= int(length) + 12
	d.left = int(length)
	d.sum = crc32.ChecksumIEEE(head[4:8])
	d.b.skip(8)
	return nil
}

// take returns some of the chunk's data, at most n bytes, valid until the next
// call; none at the chunk's end, whose checksum is then compared.
func (d *pngReader) take(n int) ([]byte, error) {
	if d.left == 0 {
		if err := d.b.need(4); err != nil {
			return nil, failed(err, fmt.Sprintf("PNG, chunk %q", d.kind))
		}
		sum := binary.BigEndian.Uint32(d.b.rest())
		d.b.skip(4)
		if sum != d.sum {
			return nil, fmt.Errorf("PNG, the checksum of a chunk %q is wrong: %w", d.kind, ErrMalformed)
		}
		return nil, nil
	}
	if err := d.b.need(1); err != nil {
		return nil, failed(err, fmt.Sprintf("PNG, chunk %q", d.kind))
	}
	data := d.b.rest()
	data = data[:min(len(data), n, d.left)]
	d.b.skip(len(data))
	d.left -= len(data)
	d.sum = crc32.Update(d.sum, crc32.IEEETable, data)
	return data, nil
}

// Read implements io.Reader over the IDAT chunks. Its errors are this package's.
func (d *pngReader) Read(p []byte) (int, error) {
	for d.kind == "IDAT" && d.fault == nil && len(p) > 0 {
		data, err := d.take(len(p))
		if err == nil && data == nil {
			err = d.chunk()
		}
		if d.fault = err; len(data) > 0 {
			return copy(p, data), nil
		}
	}
	if d.fault != nil {
		return 0, d.fault
	}
	return 0, io.EOF
}

// skipTo skips chunks until one of a kind.
func (d *pngReader) skipTo(kind string) error {
	for d.kind != kind {
		for {
			data, err := d.take(chunkBytes)
			if err != nil {
				return err
			}
			if data == nil {
				break
			}
		}
		if err := d.chunk(); err != nil {
			return err
		}
		if d.kind == "IEND" && kind != "IEND" {
			return fmt.Errorf("PNG without %s: %w", kind, ErrMalformed)
		}
	}
	return nil
}

// header reads the first chunk.
func (d *pngReader) header() error {
	d.b.skip(len(pngSignature))
	if err := d.chunk(); err != nil {
		return err
	}
	const size = 13
	if d.kind != "IHDR" || d.left != size {
		return fmt.Errorf("PNG begins with a chunk %q of %d bytes: %w", d.kind, d.left, ErrMalformed)
	}
	if err := d.b.need(size); err != nil {
		return failed(err, "PNG header")
	}
	head, err := d.take(size)
	if err != nil {
		return err
	}
	w, h := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	bits, color := head[8], head[9]
	plain := head[10] == 0 && head[11] == 0 && head[12] == 0 // the only compression and filters there are; no interlace
	switch {
	case w > maxSide || h > maxSide || int(w*h) > d.pixels:
		return fmt.Errorf("PNG of %dx%d: %w", w, h, ErrTooLarge)
	case w == 0 || h == 0:
		return fmt.Errorf("PNG of %dx%d: %w", w, h, ErrMalformed)
	case bits != 8 && bits != 16 || color != 2 && color != 6 || !plain:
		return fmt.Errorf("PNG of colour type %d with %d bits (%v) is none of a screen: %w", color, bits, head[10:], ErrMalformed)
	}
	d.width, d.height, d.deep, d.samples = int(w), int(h), bits == 16, 3
	if color == 6 {
		d.samples = 4
	}
	return nil
}

// picture reads the PNG that begins in d.b.
func (d *pngReader) picture(ctx context.Context, in *input, s *scratch, o Options) (*Picture, error) {
	if err := d.header(); err != nil {
		return nil, err
	}
	if err := d.skipTo("IDAT"); err != nil {
		return nil, err
	}
	s.packed.Reset(d)
	z, err := s.unzlib.zlib(s.packed)
	if err != nil {
		return nil, d.failed(err)
	}
	set, err := in.take(ctx)
	if err != nil {
		return nil, err
	}
	set.begin(image.Pt(d.width, d.height), o)
	if err := d.rows(in, s, set, z); err != nil {
		return nil, err
	}
	if err := d.end(z, s.packed); err != nil {
		return nil, err
	}
	if err := in.held(); err != nil {
		return nil, failed(err, "PNG")
	}
	return set.end(), nil
}

// failed explains an error of the decompressor, which may be one of Read.
func (d *pngReader) failed(err error) error {
	if d.fault != nil {
		return d.fault
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF { // but all chunks are there
		err = ErrMalformed
	}
	return failed(err, fmt.Sprintf("pixels of a PNG of %dx%d", d.width, d.height))
}

// end checks that nothing comes after the last row and reads up to IEND.
func (d *pngReader) end(z io.Reader, packed *bufio.Reader) error {
	var more [1]byte
	for {
		n, err := z.Read(more[:])
		if n > 0 {
			return fmt.Errorf("PNG of %dx%d goes on after its last row: %w", d.width, d.height, ErrMalformed)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return d.failed(err)
		}
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { // bytes of IDAT that nobody needs
		return d.failed(err)
	}
	if err := d.skipTo("IEND"); err != nil {
		return err
	}
	if d.left != 0 {
		return fmt.Errorf("PNG with %d bytes in IEND: %w", d.left, ErrMalformed)
	}
	_, err := d.take(0)
	return err
}
