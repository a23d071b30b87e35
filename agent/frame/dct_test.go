package frame

import (
	"math"
	"math/rand/v2"
	"testing"
)

func exactDCT(in *[64]byte) (out [64]float64) {
	for u := range 8 {
		for v := range 8 {
			s := 0.0
			for y := range 8 {
				for x := range 8 {
					s += (float64(in[8*y+x]) - 128) * math.Cos(float64(2*x+1)*float64(v)*math.Pi/16) * math.Cos(float64(2*y+1)*float64(u)*math.Pi/16)
				}
			}
			if u == 0 {
				s /= math.Sqrt2
			}
			if v == 0 {
				s /= math.Sqrt2
			}
			out[8*u+v] = s / 4
		}
	}
	return
}
func TestDCT(t *testing.T) {
	var q quantizer
	q.plan(&lumaSteps, 100)
	worst := 0.0
	for i := range 2000 {
		var in [64]byte
		for j := range in {
			in[j] = byte(rand.Uint32())
			if i%3 == 0 {
				in[j] = in[j] >> 7 * 255
			}
			if i%3 == 1 {
				in[j] = in[j]>>5 + 200
			}
		}
		var c coefficients
		var got block
		dct(&c, in[:], 8)
		q.divide(&got, &c)
		want := exactDCT(&in)
		for k, at := range zigzag {
			worst = max(worst, math.Abs(want[at]/float64(q.steps[k])-float64(got.at(k))))
		}
	}
	t.Log(worst)
}
func BenchmarkDCT(b *testing.B) {
	var in [64]byte
	for j := range in {
		in[j] = byte(rand.Uint32())
	}
	var q quantizer
	q.plan(&lumaSteps, 75)
	var c coefficients
	var got block
	b.Run("dct", func(b *testing.B) {
		for b.Loop() {
			dct(&c, in[:], 8)
		}
	})
	b.Run("quant", func(b *testing.B) {
		for b.Loop() {
			q.divide(&got, &c)
		}
	})
}

func (b *block) at(k int) int16 {
	if b.mask>>k&1 == 0 {
		return 0
	}
	return b.values[k]
}
