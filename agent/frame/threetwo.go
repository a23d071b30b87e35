package frame

import "encoding/binary"

// Screens are 1080 wide more often than anything else, and pictures 720: three
// pixels become two in either direction. That case goes from RGBX to luma and
// chroma without sums in memory.
//
// A word holds two pixels: red and blue, or green alone, in lanes of 16 bits. A
// target pixel weighs 9, its chroma 36: 36*255 fits a lane.
const (
	redBlue = 0x00FF00FF00FF00FF // of two pixels
	single  = 0x0000FFFF0000FFFF // one lane of each pixel
)

// Factors for target pixels (weight 9) and for four together, fractionBits.
const (
	fractionBits = 24
	y9r          = redY << fractionBits / (9 * unit)
	y9g          = greenY << fractionBits / (9 * unit)
	y9b          = blueY << fractionBits / (9 * unit)
	cb36r        = redCb << fractionBits / (36 * unit)
	cb36g        = greenCb << fractionBits / (36 * unit)
	cr36g        = greenCr << fractionBits / (36 * unit)
	cr36b        = blueCr << fractionBits / (36 * unit)
	c36          = halfC << fractionBits / (36 * unit)
)

// threeToTwo makes two rows of luma and one of chroma of three source rows.
// Their length is a multiple of six pixels.
func threeToTwo(y0, y1, cb, cr, a, b, c []byte) {
	for len(a) >= 24 && len(b) >= 24 && len(c) >= 24 && len(y0) >= 4 && len(y1) >= 4 && len(cb) >= 2 && len(cr) >= 2 {
		u, v, w := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(c)
		m, mg := v&redBlue, v>>8&redBlue
		t0, t0g := u&redBlue*2+m, u>>8&redBlue*2+mg
		s0, s0g := w&redBlue*2+m, w>>8&redBlue*2+mg

		u, v, w = binary.LittleEndian.Uint64(a[8:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(c[8:])
		m, mg = v&redBlue, v>>8&redBlue
		t1, t1g := u&redBlue*2+m, u>>8&redBlue*2+mg
		s1, s1g := w&redBlue*2+m, w>>8&redBlue*2+mg

		u, v, w = binary.LittleEndian.Uint64(a[16:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(c[16:])
		m, mg = v&redBlue, v>>8&redBlue
		t2, t2g := u&redBlue*2+m, u>>8&redBlue*2+mg
		s2, s2g := w&redBlue*2+m, w>>8&redBlue*2+mg

		p, q := sixToFour(t0, t1, t2)
		pg, qg := sixToFour(t0g, t1g, t2g)
		binary.LittleEndian.PutUint32(y0, luma2(p, pg)|luma2(q, qg)<<16)
		o, r := sixToFour(s0, s1, s2)
		og, rg := sixToFour(s0g, s1g, s2g)
		binary.LittleEndian.PutUint32(y1, luma2(o, og)|luma2(r, rg)<<16)

		cb[0], cr[0] = chroma4(p+o, pg+og)
		cb[1], cr[1] = chroma4(q+r, qg+rg)
		a, b, c = a[24:], b[24:], c[24:]
		y0, y1, cb, cr = y0[4:], y1[4:], cb[2:], cr[2:]
	}
}

// sixToFour takes pixels 01, 23, 45 and returns 0+0+1, 1+2+2 and 3+3+4, 4+5+5.
func sixToFour(w0, w1, w2 uint64) (p, q uint64) {
	p = w0 + uint64(uint32(w0)) + w0>>32 + w1<<33
	q = w1>>32*2 + w2 + w2>>32<<32 + w2<<32
	return p, q
}

// luma2 is the luma of two target pixels, in the low 16 bits.
func luma2(rb, g uint64) uint32 {
	l := rb&single*y9r + g&single*y9g + rb>>16&single*y9b + (1<<(fractionBits-1) | 1<<(fractionBits+31))
	return uint32(l>>24&0xFF | l>>48&0xFF00)
}

// chroma4 is the chroma of four target pixels, two and two added already.
func chroma4(rb, g uint64) (cb, cr byte) {
	const middle = 128<<fractionBits + 1<<(fractionBits-1) - 1
	rb += rb >> 32
	g += g >> 32
	red, green, blue := int64(rb&0xFFFF), int64(g&0xFFFF), int64(rb>>16&0xFFFF)
	cb = byte((red*cb36r + green*cb36g + blue*c36 + middle) >> fractionBits)
	cr = byte((red*c36 + green*cr36g + blue*cr36b + middle) >> fractionBits)
	return cb, cr
}
