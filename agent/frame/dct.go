package frame

import "encoding/binary"

// The forward DCT is that of Arai, Agui and Nakajima (1988): five
// multiplications for eight values; its output is too large by known factors,
// which the quantizer divides away. It runs on two values at a time: a uint64
// is the sum of one and of 2^32 times another, both signed, so that sums,
// differences and products with constants act on both halves at once. Only
// shifts to the right must be kept from mixing them.

const (
	// dctBits is the fraction of the constants, keptBits of what the first pass
	// hands to the second. A pass makes a value at most 10.05 times as large, so that
	// 127.5 becomes 12886 in two: with both fractions, less than 2^31. What lies in
	// between may leave its half; only the end has to fit.
	dctBits  = 13
	keptBits = 4

	// bias is added between the passes so that no half is negative: the first pass
	// gives less than 2^11. It comes out eight times in the second pass's output 0
	// and in no other.
	bias = 1 << (11 + keptBits)
)

// Constants of the algorithm, dctBits of fraction.
const (
	cos4    = 5793  // cos(4 pi/16)
	cos6    = 3135  // cos(6 pi/16)
	cos2m6  = 4433  // cos(2 pi/16) - cos(6 pi/16)
	cos2p6  = 10703 // cos(2 pi/16) + cos(6 pi/16)
	samples = 0x000000FF000000FF
)

// both puts v into both halves.
func both(v uint64) uint64 { return v<<32 | v }

// coefficients are what the DCT gives: of [v][i], v is the frequency along x, and
// 2i and 2i+1 are those along y of the low and the high half. They are not
// divided yet, and those with v = 0 have 8*bias added.
type coefficients [8][4]uint64

// dct transforms the 8x8 samples at the beginning of in, rows being stride apart.
//
//go:norace
func dct(to *coefficients, in []byte, stride int) {
	var t [8][4]uint64
	_ = in[7*stride+7]
	r0, r1 := binary.LittleEndian.Uint64(in), binary.LittleEndian.Uint64(in[stride:])
	r2, r3 := binary.LittleEndian.Uint64(in[2*stride:]), binary.LittleEndian.Uint64(in[3*stride:])
	r4, r5 := binary.LittleEndian.Uint64(in[4*stride:]), binary.LittleEndian.Uint64(in[5*stride:])
	r6, r7 := binary.LittleEndian.Uint64(in[6*stride:]), binary.LittleEndian.Uint64(in[7*stride:])
	for i := range 4 { // columns i and i+4
		t[0][i], t[1][i], t[2][i], t[3][i], t[4][i], t[5][i], t[6][i], t[7][i] = butterfly(
			r0&samples, r1&samples, r2&samples, r3&samples, r4&samples, r5&samples, r6&samples, r7&samples)
		r0, r1, r2, r3, r4, r5, r6, r7 = r0>>8, r1>>8, r2>>8, r3>>8, r4>>8, r5>>8, r6>>8, r7>>8
	}
	// Two rows, with the columns i and i+4 in one word, become eight words with
	// both rows in each.
	const (
		shift = dctBits - keptBits
		whole = bias                       // of rows without a fraction
		part  = bias<<shift + 1<<(shift-1) // of the others: the bias, and one half to round
		level = 128 * 8 << keptBits        // JPEG's samples are signed
		low   = 1<<(32-shift) - 1
	)
	for i := range 4 {
		var x [8]uint64
		for j := range 4 {
			a, b := t[2*i][j], t[2*i+1][j]
			switch i {
			case 0:
				a = a<<keptBits + both(whole-level)
			case 2:
				a = a<<keptBits + both(whole)
			default:
				a = (a + both(part)) >> shift
			}
			b = (b + both(part)) >> shift
			x[j] = a&low | b&low<<32
			x[j+4] = a>>32 | b>>32<<32
		}
		to[0][i], to[1][i], to[2][i], to[3][i], to[4][i], to[5][i], to[6][i], to[7][i] = butterfly(
			x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
	}
}

// butterfly transforms eight values. Its outputs 0 and 4 have no fraction, the
// others one of dctBits.
func butterfly(x0, x1, x2, x3, x4, x5, x6, x7 uint64) (_, _, _, _, _, _, _, _ uint64) {
	a0, a7 := x0+x7, x0-x7
	a1, a6 := x1+x6, x1-x6
	a2, a5 := x2+x5, x2-x5
	a3, a4 := x3+x4, x3-x4

	b0, b3 := a0+a3, a0-a3
	b1, b2 := a1+a2, a1-a2
	z1 := (b2 + b3) * cos4
	b3 <<= dctBits

	b4, b5, b6 := a4+a5, a5+a6, a6+a7
	z5 := (b4 - b6) * cos6
	z2 := b4*cos2m6 + z5
	z4 := b6*cos2p6 + z5
	z3 := b5 * cos4
	a7 <<= dctBits
	z11, z13 := a7+z3, a7-z3
	return b0 + b1, z11 + z4, b3 + z1, z13 - z2, b0 - b1, z13 + z2, b3 - z1, z11 - z4
}

// aanScale[k] is by how much the algorithm's output k is too large, apart from
// the square root of 8: 1, and for k > 0 the square root of 2 times cos(k pi/16).
var aanScale = [8]float64{1, 1.387039845, 1.306562965, 1.175875602, 1, 0.785694958, 0.541196100, 0.275899379}
