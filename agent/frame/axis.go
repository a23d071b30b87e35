package frame

// maxTotal bounds the weight of one target pixel along one side. Along both it
// is at most 8100, so that 255 times it fits a lane (see pack).
const maxTotal = 90

// axis says for one side which source pixels make which target pixels and with
// what weights: an area average. The weights are exact if a ratio of small
// numbers leads from one side to the other; else the borders of source pixels
// are rounded to a 90th of a target pixel.
type axis struct {
	ratio   ratio
	total   int     // weight of all that makes one target pixel
	taps    int     // how many source pixels that are at most
	starts  []int32 // the first of them, for each target pixel
	ends    []int32 // and the one after the last
	weights []uint8 // taps for each target pixel; those beyond its end are 0
}

// ratio is by how much a picture becomes smaller, in lowest terms.
type ratio struct {
	source, target int // source >= target
}

// plan makes so many target pixels.
func (a *axis) plan(target int, r ratio) {
	if a.ratio == r && len(a.starts) == target {
		return
	}
	a.ratio = r
	a.total = min(r.source, maxTotal)
	a.taps = (r.source+r.target-1)/r.target + 1
	a.starts, a.ends, a.weights = sized(a.starts, target), sized(a.ends, target), sized(a.weights, target*a.taps)
	border := func(j int) int { return (j*r.target*a.total + r.source/2) / r.source } // where source pixel j begins
	j := 0
	for x := range target {
		from, to := x*a.total, (x+1)*a.total
		for border(j+1) <= from {
			j++
		}
		a.starts[x] = int32(j)
		for k := range a.taps {
			w := max(0, min(border(j+k+1), to)-max(border(j+k), from))
			if w > 0 {
				a.ends[x] = int32(j + k + 1)
			}
			a.weights[x*a.taps+k] = uint8(w)
		}
	}
}

// of are the weights of one target pixel.
func (a *axis) of(x int) []uint8 { return a.weights[x*a.taps : (x+1)*a.taps] }

// sized returns s with length n, kept if there is room.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// scaled returns the size of the JPEG, and the ratio. The shorter side gets at
// most width pixels; what would make only a part of a target pixel at the right
// or bottom is left out, so that both sides have one ratio.
func scaled(w, h, width int) (tw, th int, r ratio) {
	short := min(w, h)
	target := min(short, width)
	d := gcd(short, target)
	r = ratio{short / d, target / d}
	return w * r.target / r.source, h * r.target / r.source, r
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
