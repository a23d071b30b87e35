package frame

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"io"
)

// A raw screenshot begins with width, height and pixel format, each a
// little-endian uint32; since Android 10 or so the colour space follows, 0 to 2
// or a data space (frameworks/base, cmds/screencap). Rows have no padding.
const (
	shortHeader = 12
	longHeader  = 16
)

// ReadRaw makes a picture of what `screencap` sends. It blocks until the stream
// is at its end, broken or stalled, or ctx ends. If r is an io.Closer it is
// closed in the last two cases; if not, r has to end a Read by itself.
func ReadRaw(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return sets.readRaw(ctx, r, o)
}

func (p *pool) readRaw(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return p.read(ctx, r, o, func(ctx context.Context, in *input, s *scratch, o Options) (*Picture, error) {
		s.rows.reset(in)
		return in.raw(ctx, &s.rows, o)
	})
}

// ReadGzip makes a picture of what `screencap | gzip` sends. It blocks as ReadRaw
// does.
func ReadGzip(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return sets.readGzip(ctx, r, o)
}

func (p *pool) readGzip(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return p.read(ctx, r, o, func(ctx context.Context, in *input, s *scratch, o Options) (*Picture, error) {
		s.packed.Reset(in)
		if head, err := s.packed.Peek(2); err == nil && (head[0] != 0x1F || head[1] != 0x8B) {
			head, _ = s.packed.Peek(s.packed.Buffered())
			return nil, fmt.Errorf("not compressed but %q: %w", excerpt(head), ErrMalformed)
		}
		z, err := s.gunzip.gzip(s.packed)
		if err != nil {
			return nil, failed(err, "compressed screenshot")
		}
		s.rows.reset(z)
		return in.raw(ctx, &s.rows, o)
	})
}

// read runs one of the readers over r.
func (p *pool) read(ctx context.Context, r io.Reader, o Options,
	reader func(context.Context, *input, *scratch, Options) (*Picture, error),
) (*Picture, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	s := scratches.Get().(*scratch)
	in := open(ctx, p, r, o)
	picture, err := reader(ctx, in, s, o)
	in.close()
	s.reset()
	scratches.Put(s)
	return picture, err
}

// header is the beginning of a raw screenshot.
type header struct {
	width, height int
	format        *format
	length        int // bytes
}

// raw reads a raw screenshot from b, which reads from in.
func (in *input) raw(ctx context.Context, b *buffer, o Options) (*Picture, error) {
	h, err := readHeader(b, in.pool.pixels, o.Header)
	if err != nil {
		return nil, err
	}
	s, err := in.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := in.held(); err != nil {
		return nil, failed(err, h.String())
	}
	s.begin(image.Pt(h.width, h.height), o)
	rowBytes := h.width * h.format.bytes
	for y := 0; y < h.height; {
		n := min(s.batch, h.height-y) * rowBytes
		if err := b.need(n); err != nil {
			return nil, h.short(err, (h.height-y)*rowBytes-len(b.rest()))
		}
		if err := in.held(); err != nil {
			return nil, failed(err, h.String())
		}
		for ; y < h.height && len(b.rest()) >= n; n = min(s.batch, h.height-y) * rowBytes {
			s.add(h.format.rgbx(s, b.rest()[:n], n/rowBytes))
			b.skip(n)
			y += n / rowBytes
		}
	}
	if err := h.end(b); err != nil {
		return nil, err
	}
	if err := in.held(); err != nil {
		return nil, failed(err, h.String())
	}
	return s.end(), nil
}

// readHeader reads the header and the four bytes after it.
func readHeader(b *buffer, maxPixels, length int) (h header, err error) {
	if err := b.need(longHeader); err != nil && len(b.rest()) < shortHeader {
		return h, failed(err, fmt.Sprintf("%d of %d header bytes, %q", len(b.rest()), shortHeader, excerpt(b.rest())))
	} else if err != nil {
		return h, failed(err, "raw screenshot without a pixel")
	}
	head := b.rest()
	w, height, kind := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	if w > maxSide || height > maxSide || int(w*height) > maxPixels {
		return h, fmt.Errorf("raw screenshot of %dx%d, %q: %w", w, height, excerpt(head), ErrTooLarge)
	}
	h = header{width: int(w), height: int(height), format: formats[kind], length: length}
	if w == 0 || height == 0 || h.format == nil {
		return h, fmt.Errorf("raw screenshot of %dx%d in pixel format %d: %w", w, height, kind, ErrMalformed)
	}
	if h.length == 0 {
		h.length = longHeader
		if next := [4]byte(head[shortHeader:]); h.format.pixel(next) {
			h.length = shortHeader
		}
	}
	b.skip(h.length)
	return h, nil
}

func (h *header) String() string {
	return fmt.Sprintf("raw screenshot of %dx%d", h.width, h.height)
}

// short explains a stream that lacks so many bytes.
func (h *header) short(err error, missing int) error {
	if err == io.EOF && h.length == longHeader && missing == longHeader-shortHeader {
		return fmt.Errorf("%s: %w", h, &HeaderError{Fits: shortHeader})
	}
	return failed(err, fmt.Sprintf("%s, %d of %d bytes are missing", h, missing, h.width*h.height*h.format.bytes))
}

// end checks that nothing comes after the last pixel.
func (h *header) end(b *buffer) error {
	const other = longHeader - shortHeader
	err := b.need(other + 1)
	switch extra := len(b.rest()); {
	case err == io.EOF && extra == 0:
		return nil
	case err == io.EOF && extra == other && h.length == shortHeader:
		return fmt.Errorf("%s: %w", h, &HeaderError{Fits: longHeader})
	case err == nil || err == io.EOF:
		return fmt.Errorf("%s goes on after its last pixel: %w", h, ErrMalformed)
	}
	return failed(err, h.String())
}
