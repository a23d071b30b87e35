package frame

import "encoding/binary"

// format is a pixel format (android.graphics.PixelFormat, system/graphics.h).
type format struct {
	bytes int // of a pixel
	// pixel tells from the four bytes after a short header whether they are pixels
	// rather than a colour space. It may be wrong; the length decides.
	pixel func(next [4]byte) bool
	// expand writes pixels as RGBX, four bytes each. It is nil if they are RGBX.
	expand func(to, pixels []byte)
}

// Known formats. A screen is opaque: its alpha has all bits set.
var formats = map[uint32]*format{
	1:  {4, fullAlpha, nil},        // RGBA_8888
	2:  {4, fullAlpha, nil},        // RGBX_8888, X being full in practice
	3:  {3, noColorSpace, from888}, // RGB_888
	4:  {2, noColorSpace, from565}, // RGB_565
	5:  {4, fullAlpha, fromBGRA},   // BGRA_8888
	43: {4, full2Alpha, from1010102},
}

func fullAlpha(next [4]byte) bool    { return next[3] == 0xFF }
func full2Alpha(next [4]byte) bool   { return next[3] >= 0xC0 }
func noColorSpace(next [4]byte) bool { return binary.LittleEndian.Uint32(next[:]) > 0xFF }

// rgbx returns n rows as RGBX, in a buffer of s if they have to be converted.
func (f *format) rgbx(s *set, pixels []byte, n int) []byte {
	if f.expand == nil {
		return pixels
	}
	to := s.rows(n)
	f.expand(to, pixels)
	return to
}

func from888(to, pixels []byte) {
	for ; len(to) >= 4 && len(pixels) >= 3; to, pixels = to[4:], pixels[3:] {
		to[0], to[1], to[2] = pixels[0], pixels[1], pixels[2]
	}
}

// from565 reads little-endian words, red in the high bits.
func from565(to, pixels []byte) {
	for ; len(to) >= 4 && len(pixels) >= 2; to, pixels = to[4:], pixels[2:] {
		v := binary.LittleEndian.Uint16(pixels)
		r, g, b := byte(v>>11), byte(v>>5&0x3F), byte(v&0x1F)
		to[0], to[1], to[2] = r<<3|r>>2, g<<2|g>>4, b<<3|b>>2
	}
}

func fromBGRA(to, pixels []byte) {
	for ; len(to) >= 4 && len(pixels) >= 4; to, pixels = to[4:], pixels[4:] {
		to[0], to[1], to[2] = pixels[2], pixels[1], pixels[0]
	}
}

// from1010102 reads little-endian words, red in the low bits, and keeps the eight
// high bits of ten.
func from1010102(to, pixels []byte) {
	for ; len(to) >= 4 && len(pixels) >= 4; to, pixels = to[4:], pixels[4:] {
		v := binary.LittleEndian.Uint32(pixels)
		to[0], to[1], to[2] = byte(v>>2), byte(v>>12), byte(v>>22)
	}
}
