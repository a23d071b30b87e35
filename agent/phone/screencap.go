package phone

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"slices"
)

// Bounds of a screenshot.
const (
	maxEdge  = 8192     // pixels of a side
	maxPNG   = 64 << 20 // bytes
	maxLead  = 64 << 10 // bytes of text before a PNG
	firstBuf = 16 << 20 // bytes of pixels allocated before any have arrived
)

// Pixel formats of Android (PixelFormat): what raw screenshots are read in.
const (
	formatRGBA8888 = 1 // 4 bytes R G B A
	formatRGBX8888 = 2 // 4 bytes R G B and one that is not used
	formatRGB565   = 4 // 2 bytes little-endian, red in the high bits
)

// A raw screenshot begins with width, height and format, each a little-endian
// uint32; since Android 10 or so a colour space follows. Rows have no padding.
const (
	shortHeader = 12
	longHeader  = 16
)

// decodeRaw reads a raw screenshot with sides of at most limit pixels. Which
// header it has follows from the length.
func decodeRaw(r io.Reader, limit int) (*image.RGBA, error) {
	var head [shortHeader]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		return nil, endOf(err, fmt.Sprintf("%d of %d header bytes", n, shortHeader))
	}
	w := binary.LittleEndian.Uint32(head[0:])
	h := binary.LittleEndian.Uint32(head[4:])
	format := binary.LittleEndian.Uint32(head[8:])
	if w == 0 || h == 0 {
		return nil, fmt.Errorf("raw screenshot of %dx%d: %w", w, h, ErrMalformed)
	}
	if w > uint32(limit) || h > uint32(limit) {
		return nil, fmt.Errorf("raw screenshot of %dx%d (%q): %w", w, h, excerpt(head[:]), ErrTooLarge)
	}
	pixel := 4
	switch format {
	case formatRGBA8888, formatRGBX8888:
	case formatRGB565:
		pixel = 2
	default:
		return nil, fmt.Errorf("raw screenshot in pixel format %d: %w", format, ErrMalformed)
	}
	width, height := int(w), int(h)
	size := width * height * pixel
	body, err := readUpTo(r, size+longHeader-shortHeader+1)
	if err != nil {
		return nil, fmt.Errorf("raw screenshot: %w", err)
	}
	switch len(body) - size {
	case 0:
	case longHeader - shortHeader:
		body = body[longHeader-shortHeader:]
	default:
		if len(body) < size {
			return nil, fmt.Errorf("raw screenshot of %dx%d, %d of %d bytes: %w", w, h, len(body), size, ErrTruncated)
		}
		return nil, fmt.Errorf("raw screenshot of %dx%d does not have %d bytes: %w", w, h, size, ErrMalformed)
	}
	if pixel == 2 {
		return expand565(body, width, height), nil
	}
	for i := 3; i < len(body); i += 4 {
		body[i] = 0xFF // a screen is opaque
	}
	return &image.RGBA{Pix: body, Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}, nil
}

// readUpTo reads at most limit bytes, allocating as they arrive.
func readUpTo(r io.Reader, limit int) ([]byte, error) {
	b := make([]byte, 0, min(limit, firstBuf))
	for len(b) < limit {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(limit-len(b), len(b)))
		}
		n, err := r.Read(b[len(b):min(cap(b), limit)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil // the length tells whether it is complete
		case err != nil:
			return nil, endOf(err, fmt.Sprintf("after %d bytes", len(b)))
		}
	}
	return b, nil
}

func expand565(b []byte, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i, o := 0, 0; i+1 < len(b); i, o = i+2, o+4 {
		v := uint16(b[i]) | uint16(b[i+1])<<8
		r, g, bl := byte(v>>11), byte(v>>5&0x3F), byte(v&0x1F)
		img.Pix[o], img.Pix[o+1], img.Pix[o+2], img.Pix[o+3] = r<<3|r>>2, g<<2|g>>4, bl<<3|bl>>2, 0xFF
	}
	return img
}

var pngSignature = []byte("\x89PNG\r\n\x1a\n")

// decodePNG decodes a PNG with sides of at most limit pixels. Text may stand
// before it (a phone with several displays warns there) and after it.
func decodePNG(b []byte, limit int) (*image.RGBA, error) {
	start := bytes.Index(b[:min(len(b), maxLead)], pngSignature)
	if start < 0 {
		return nil, fmt.Errorf("no PNG but %q: %w", excerpt(b[:min(len(b), maxLead)]), ErrMalformed)
	}
	b = b[start:]
	end, err := pngEnd(b)
	if err != nil {
		return nil, err
	}
	b = b[:end]
	config, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("PNG header: %v: %w", err, ErrMalformed)
	}
	if config.Width > limit || config.Height > limit {
		return nil, fmt.Errorf("PNG of %dx%d: %w", config.Width, config.Height, ErrTooLarge)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("PNG of %dx%d: %v: %w", config.Width, config.Height, err, ErrMalformed)
	}
	return opaqueRGBA(img), nil
}

// pngEnd walks the chunks of a PNG and returns the index behind IEND.
func pngEnd(b []byte) (int, error) {
	at := len(pngSignature)
	for {
		if len(b)-at < 12 { // length, type, checksum
			return 0, fmt.Errorf("PNG, %d bytes without IEND: %w", len(b), ErrTruncated)
		}
		size := binary.BigEndian.Uint32(b[at:])
		if uint64(size) > uint64(len(b)-at-12) {
			return 0, fmt.Errorf("PNG, %d bytes, a chunk is cut: %w", len(b), ErrTruncated)
		}
		kind := string(b[at+4 : at+8])
		at += 12 + int(size)
		if kind == "IEND" {
			return at, nil
		}
	}
}

func opaqueRGBA(img image.Image) *image.RGBA {
	b := img.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(out, out.Bounds(), image.Black, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, b.Min, draw.Over)
	return out
}

// endOf turns the end of a stream into ErrTruncated.
func endOf(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", what, ErrTruncated)
	}
	return fmt.Errorf("%s: %w", what, err)
}
