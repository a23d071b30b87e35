package qrcode

import (
	"fmt"
	"strconv"
	"strings"

	"rsc.io/qr"
)

const quietZone = 4 // modules that stay white around a code

// Code is a QR code, to be drawn with a black stroke of one unit on white.
type Code struct {
	Path string // through the middle of the dark modules, for an SVG path; a module is a unit
	Size int    // modules of a side, the quiet zone of four on each side included
}

// Draw makes the code of a text, of which 15 % may be damaged (correction M). The error says that the text is too long.
func Draw(text string) (Code, error) {
	q, err := qr.Encode(text, qr.M)
	if err != nil {
		return Code{}, fmt.Errorf("make a QR code: %w", err)
	}
	var b strings.Builder
	for y := range q.Size {
		end := -1 // of the last run of this row
		for x := 0; x < q.Size; x++ {
			if !q.Black(x, y) {
				continue
			}
			start := x
			for x < q.Size && q.Black(x, y) {
				x++
			}
			if end < 0 {
				b.WriteString("M" + strconv.Itoa(start+quietZone) + " " + strconv.Itoa(y+quietZone) + ".5")
			} else {
				b.WriteString("m" + strconv.Itoa(start-end) + " 0")
			}
			b.WriteString("h" + strconv.Itoa(x-start))
			end = x
		}
	}
	return Code{b.String(), q.Size + 2*quietZone}, nil
}
