package frame

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// decompressor keeps the tables of a decompressor for the next stream.
type decompressor struct {
	g *gzip.Reader
	z io.ReadCloser
}

// gzip reads the first member of r.
func (d *decompressor) gzip(r *bufio.Reader) (io.Reader, error) {
	if d.g == nil {
		d.g = new(gzip.Reader)
	}
	if err := d.g.Reset(r); err != nil {
		return nil, err
	}
	d.g.Multistream(false)
	return d.g, nil
}

func (d *decompressor) zlib(r *bufio.Reader) (_ io.Reader, err error) {
	if d.z == nil {
		d.z, err = zlib.NewReader(r)
		return d.z, err
	}
	return d.z, d.z.(zlib.Resetter).Reset(r, nil)
}

// corrupt tells whether err is about the data and not about the stream.
func corrupt(err error) bool {
	var at flate.CorruptInputError
	return errors.As(err, &at) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrDictionary)
}
