package frame

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image/jpeg"
	"io"
)

const (
	jpegSignature = "\xFF\xD8\xFF"
	jpegEnd       = "\xFF\xD9"

	// maxJPEG bounds a JPEG, in bytes, and maxWhole the pixels of one: it is held as
	// a whole, decoded.
	maxJPEG  = 16 << 20
	maxWhole = 16 << 20
)

// ReadJPEG makes a picture of what `screencap -j` sends. Text may stand before
// the JPEG. It blocks as ReadRaw does.
func ReadJPEG(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return sets.readJPEG(ctx, r, o)
}

func (p *pool) readJPEG(ctx context.Context, r io.Reader, o Options) (*Picture, error) {
	return p.read(ctx, r, o, func(ctx context.Context, in *input, s *scratch, o Options) (*Picture, error) {
		s.rows.reset(in)
		if err := s.rows.find(jpegSignature, "JPEG"); err != nil {
			return nil, err
		}
		set, err := in.take(ctx)
		if err != nil {
			return nil, err
		}
		set.whole = set.whole[:0]
		for {
			if err := in.held(); err != nil {
				return nil, failed(err, "JPEG")
			}
			set.whole = append(set.whole, s.rows.rest()...)
			s.rows.skip(len(s.rows.rest()))
			if len(set.whole) > maxJPEG {
				return nil, fmt.Errorf("JPEG of more than %d bytes: %w", maxJPEG, ErrTooLarge)
			}
			if err := s.rows.need(1); err == io.EOF {
				break
			} else if err != nil {
				return nil, failed(err, "JPEG")
			}
		}
		if err := in.held(); err != nil {
			return nil, failed(err, "JPEG")
		}
		return set.decode(o, p.pixels)
	})
}

// decode makes a picture of the JPEG in s.whole.
func (s *set) decode(o Options, maxPixels int) (*Picture, error) {
	if err := checkJPEG(s.whole, min(maxPixels, maxWhole)); err != nil {
		return nil, err
	}
	if !bytes.Contains(s.whole, []byte(jpegEnd)) {
		return nil, fmt.Errorf("JPEG of %d bytes without an end: %w", len(s.whole), ErrTruncated)
	}
	img, err := jpeg.Decode(bytes.NewReader(s.whole))
	if err != nil {
		return nil, fmt.Errorf("JPEG of %d bytes: %v: %w", len(s.whole), err, ErrMalformed)
	}
	// What is above the mask has left traces in blocks that reach below it.
	o.Mask = (o.Mask + stripRows - 1) / stripRows * stripRows
	return s.encode(img, o), nil
}

// checkJPEG walks the segments up to the frame header and bounds its size. Only
// sequential JPEGs pass: a progressive one costs several times its pixels.
func checkJPEG(b []byte, maxPixels int) error {
	if mangled(b) {
		return fmt.Errorf("JPEG whose line ends were changed: %w", ErrMalformed)
	}
	for at := 2; ; {
		if len(b)-at < 4 {
			return fmt.Errorf("JPEG of %d bytes without a frame: %w", len(b), ErrTruncated)
		}
		marker, length := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if b[at] != 0xFF || length < 2 {
			return fmt.Errorf("JPEG with %q for a segment: %w", b[at:at+4], ErrMalformed)
		}
		if len(b)-at-2 < length {
			return fmt.Errorf("JPEG, a segment is cut: %w", ErrTruncated)
		}
		segment := b[at+4 : at+2+length]
		switch {
		case marker == 0xC0 || marker == 0xC1: // sequential
			if len(segment) < 6 {
				return fmt.Errorf("JPEG with a short frame header: %w", ErrMalformed)
			}
			h, w := int(binary.BigEndian.Uint16(segment[1:])), int(binary.BigEndian.Uint16(segment[3:]))
			switch {
			case w > maxSide || h > maxSide || w*h > maxPixels:
				return fmt.Errorf("JPEG of %dx%d: %w", w, h, ErrTooLarge)
			case w == 0 || h == 0 || segment[5] != 1 && segment[5] != 3:
				return fmt.Errorf("JPEG of %dx%d with %d components: %w", w, h, segment[5], ErrMalformed)
			}
			return nil
		case marker < 0xC0 || marker >= 0xD0 && marker <= 0xDA || marker > 0xC1 && marker < 0xD0 && marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
			return fmt.Errorf("JPEG with a marker %#x before its frame: %w", marker, ErrMalformed)
		}
		at += 2 + length
	}
}

// mangled tells whether each LF follows a CR, as after a terminal. A JPEG has no
// checksum that would show it.
func mangled(b []byte) bool {
	const enough = 8
	n := bytes.Count(b, []byte{'\n'})
	return n >= enough && n == bytes.Count(b, []byte("\r\n"))
}
