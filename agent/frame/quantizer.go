package frame

// The tables of annex K.1 of ITU-T T.81, row by row: steps for quality 50.
var (
	lumaSteps = [64]byte{
		16, 11, 10, 16, 24, 40, 51, 61,
		12, 12, 14, 19, 26, 58, 60, 55,
		14, 13, 16, 24, 40, 57, 69, 56,
		14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77,
		24, 35, 55, 64, 81, 104, 113, 92,
		49, 64, 78, 87, 103, 121, 120, 101,
		72, 92, 95, 98, 112, 100, 103, 99,
	}
	chromaSteps = [64]byte{
		17, 18, 24, 47, 99, 99, 99, 99,
		18, 21, 26, 66, 99, 99, 99, 99,
		24, 26, 56, 99, 99, 99, 99, 99,
		47, 66, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99,
	}
)

// zigzag[k] is where the k-th coefficient of a scan stands in a block (T.81,
// figure 5).
var zigzag = [64]byte{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// stepBits is the fraction of a reciprocal: the smallest, of the largest step,
// still has 11 bits, and no product needs more than 56.
const stepBits = 40

// quantizer divides what the DCT gives by the steps of a table.
type quantizer struct {
	quality int
	steps   [64]byte // in scan order, as a file has them
	pairs   [8][4]pair
}

// pair is for the two coefficients of one word.
type pair struct {
	near            uint64 // both coefficients, if less than this, become 0
	low, high       int64  // reciprocals of what they are divided by
	lowBit, highBit int64  // their bits in a mask
	lowAt, highAt   uint8  // their places in a scan
}

// plan takes the steps of base for a quality of 1 to 100, scaled as the
// Independent JPEG Group's software does.
func (q *quantizer) plan(base *[64]byte, quality int) {
	if q.quality == quality {
		return
	}
	*q = quantizer{quality: quality}
	scale := 200 - 2*quality
	if quality < 50 {
		scale = 5000 / quality
	}
	for k, at := range zigzag {
		step := min(max((int(base[at])*scale+50)/100, 1), 255)
		q.steps[k] = byte(step)
		u, v := at/8, at%8
		by := float64(step) * aanScale[u] * aanScale[v] * 8 * (1 << keptBits)
		if v != 0 && v != 4 {
			by *= 1 << dctBits
		}
		reciprocal := int64((1<<stepBits)/by + 0.5)
		near := uint64(by/2) - 2 // a high half is one too small if the low one is negative
		if p := &q.pairs[v][u/2]; u%2 == 0 {
			p.low, p.lowAt, p.lowBit = reciprocal, uint8(k), 1<<k
			p.near |= near
		} else {
			p.high, p.highAt, p.highBit = reciprocal, uint8(k), 1<<k
			p.near |= near << 32
		}
	}
}

// block is a quantized block in scan order. What is not in mask is 0 but for
// values[0]; the rest of values is left over.
type block struct {
	values [64]int16
	mask   uint64
}

// flat makes a block of 64 equal samples.
//
//go:norace
func (q *quantizer) flat(b *block, sample byte) {
	b.values[0] = int16(divide((int64(sample)-128)<<(6+keptBits), q.pairs[0][0].low))
	b.mask = 0
}

// divide makes a block of c.
//
//go:norace
func (q *quantizer) divide(b *block, c *coefficients) {
	for i := range c[0] {
		c[0][i] -= both(8 * bias)
	}
	const signs = 1<<63 | 1<<31
	mask := int64(0)
	for v := range c {
		// Most coefficients of most blocks become 0: four at a time are compared.
		w, p := &c[v], &q.pairs[v]
		if ((w[0]+p[0].near)|(p[0].near-w[0])|(w[1]+p[1].near)|(p[1].near-w[1]))&signs != 0 {
			mask |= p[0].divide(b, w[0]) | p[1].divide(b, w[1])
		}
		if ((w[2]+p[2].near)|(p[2].near-w[2])|(w[3]+p[3].near)|(p[3].near-w[3]))&signs != 0 {
			mask |= p[2].divide(b, w[2]) | p[3].divide(b, w[3])
		}
	}
	if mask&1 == 0 {
		b.values[0] = 0
	}
	b.mask = uint64(mask)
}

// divide puts two coefficients into b and returns which are not 0.
func (p *pair) divide(b *block, w uint64) int64 {
	low, high := divide(int64(int32(w)), p.low), divide(int64(w)>>32, p.high)
	b.values[p.lowAt&63], b.values[p.highAt&63] = int16(low), int16(high)
	return (low|-low)>>63&p.lowBit | (high|-high)>>63&p.highBit
}

func divide(c, reciprocal int64) int64 { return (c*reciprocal + 1<<(stepBits-1)) >> stepBits }
