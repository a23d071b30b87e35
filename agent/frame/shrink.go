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

// shrinkRow averages a row of RGBX pixels along x into sums of weight a.total.
func shrinkRow(to []uint64, row []byte, a *axis) {
	switch a.ratio {
	case ratio{1, 1}:
		for x := 0; x < len(to) && len(row) >= 4; x, row = x+1, row[4:] {
			to[x] = pack(binary.LittleEndian.Uint32(row))
		}
	case ratio{2, 1}:
		for x := 0; x < len(to) && len(row) >= 8; x, row = x+1, row[8:] {
			two := binary.LittleEndian.Uint64(row)
			to[x] = pack(uint32(two)) + pack(uint32(two>>32))
		}
	default:
		shrinkAny(to, row, a)
	}
}

func shrinkAny(to []uint64, row []byte, a *axis) {
	weights := a.inner
	carry := uint64(0)
	for x, s := range a.spans[:len(to)] {
		sum := carry
		n := int(s.inner)
		if len(row) < 4*n+4 || len(weights) < n+1 {
			return // never: the axis was planned for this row
		}
		for i, w := range weights[:n] {
			sum += pack(binary.LittleEndian.Uint32(row[4*i:])) * uint64(w)
		}
		end := pack(binary.LittleEndian.Uint32(row[4*n:]))
		to[x] = sum + end*uint64(s.last)
		carry = end * uint64(s.next)
		row, weights = row[4*n+4:], weights[n+1:]
	}
}

// addRow adds a row inside a target row to its sums.
func addRow(sums, row []uint64, weight uint64) {
	row = row[:len(sums)]
	for x := range sums {
		sums[x] += row[x] * weight
	}
}

// endRow ends a target row with a row of which a part belongs to the next.
func endRow(to, sums, row []uint64, s span) {
	to, row = to[:len(sums)], row[:len(sums)]
	last, next := uint64(s.last), uint64(s.next)
	for x := range sums {
		v := row[x]
		to[x] = sums[x] + v*last
		sums[x] = v * next
	}
}
