package frame

import (
	"fmt"
	"io"
)

// rows decompresses the rows and adds them to set.
func (d *pngReader) rows(in *input, s *scratch, set *set, z io.Reader) error {
	step := d.samples
	if d.deep {
		step *= 2
	}
	length := step * d.width
	for i := range s.line {
		s.line[i] = sized(s.line[i], 1+length)
	}
	cur, above := s.line[0], s.line[1]
	clear(above)
	for y := 0; y < d.height; {
		n := min(set.batch, d.height-y)
		var band []byte
		for i := range n {
			if _, err := io.ReadFull(z, cur); err != nil {
				return d.failed(err)
			}
			if err := in.held(); err != nil {
				return failed(err, "PNG")
			}
			if err := unfilter(cur[0], cur[1:], above[1:], step); err != nil {
				return err
			}
			if i == 0 {
				band = set.rows(n)
			}
			d.rgbx(band[i*set.rowBytes:(i+1)*set.rowBytes], cur[1:], step)
			cur, above = above, cur
		}
		set.add(band)
		y += n
	}
	return nil
}

// rgbx converts a row to RGBX; what is transparent is black.
//
//go:norace
func (d *pngReader) rgbx(to, row []byte, step int) {
	if d.samples == 4 && !d.deep {
		copy(to, row)
		for i := 3; i < len(to); i += 4 {
			if to[i] != 0xFF {
				opaque(to[i-3 : i+1])
			}
		}
		return
	}
	wide := step / d.samples // bytes a sample, the high one first
	for ; len(to) >= 4 && len(row) >= step; to, row = to[4:], row[step:] {
		to[0], to[1], to[2], to[3] = row[0], row[wide], row[2*wide], 0xFF
		if d.samples == 4 {
			to[3] = row[3*wide]
			opaque(to[:4])
		}
	}
}

// opaque puts a pixel on black.
func opaque(p []byte) {
	a := uint32(p[3]) * 0x101
	for i := range 3 {
		p[i] = byte(uint32(p[i]) * a / 0xFF >> 8) // as image/color does
	}
}

// Filters of a row (W3C PNG, 9.2).
const (
	filterNone = iota
	filterSub
	filterUp
	filterAverage
	filterPaeth
)

// unfilter undoes a row's filter. step is how many bytes a pixel has.
//
//go:norace
func unfilter(filter byte, row, above []byte, step int) error {
	above = above[:len(row)]
	switch filter {
	case filterNone:
	case filterSub:
		for i := step; i < len(row); i++ {
			row[i] += row[i-step]
		}
	case filterUp:
		for i := range row {
			row[i] += above[i]
		}
	case filterAverage:
		for i := range row {
			left := 0
			if i >= step {
				left = int(row[i-step])
			}
			row[i] += byte((left + int(above[i])) / 2)
		}
	case filterPaeth:
		for i := range min(step, len(row)) {
			row[i] += above[i]
		}
		for i := step; i < len(row); i++ {
			row[i] += paeth(int(row[i-step]), int(above[i]), int(above[i-step]))
		}
	default:
		return fmt.Errorf("PNG with filter %d: %w", filter, ErrMalformed)
	}
	return nil
}

// paeth returns of left, above and upper left the one nearest to left + above -
// upper left, the earlier one if two are as near.
func paeth(a, b, c int) byte {
	pa, pb := b-c, a-c
	pc := pa + pb
	pa, pb, pc = max(pa, -pa), max(pb, -pb), max(pc, -pc)
	switch {
	case pa <= pb && pa <= pc:
		return byte(a)
	case pb <= pc:
		return byte(b)
	}
	return byte(c)
}
