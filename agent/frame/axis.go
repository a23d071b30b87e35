package frame

// maxTotal bounds the weight of one target pixel along one side. Along both it
// is at most 8100, so that 255 times it fits a lane (see pack).
const maxTotal = 90

// axis says for one side which source pixels make which target pixels and with
// what weights: an area average. The weights are exact if a ratio of small
// numbers leads from one side to the other; else the borders of target pixels
// are rounded to a 90th of one.
type axis struct {
	total int    // weight of all that makes one target pixel
	spans []span // one a target pixel
	inner []byte // weights of source pixels that lie inside a target pixel
	ratio ratio
}

// ratio is by how much a picture becomes smaller, in lowest terms.
type ratio struct {
	source, target int // source >= target
}

// span is what makes one target pixel: what is left of the source pixel that
// ended the target pixel before, then some inner ones, then one that ends it.
type span struct {
	inner      int32 // how many
	last, next uint8 // weights of the one that ends it: for it, and for the next
}

// plan makes target pixels of source ones.
func (a *axis) plan(target int, r ratio) {
	if a.ratio == r && len(a.spans) == target {
		return
	}
	a.ratio = r
	a.total = min(r.source, maxTotal)
	a.spans = sized(a.spans, target)
	a.inner = a.inner[:0]
	var s span
	begin, x := 0, 0
	for j := 1; x < target; j++ { // source pixel j-1 ends where j begins
		end := (j*r.target*a.total + r.source/2) / r.source
		border := (x + 1) * a.total
		if end < border {
			a.inner = append(a.inner, byte(end-begin))
			s.inner++
		} else {
			a.inner = append(a.inner, 0) // unused: keeps the index
			s.last, s.next = byte(border-begin), byte(end-border)
			a.spans[x] = s
			s.inner = 0
			x++
		}
		begin = end
	}
}

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
