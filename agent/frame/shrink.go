package frame

import "encoding/binary"

// A packed colour holds red, green and blue in lanes of 21 bits: one
// multiplication weighs all three, one addition sums them.
const (
	laneBits = 21
	laneMask = 1<<laneBits - 1
)

// pack spreads the bytes R, G, B and one that is not used.
func pack(p uint32) uint64 {
	v := uint64(p)
	return v&0xFF | v&0xFF00<<(laneBits-8) | v&0xFF0000<<(2*laneBits-16)
}

// packRow packs a row of RGBX. Room that is left over stays as it is.
//
//go:norace
func packRow(to []uint64, row []byte) {
	for ; len(row) >= 8 && len(to) >= 2; row, to = row[8:], to[2:] {
		two := binary.LittleEndian.Uint64(row)
		to[0], to[1] = pack(uint32(two)), pack(uint32(two>>32))
	}
	if len(row) >= 4 && len(to) >= 1 {
		to[0] = pack(binary.LittleEndian.Uint32(row))
	}
}

// shrinkRow averages a packed row along x into sums of weight a.total. The row is
// longer than the screen by a.taps pixels, whose weight is 0.
//
//go:norace
func shrinkRow(to, row []uint64, a *axis) {
	starts, weights := a.starts[:len(to)], a.weights
	if a.taps == 3 { // up to half the size
		for x, at := range starts {
			p, w := (*[3]uint64)(row[at:]), (*[3]uint8)(weights[3*x:])
			to[x] = p[0]*uint64(w[0]) + p[1]*uint64(w[1]) + p[2]*uint64(w[2])
		}
		return
	}
	for x, at := range starts {
		sum := uint64(0)
		p := row[at:]
		for k, w := range a.of(x) {
			sum += p[k] * uint64(w)
		}
		to[x] = sum
	}
}

// addRow adds a row inside a target row to its sums.
//
//go:norace
func addRow(sums, row []uint64, weight uint64) {
	row = row[:len(sums)]
	for x := range sums {
		sums[x] += row[x] * weight
	}
}

// endRow ends a target row with a row of which a part may belong to the next.
//
//go:norace
func endRow(to, sums, row []uint64, last, next uint64) {
	to, row = to[:len(sums)], row[:len(sums)]
	for x := range sums {
		v := row[x]
		to[x] = sums[x] + v*last
		sums[x] = v * next
	}
}
