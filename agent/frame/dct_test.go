package frame

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"
)

// exactDCT is the DCT of T.81, A.3.3, row by row.
func exactDCT(in *[64]byte) (out [64]float64) {
	for u := range 8 {
		for v := range 8 {
			sum := 0.0
			for y := range 8 {
				for x := range 8 {
					sum += (float64(in[8*y+x]) - 128) * math.Cos(float64((2*x+1)*v)*math.Pi/16) * math.Cos(float64((2*y+1)*u)*math.Pi/16)
				}
			}
			if u == 0 {
				sum /= math.Sqrt2
			}
			if v == 0 {
				sum /= math.Sqrt2
			}
			out[8*u+v] = sum / 4
		}
	}
	return out
}

// blocks are samples of different kinds: noise, extremes, low contrast, edges.
func blocks(n int) (all [][64]byte) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		var b [64]byte
		for j := range b {
			v := byte(r.UintN(256))
			switch i % 4 {
			case 0:
				b[j] = v
			case 1:
				b[j] = v >> 7 * 255
			case 2:
				b[j] = 200 + v>>5
			case 3:
				if j%8 > i%8 != (j/8 > i/8%8) {
					b[j] = 255
				}
			}
		}
		all = append(all, b)
	}
	return all
}

// TestTheDCTIsExactToAFractionOfAStep uses steps of 1, so that a coefficient is
// what rounding leaves of it.
func TestTheDCTIsExactToAFractionOfAStep(t *testing.T) {
	var q quantizer
	q.plan(&lumaSteps, 100)
	for k, s := range q.steps {
		if s != 1 {
			t.Fatalf("step %d is %d", k, s)
		}
	}
	worst := 0.0
	for _, in := range blocks(400) {
		var c coefficients
		var b block
		dct(&c, in[:], 8)
		q.divide(&b, &c)
		want := exactDCT(&in)
		for k, at := range zigzag {
			worst = max(worst, math.Abs(want[at]-float64(b.value(k))))
		}
	}
	t.Logf("wrong by %.3f at most", worst)
	if worst > 0.65 { // 0.5 of it is rounding to integers
		t.Errorf("a coefficient is wrong by %.3f", worst)
	}
}

func TestFlatBlocksAreWhatTheDCTGives(t *testing.T) {
	for quality := 1; quality <= 100; quality += 3 {
		var q quantizer
		q.plan(&chromaSteps, quality)
		for v := range 256 {
			var in [64]byte
			for i := range in {
				in[i] = byte(v)
			}
			var c coefficients
			var got, want block
			dct(&c, in[:], 8)
			q.divide(&want, &c)
			q.flat(&got, byte(v))
			if !isFlat(in[:], 8) || got.values[0] != want.values[0] || got.mask != 0 || want.mask&^1 != 0 {
				t.Fatalf("quality %d, sample %d: %d, mask %x, want %d, mask %x", quality, v, got.values[0], got.mask, want.values[0], want.mask)
			}
		}
	}
}

func TestABlockIsFlatOnlyIfAllSamplesAreEqual(t *testing.T) {
	for i := range 64 {
		in := [64]byte{}
		in[i] = 1
		if isFlat(in[:], 8) {
			t.Errorf("sample %d differs and is not seen", i)
		}
	}
}

// value is coefficient k of a scan.
func (b *block) value(k int) int16 {
	if b.mask>>k&1 == 0 && k > 0 {
		return 0
	}
	return b.values[k]
}

// TestTheLargestCoefficientsHaveCodes draws, for each coefficient, the samples
// that make it as large as it can be, next to their opposite.
func TestTheLargestCoefficientsHaveCodes(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 64*16, 16))
	for k := range 64 {
		u, v := k/8, k%8
		for y := range 16 {
			for x := range 16 {
				c := math.Cos(float64(2*(x%8)+1)*float64(v)*math.Pi/16) * math.Cos(float64(2*(y%8)+1)*float64(u)*math.Pi/16)
				level := uint8(0)
				if (c > 0) != (x >= 8) {
					level = 255
				}
				img.SetRGBA(16*k+x, y, color.RGBA{level, level, level, 255})
			}
		}
	}
	p := encoded(t, img, Options{Quality: 100, Width: maxSide})
	if got := psnr(t, p.JPEG, areaAverage(img, img.Rect.Size(), ratio{1, 1}), img.Rect); got < 45 {
		t.Errorf("%.2f dB", got)
	}
}
