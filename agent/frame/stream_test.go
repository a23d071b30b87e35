package frame

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"testing"
)

type reader = func(context.Context, io.Reader, Options) (*Picture, error)

// raw returns a raw screenshot with a header of so many uint32.
func raw(pixels []byte, header ...uint32) []byte {
	var b []byte
	for _, v := range header {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, pixels...)
}

// rawOf returns a raw screenshot in RGBA_8888.
func rawOf(img *image.RGBA, header int) []byte {
	words := []uint32{uint32(img.Rect.Dx()), uint32(img.Rect.Dy()), 1}
	if header == longHeader {
		words = append(words, 1)
	}
	return raw(img.Pix, words...)
}

func gzipOf(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pngOf(t testing.TB, img image.Image) []byte {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, img image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
