package android

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"io"
)

// writePNG writes a picture as screencap does: RGBA with its alpha, though that is always 255. (Package
// image/png leaves the alpha of an opaque picture out.)
func writePNG(w io.Writer, img *image.RGBA) error {
	size := img.Rect.Size()
	if _, err := io.WriteString(w, "\x89PNG\r\n\x1a\n"); err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(size.X))
	header = binary.BigEndian.AppendUint32(header, uint32(size.Y))
	header = append(header, 8, 6, 0, 0, 0) // 8 bits, RGBA, not interlaced
	if err := writeChunk(w, "IHDR", header); err != nil {
		return err
	}
	data, err := deflateRows(img, size)
	if err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), 64<<10)
		if err := writeChunk(w, "IDAT", data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return writeChunk(w, "IEND", nil)
}

// deflateRows compresses each row as its difference to the one above.
func deflateRows(img *image.RGBA, size image.Point) ([]byte, error) {
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, zlib.BestSpeed)
	if err != nil {
		return nil, err
	}
	const filterUp = 2
	above := make([]byte, 4*size.X)
	row := make([]byte, 1+4*size.X)
	row[0] = filterUp
	for y := range size.Y {
		pix := img.Pix[y*img.Stride:][:4*size.X]
		subtract(row[1:], pix, above)
		above = pix
		if _, err := z.Write(row); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// subtract is not watched by the race detector: the picture is the caller's alone, and it would take ten times as long.
//
//go:norace
func subtract(to, row, above []byte) {
	for i, v := range row {
		to[i] = v - above[i]
	}
}

func writeChunk(w io.Writer, kind string, data []byte) error {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(chunk, kind...)
	chunk = append(chunk, data...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	_, err := w.Write(chunk)
	return err
}
