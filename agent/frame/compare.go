package frame

import (
	"encoding/binary"
	"image"
	"math/bits"
)

// fingerprint hashes the pixels below the mask: red, green and blue, not what
// stands in the fourth byte. Four lanes take the words of a row in turn, so that
// their multiplications overlap. It is made for telling screens apart, not
// against somebody who wants two to look the same.
type fingerprint struct {
	mask  int // rows
	lanes [4]uint64
	seen  uint64 // all bits of all pixels
	empty bool
}

// Odd numbers with their bits well mixed, from the golden ratio and murmur's
// finaliser.
const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xFF51AFD7ED558CCD
	mix3 = 0xC4CEB9FE1A85EC53

	colors = 0x00FFFFFF00FFFFFF // of two pixels
)

func (f *fingerprint) begin(size image.Point, mask int) {
	*f = fingerprint{mask: mask, empty: true}
	for i := range f.lanes {
		f.lanes[i] = mix1 * (uint64(size.X)<<32 | uint64(size.Y)<<8 | uint64(i))
	}
}

// add takes rows, the first of which is number y.
func (f *fingerprint) add(rows []byte, rowBytes, y int) {
	for ; len(rows) >= rowBytes; rows, y = rows[rowBytes:], y+1 {
		if y >= f.mask {
			f.row(rows[:rowBytes])
		}
	}
}

//go:norace
func (f *fingerprint) row(row []byte) {
	f.empty = false
	a, b, c, d, seen := f.lanes[0], f.lanes[1], f.lanes[2], f.lanes[3], f.seen
	for ; len(row) >= 32; row = row[32:] {
		p, q := binary.LittleEndian.Uint64(row)&colors, binary.LittleEndian.Uint64(row[8:])&colors
		r, s := binary.LittleEndian.Uint64(row[16:])&colors, binary.LittleEndian.Uint64(row[24:])&colors
		a, b = bits.RotateLeft64((a^p)*mix1, 29), bits.RotateLeft64((b^q)*mix1, 29)
		c, d = bits.RotateLeft64((c^r)*mix1, 29), bits.RotateLeft64((d^s)*mix1, 29)
		seen |= p | q | r | s
	}
	for ; len(row) >= 4; row = row[4:] {
		p := uint64(binary.LittleEndian.Uint32(row)) & colors
		a = bits.RotateLeft64((a^p)*mix1, 29)
		seen |= p
	}
	f.lanes, f.seen = [4]uint64{a, b, c, d}, seen
}

// end returns the hash, and whether there were pixels and all were black.
func (f *fingerprint) end() (hash uint64, black bool) {
	for _, v := range f.lanes {
		hash = bits.RotateLeft64(hash^v, 23) * mix2
		hash ^= hash >> 33
	}
	hash *= mix3
	return hash ^ hash>>29, f.seen == 0 && !f.empty
}

// thumbnail averages the luma of target rows to a Thumb.
type thumbnail struct {
	thumb   Thumb
	first   int      // the target row that lies below the mask, and all after it
	height  int      // target rows from there
	row     int      // of cells, in hand
	columns []uint64 // sums of its target rows: lanes of 16 bits, of 8 pixels the even and the odd ones
	cells   [thumbSide]interval
}

// interval is what makes one cell along one side.
type interval struct{ from, to int }

// cell is the i-th of a side of n target pixels. If there are fewer than cells,
// neighbours share a pixel.
func cell(i, n int) interval {
	from := i * n / thumbSide
	return interval{from, max(from+1, (i+1)*n/thumbSide)}
}

// begin prepares t for rows of stride bytes, a multiple of 8.
func (t *thumbnail) begin(size image.Point, stride, first int) {
	*t = thumbnail{first: first, height: size.Y - first, columns: sized(t.columns, stride/4)}
	clear(t.columns)
	for i := range t.cells {
		t.cells[i] = cell(i, size.X)
	}
}

// add takes target row y. A cell has at most 256 rows, so that their sum fits a
// lane.
//
//go:norace
func (t *thumbnail) add(row []byte, y int) {
	if y -= t.first; y < 0 {
		return
	}
	const even = 0x00FF00FF00FF00FF
	for i := 0; i+1 < len(t.columns) && len(row) >= 8; i, row = i+2, row[8:] {
		v := binary.LittleEndian.Uint64(row)
		t.columns[i] += v & even
		t.columns[i+1] += v >> 8 & even
	}
	for ; t.row < thumbSide; t.row++ {
		rows := cell(t.row, t.height)
		if rows.from > y {
			clear(t.columns)
			return
		}
		if rows.to > y+1 {
			return
		}
		t.end(rows.to - rows.from)
	}
}

// end ends a row of cells that has so many target rows.
//
//go:norace
func (t *thumbnail) end(rows int) {
	for i, c := range t.cells {
		sum := uint32(0)
		for x := c.from; x < c.to; x++ {
			sum += uint32(t.columns[x/8*2+x%2] >> (x % 8 / 2 * 16) & 0xFFFF)
		}
		n := uint32((c.to - c.from) * rows)
		t.thumb[t.row*thumbSide+i] = byte((sum + n/2) / n)
	}
}
