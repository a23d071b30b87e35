package frame

// Luma and chroma of a JPEG (JFIF 1.02, ITU-T T.871), in thousand millionths:
// full range, chroma around 128.
const (
	unit    = 1_000_000_000
	redY    = 299_000_000
	greenY  = 587_000_000
	blueY   = 114_000_000
	redCb   = -168_735_892
	greenCb = -331_264_108
	greenCr = -418_687_589
	blueCr  = -81_312_411
	halfC   = 500_000_000 // of blue in Cb and of red in Cr
)

// colorBits is the fraction of a converter's factors, in bits: 255 times the
// largest weight (21 bits) times a factor stays below 2^63.
const colorBits = 40

// converter turns weighed sums of red, green and blue into luma and chroma.
type converter struct {
	total         int // weight of one sum
	yr, yg, yb    uint64
	cbr, cbg, cbb int64 // for the sum of four pixels
	crr, crg, crb int64
}

func (c *converter) plan(total int) {
	if c.total == total {
		return
	}
	c.total = total
	factor := func(part, sums int) int64 {
		return int64(float64(part) / unit * (1 << colorBits) / float64(sums))
	}
	c.yr, c.yg, c.yb = uint64(factor(redY, total)), uint64(factor(greenY, total)), uint64(factor(blueY, total))
	c.cbr, c.cbg, c.cbb = factor(redCb, 4*total), factor(greenCb, 4*total), factor(halfC, 4*total)
	c.crr, c.crg, c.crb = factor(halfC, 4*total), factor(greenCr, 4*total), factor(blueCr, 4*total)
}

// luma converts one sum and adds its colours to those of four pixels.
func (c *converter) luma(sum uint64, four *[3]uint64) byte {
	r, g, b := sum&laneMask, sum>>laneBits&laneMask, sum>>(2*laneBits)
	four[0] += r
	four[1] += g
	four[2] += b
	return byte((r*c.yr + g*c.yg + b*c.yb + 1<<(colorBits-1)) >> colorBits)
}

// rows converts two rows of sums into two of luma and one of chroma, which have
// room for an even number of pixels. An odd last pixel counts twice.
//
//go:norace
func (c *converter) rows(y0, y1, cb, cr []byte, upper, lower []uint64) {
	const middle = 128<<colorBits + 1<<(colorBits-1) - 1 // rounds 255.5 to 255
	n := len(upper)
	even := (n + 1) &^ 1
	lower, y0, y1 = lower[:n], y0[:even], y1[:even]
	cb, cr = cb[:even/2], cr[:even/2]
	for x := 0; x < n; x += 2 {
		odd := min(x+1, n-1)
		var four [3]uint64
		y0[x], y0[x+1] = c.luma(upper[x], &four), c.luma(upper[odd], &four)
		y1[x], y1[x+1] = c.luma(lower[x], &four), c.luma(lower[odd], &four)
		r, g, b := int64(four[0]), int64(four[1]), int64(four[2])
		cb[x/2] = byte((r*c.cbr + g*c.cbg + b*c.cbb + middle) >> colorBits)
		cr[x/2] = byte((r*c.crr + g*c.crg + b*c.crb + middle) >> colorBits)
	}
}
