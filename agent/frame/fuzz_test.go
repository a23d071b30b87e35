package frame

import (
	"bytes"
	"context"
	"image/jpeg"
	"image/png"
	"testing"
)

// small is a pool of one set that takes small screens only, so that inputs are
// quick.
func small() *pool {
	p := newPool(1)
	p.pixels = 1 << 14
	return p
}

// sound checks what is true of every result, and returns whether there is a
// picture.
func sound(t *testing.T, pool *pool, p *Picture, err error) bool {
	t.Helper()
	if (p == nil) == (err == nil) {
		t.Fatalf("picture %t, error %v", p != nil, err)
	}
	if len(pool.free) != 1 {
		t.Fatal("the buffer set is lost")
	}
	if err != nil {
		return false
	}
	if n := p.Source.X * p.Source.Y; n < 1 || n > pool.pixels {
		t.Fatalf("a screen of %v", p.Source)
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(p.JPEG))
	if err != nil || c.Width != p.Size.X || c.Height != p.Size.Y {
		t.Fatalf("a JPEG of %dx%d, want %v: %v", c.Width, c.Height, p.Size, err)
	}
	if _, err := jpeg.Decode(bytes.NewReader(p.JPEG)); err != nil {
		t.Fatal(err)
	}
	return true
}

// FuzzRaw reads the same bytes at once and in pieces.
func FuzzRaw(f *testing.F) {
	for format := range formats {
		f.Add(raw(square(format), 2, 2, format), 0, 7)
		f.Add(raw(square(format), 2, 2, format, 1), 2, 1)
	}
	f.Add(rawOf(screenOf(12, 30), longHeader), 1, 100)
	f.Fuzz(func(t *testing.T, b []byte, header, piece int) {
		o := Options{Header: []int{0, shortHeader, longHeader}[uint(header)%3], Width: 8}
		pool := small()
		p, err := pool.readRaw(context.Background(), bytes.NewReader(b), o)
		if !sound(t, pool, p, err) {
			return
		}
		q, err := pool.readRaw(context.Background(), &pieces{b, 1 + int(uint(piece)%100)}, o)
		if !sound(t, pool, q, err) || !bytes.Equal(p.JPEG, q.JPEG) || p.Hash != q.Hash {
			t.Fatalf("in pieces it is another picture: %v", err)
		}
	})
}

// pieces reads so many bytes at a time.
type pieces struct {
	b []byte
	n int
}

func (r *pieces) Read(p []byte) (int, error) {
	k := copy(p[:min(len(p), r.n)], r.b)
	r.b = r.b[k:]
	if k == 0 {
		return bytes.NewReader(nil).Read(p)
	}
	return k, nil
}

func FuzzGzip(f *testing.F) {
	for format := range formats {
		f.Add(gzipOf(f, raw(square(format), 2, 2, format, 1)))
	}
	f.Add(gzipOf(f, rawOf(screenOf(12, 30), shortHeader)))
	f.Fuzz(func(t *testing.T, b []byte) {
		pool := small()
		p, err := pool.readGzip(context.Background(), bytes.NewReader(b), Options{})
		sound(t, pool, p, err)
	})
}

// FuzzPNG compares with the standard library.
func FuzzPNG(f *testing.F) {
	f.Add(pngOf(f, screenOf(12, 30)))
	f.Add(append([]byte(displaysWarning), pngOf(f, grey(5, 5, 200))...))
	f.Add(assembled(ihdr(1, 1, 16, 6, 0, 0, 0), chunk("IDAT", deflated(f, []byte{0, 255, 9, 0, 9, 0, 9, 200, 255})), chunk("IEND", nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		pool := small()
		p, err := pool.readPNG(context.Background(), bytes.NewReader(b), Options{})
		if !sound(t, pool, p, err) {
			return
		}
		b = b[bytes.Index(b, []byte(pngSignature)):]
		if b[len(pngSignature)+16] != 8 {
			return // the standard library rounds 16 bits in another way
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			return // it is stricter about chunks that nobody needs
		}
		if want := encoded(t, img, Options{}); want.Hash != p.Hash || want.Source != p.Source {
			t.Fatal("the standard library sees other pixels")
		}
	})
}

func FuzzJPEG(f *testing.F) {
	f.Add(jpegOf(f, screenOf(12, 30)))
	f.Add(append([]byte(displaysWarning), jpegOf(f, grey(5, 5, 200))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		pool := small()
		p, err := pool.readJPEG(context.Background(), bytes.NewReader(b), Options{})
		sound(t, pool, p, err)
	})
}
