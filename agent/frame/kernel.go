package frame

import "encoding/binary"

// Most screens are 1080, 1440 or 720 pixels wide and most pictures 720: three
// pixels become two in either direction, two become one, or one stays one. Those
// cases go from RGBX to luma and chroma without sums in memory.
//
// A word holds two pixels: red and blue, or green alone, in lanes of 16 bits. A
// target pixel weighs at most 9, its chroma four times that: 36*255 fits a lane.
const (
	redBlue = 0x00FF00FF00FF00FF // of two pixels
	single  = 0x0000FFFF0000FFFF // one lane of each pixel
)

// kernel makes two rows of luma and one of chroma of so many source rows as it
// takes.
type kernel struct {
	ratio  ratio
	rows   int // it takes
	pixels int // of which a row has a multiple
	run    func(y0, y1, cb, cr []byte, rows *[maxRows][]byte)
}

// maxRows is how many rows a kernel takes at most.
const maxRows = 4

var kernels = []kernel{
	{ratio{3, 2}, 3, 6, threeToTwo},
	{ratio{2, 1}, 4, 4, twoToOne},
	{ratio{1, 1}, 2, 4, oneToOne},
}

// kernelFor returns nil if there is none.
func kernelFor(r ratio, width int) *kernel {
	for i := range kernels {
		if k := &kernels[i]; k.ratio == r && width%k.pixels == 0 {
			return k
		}
	}
	return nil
}

//go:norace
func threeToTwo(y0, y1, cb, cr []byte, rows *[maxRows][]byte) {
	a, b, c := rows[0], rows[1], rows[2]
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
		binary.LittleEndian.PutUint32(y0, weight9.luma(p, pg)|weight9.luma(q, qg)<<16)
		o, r := sixToFour(s0, s1, s2)
		og, rg := sixToFour(s0g, s1g, s2g)
		binary.LittleEndian.PutUint32(y1, weight9.luma(o, og)|weight9.luma(r, rg)<<16)

		cb[0], cr[0] = weight9.chroma(p+o, pg+og)
		cb[1], cr[1] = weight9.chroma(q+r, qg+rg)
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

//go:norace
func twoToOne(y0, y1, cb, cr []byte, rows *[maxRows][]byte) {
	a, b, c, d := rows[0], rows[1], rows[2], rows[3]
	for len(a) >= 16 && len(b) >= 16 && len(c) >= 16 && len(d) >= 16 && len(y0) >= 2 && len(y1) >= 2 && len(cb) >= 1 && len(cr) >= 1 {
		p, pg := fourToTwo(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(a[8:]), binary.LittleEndian.Uint64(b[8:]))
		binary.LittleEndian.PutUint16(y0, uint16(weight4.luma(p, pg)))
		q, qg := fourToTwo(binary.LittleEndian.Uint64(c), binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(c[8:]), binary.LittleEndian.Uint64(d[8:]))
		binary.LittleEndian.PutUint16(y1, uint16(weight4.luma(q, qg)))
		cb[0], cr[0] = weight4.chroma(p+q, pg+qg)
		a, b, c, d = a[16:], b[16:], c[16:], d[16:]
		y0, y1, cb, cr = y0[2:], y1[2:], cb[1:], cr[1:]
	}
}

// fourToTwo adds two pixels of two rows, and two more.
func fourToTwo(u0, v0, u1, v1 uint64) (rb, g uint64) {
	s0, s1 := u0&redBlue+v0&redBlue, u1&redBlue+v1&redBlue
	g0, g1 := u0>>8&redBlue+v0>>8&redBlue, u1>>8&redBlue+v1>>8&redBlue
	return uint64(uint32(s0+s0>>32)) | (s1+s1<<32)>>32<<32, uint64(uint32(g0+g0>>32)) | (g1+g1<<32)>>32<<32
}

//go:norace
func oneToOne(y0, y1, cb, cr []byte, rows *[maxRows][]byte) {
	a, b := rows[0], rows[1]
	for len(a) >= 16 && len(b) >= 16 && len(y0) >= 4 && len(y1) >= 4 && len(cb) >= 2 && len(cr) >= 2 {
		u, v := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		p, pg, q, qg := u&redBlue, u>>8&redBlue, v&redBlue, v>>8&redBlue
		cb[0], cr[0] = weight1.chroma(p+q, pg+qg)
		up, down := weight1.luma(p, pg), weight1.luma(q, qg)
		u, v = binary.LittleEndian.Uint64(a[8:]), binary.LittleEndian.Uint64(b[8:])
		p, pg, q, qg = u&redBlue, u>>8&redBlue, v&redBlue, v>>8&redBlue
		cb[1], cr[1] = weight1.chroma(p+q, pg+qg)
		binary.LittleEndian.PutUint32(y0, up|weight1.luma(p, pg)<<16)
		binary.LittleEndian.PutUint32(y1, down|weight1.luma(q, qg)<<16)
		a, b = a[16:], b[16:]
		y0, y1, cb, cr = y0[4:], y1[4:], cb[2:], cr[2:]
	}
}

// factors turn the sums of a kernel into luma and chroma, pairBits of fraction.
type factors struct {
	yr, yg, yb    uint64
	cbr, cbg, cbb int64 // for the sum of four pixels
	crr, crg, crb int64
}

const pairBits = 24

var weight1, weight4, weight9 = factorsOf(1), factorsOf(4), factorsOf(9)

func factorsOf(weight int64) factors {
	of := func(part, weight int64) int64 { return part << pairBits / (weight * unit) }
	return factors{
		uint64(of(redY, weight)), uint64(of(greenY, weight)), uint64(of(blueY, weight)),
		of(redCb, 4*weight), of(greenCb, 4*weight), of(halfC, 4*weight),
		of(halfC, 4*weight), of(greenCr, 4*weight), of(blueCr, 4*weight),
	}
}

// luma is the luma of two target pixels, in the low 16 bits.
func (f *factors) luma(rb, g uint64) uint32 {
	l := rb&single*f.yr + g&single*f.yg + rb>>16&single*f.yb + (1<<(pairBits-1) | 1<<(pairBits+31))
	return uint32(l>>24&0xFF | l>>48&0xFF00)
}

// chroma is the chroma of four target pixels, two and two added already.
func (f *factors) chroma(rb, g uint64) (cb, cr byte) {
	const middle = 128<<pairBits + 1<<(pairBits-1) - 1
	rb += rb >> 32
	g += g >> 32
	red, green, blue := int64(rb&0xFFFF), int64(g&0xFFFF), int64(rb>>16&0xFFFF)
	cb = byte((red*f.cbr + green*f.cbg + blue*f.cbb + middle) >> pairBits)
	cr = byte((red*f.crr + green*f.crg + blue*f.crb + middle) >> pairBits)
	return cb, cr
}
