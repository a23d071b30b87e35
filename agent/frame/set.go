package frame

import (
	"image"
	"slices"
)

// set is what one picture is made in: a few rows at every stage from the
// source's pixels to the JPEG. It is used for one picture after another, and by
// one goroutine at a time.
type set struct {
	source   image.Point
	size     image.Point
	rowBytes int     // of the source as RGBX
	batch    int     // rows that add takes at once
	kernel   *kernel // nil: rows are summed up one by one

	// From source rows to target rows.
	seen   int // source rows so far
	x, y   axis
	color  converter
	packed []uint64    // a source row
	line   []uint64    // the same, averaged along x
	sums   []uint64    // of the source rows of the target row in hand
	pair   [2][]uint64 // target rows, two of which share their chroma

	// From target rows to the JPEG.
	made         int // target rows so far
	stride       int // of luma
	luma, cb, cr []byte
	jpeg         jpegWriter

	finger fingerprint
	thumb  thumbnail
	band   []byte // rows that had another format than RGBX
	whole  []byte // of a picture that cannot be read row by row
}

// keptBytes bounds the slices that grow with what a phone sends and are kept for
// the next picture.
const keptBytes = 1 << 20

// begin prepares s for a picture.
func (s *set) begin(source image.Point, o Options) {
	var r ratio
	s.source = source
	s.size.X, s.size.Y, r = scaled(source.X, source.Y, o.Width)
	s.rowBytes = 4 * source.X
	s.kernel = kernelFor(r, source.X)
	if s.kernel != nil {
		s.batch = s.kernel.rows
	} else {
		s.batch = 1
		s.planSums(r)
	}
	s.seen, s.made = 0, 0

	s.stride = (s.size.X + stripRows - 1) / stripRows * stripRows
	s.luma = sized(s.luma, stripRows*s.stride)
	s.cb, s.cr = sized(s.cb, stripRows*s.stride/4), sized(s.cr, stripRows*s.stride/4)
	s.jpeg.begin(s.size, o.Quality)

	s.finger.begin(source, o.Mask)
	s.thumb.begin(s.size, s.stride, (o.Mask*r.target+r.source-1)/r.source)
}

// planSums prepares for a ratio that has no kernel.
func (s *set) planSums(r ratio) {
	s.x.plan(s.size.X, r)
	s.y.plan(s.size.Y, r)
	s.color.plan(s.x.total * s.y.total)
	s.packed = sized(s.packed, s.source.X+s.x.taps)
	s.line, s.sums = sized(s.line, s.size.X), sized(s.sums, s.size.X)
	s.pair[0], s.pair[1] = sized(s.pair[0], s.size.X), sized(s.pair[1], s.size.X)
	clear(s.sums)
}

// rows returns room for n source rows in RGBX.
func (s *set) rows(n int) []byte {
	s.band = sized(s.band, n*s.rowBytes)
	return s.band
}

// add takes source rows in RGBX: batch many, or the rest of the picture.
func (s *set) add(rows []byte) {
	n := len(rows) / s.rowBytes
	s.finger.add(rows, s.rowBytes, s.seen)
	switch {
	case s.made == s.size.Y: // what is left over makes no target row
	case s.kernel == nil:
		s.addRow(rows, s.seen)
	default:
		s.addRows(rows, n)
	}
	s.seen += n
}

// addRows makes two target rows of n source rows, or fewer at the end.
func (s *set) addRows(rows []byte, n int) {
	k := s.kernel
	var each [maxRows][]byte
	for i := range k.rows {
		at := min(i, n-1) * s.rowBytes
		each[i] = rows[at : at+s.rowBytes]
	}
	y0, y1, cb, cr := s.strip(s.made)
	k.run(y0[:s.size.X], y1[:s.size.X], cb, cr, &each)
	s.finished(n * k.ratio.target / k.ratio.source)
}

// addRow adds source row j to the target row in hand.
func (s *set) addRow(row []byte, j int) {
	k := j - int(s.y.starts[s.made])
	if k < 0 {
		return // too thin to have a weight
	}
	packRow(s.packed, row)
	shrinkRow(s.line, s.packed, &s.x)
	weight := uint64(s.y.of(s.made)[k])
	if j+1 < int(s.y.ends[s.made]) {
		addRow(s.sums, s.line, weight)
		return
	}
	next := uint8(0)
	if y := s.made + 1; y < s.size.Y && int(s.y.starts[y]) == j {
		next = s.y.of(y)[0]
	}
	endRow(s.pair[s.made%2], s.sums, s.line, weight, uint64(next))
	if last := s.made == s.size.Y-1; s.made%2 == 1 || last {
		y0, y1, cb, cr := s.strip(s.made &^ 1)
		s.color.rows(y0, y1, cb, cr, s.pair[0], s.pair[s.made%2])
	}
	s.finished(1)
}

// strip returns where target row y, an even one, and the next belong.
func (s *set) strip(y int) (y0, y1, cb, cr []byte) {
	y %= stripRows
	at, c := y*s.stride, y*s.stride/4
	return s.luma[at : at+s.stride], s.luma[at+s.stride : at+2*s.stride], s.cb[c : c+s.stride/2], s.cr[c : c+s.stride/2]
}

// finished counts target rows, and writes them when they are sixteen.
func (s *set) finished(n int) {
	s.made += n
	if n > 0 && s.made%stripRows == 0 {
		s.write(stripRows)
	}
}

// write writes a strip of which so many rows are made.
func (s *set) write(rows int) {
	first := s.made - rows
	extend(s.luma, s.stride, rows, s.size.X)
	extend(s.cb, s.stride/2, (rows+1)/2, (s.size.X+1)/2)
	extend(s.cr, s.stride/2, (rows+1)/2, (s.size.X+1)/2)
	for i := range rows {
		s.thumb.add(s.luma[i*s.stride:][:s.stride], first+i)
	}
	s.jpeg.strip(s.luma, s.cb, s.cr, s.stride)
}

// extend repeats the last of so many columns and of so many rows to the end.
//
//go:norace
func extend(plane []byte, stride, rows, columns int) {
	if columns < stride {
		for i := range rows {
			row := plane[i*stride : (i+1)*stride]
			for x := columns; x < stride; x++ {
				row[x] = row[columns-1]
			}
		}
	}
	last := plane[(rows-1)*stride : rows*stride]
	for at := rows * stride; at < len(plane); at += stride {
		copy(plane[at:], last)
	}
}

// end returns the picture. All source rows have been added.
func (s *set) end() *Picture {
	if rest := s.made % stripRows; rest > 0 {
		s.write(rest)
	}
	p := &Picture{JPEG: slices.Clone(s.jpeg.end()), Size: s.size, Source: s.source, Thumb: s.thumb.thumb}
	p.Hash, p.Black = s.finger.end()
	return p
}

// trim lets go of what a large picture has made large.
func (s *set) trim() {
	if cap(s.jpeg.bits.out) > keptBytes {
		s.jpeg.bits.out = nil
	}
	if cap(s.whole) > keptBytes {
		s.whole = nil
	}
}
