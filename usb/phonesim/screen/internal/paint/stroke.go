package paint

import (
	"math"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Stroke returns the outline of a line of the given width along a path, with round ends and joins. It is
// made of one piece for each straight part and one disc for each point, all turning the same way, so that
// the rasteriser adds them up.
func Stroke(path []app.Segment, width float64) []app.Segment {
	var out []app.Segment
	var pen, start [2]float64
	r := width / 2
	to := func(p [2]float64) {
		dx, dy := p[0]-pen[0], p[1]-pen[1]
		if n := math.Hypot(dx, dy); n > 1e-6 {
			nx, ny := -dy/n*r, dx/n*r
			out = append(out,
				app.Segment{Op: 'M', P: [3][2]float64{{pen[0] - nx, pen[1] - ny}}},
				app.Segment{Op: 'L', P: [3][2]float64{{p[0] - nx, p[1] - ny}}},
				app.Segment{Op: 'L', P: [3][2]float64{{p[0] + nx, p[1] + ny}}},
				app.Segment{Op: 'L', P: [3][2]float64{{pen[0] + nx, pen[1] + ny}}},
				app.Segment{Op: 'Z'},
			)
			out = append(out, app.Ellipse(p[0], p[1], r, r)...)
		}
		pen = p
	}
	for _, s := range path {
		switch s.Op {
		case 'M':
			pen, start = s.P[0], s.P[0]
			out = append(out, app.Ellipse(pen[0], pen[1], r, r)...)
		case 'L':
			to(s.P[0])
		case 'Q':
			from := pen
			for i := 1; i <= curveSteps; i++ {
				to(quad(from, s.P[0], s.P[1], float64(i)/curveSteps))
			}
		case 'C':
			from := pen
			for i := 1; i <= curveSteps; i++ {
				to(cube(from, s.P[0], s.P[1], s.P[2], float64(i)/curveSteps))
			}
		case 'Z':
			to(start)
		}
	}
	return out
}

// curveSteps is into how many straight parts a curve is cut.
const curveSteps = 24

func quad(a, b, c [2]float64, t float64) (p [2]float64) {
	u := 1 - t
	for i := range p {
		p[i] = u*u*a[i] + 2*u*t*b[i] + t*t*c[i]
	}
	return p
}

func cube(a, b, c, d [2]float64, t float64) (p [2]float64) {
	u := 1 - t
	for i := range p {
		p[i] = u*u*u*a[i] + 3*u*u*t*b[i] + 3*u*t*t*c[i] + t*t*t*d[i]
	}
	return p
}
