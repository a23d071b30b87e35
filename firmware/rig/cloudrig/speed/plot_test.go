package speed

import (
	"bytes"
	"fmt"
)

// plot draws three charts side by side, each with the replicas below.
func plot(points []point) []byte {
	const width, height, bar = 220, 200, 40
	charts := []struct {
		title string
		value func(point) float64
	}{
		{"decisions a second", func(p point) float64 { return p.perSecond }},
		{"p50 of a decision, ms", func(p point) float64 { return ms(p.p50) }},
		{"processor time a decision, ms", func(p point) float64 { return ms(p.cpu) }},
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", 3*width, height)
	out.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	for i, c := range charts {
		top := 0.0
		for _, p := range points {
			top = max(top, c.value(p))
		}
		fmt.Fprintf(&out, "<text x=\"%d\" y=\"18\">%s</text>\n", i*width+14, c.title)
		for j, p := range points {
			v := c.value(p)
			x, h := i*width+20+j*(bar+20), v/top*120
			fmt.Fprintf(&out, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#4a7ab5\"/>\n", x, 165-h, bar, h)
			fmt.Fprintf(&out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">%.3g</text>\n", x+bar/2, 160-h, v)
			fmt.Fprintf(&out, "<text x=\"%d\" y=\"182\" text-anchor=\"middle\">%d</text>\n", x+bar/2, p.replicas)
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
