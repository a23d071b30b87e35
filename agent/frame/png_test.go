package frame

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

const displaysWarning = "[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found, " +
	"however this default is not guaranteed to be consistent across captures. A display id should be specified.\n"

// chunk is one chunk of a PNG.
func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(b, kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func ihdr(w, h uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, w)
	return chunk("IHDR", append(binary.BigEndian.AppendUint32(b, h), rest...))
}

func deflated(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// assembled is a PNG of chunks.
func assembled(chunks ...[]byte) []byte {
	return append([]byte(pngSignature), bytes.Join(chunks, nil)...)
}

func TestPNGScreenshots(t *testing.T) {
	good := pngOf(t, screenOf(30, 20))
	end := chunk("IEND", nil)
	red := bytes.Repeat([]byte{0, 255, 0, 0, 255, 0, 0}, 2) // two rows of two pixels, not filtered
	rgb := func(data []byte) []byte { return assembled(ihdr(2, 2, 8, 2, 0, 0, 0), chunk("IDAT", data), end) }
	whole := deflated(t, red)
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 0x55
		return b
	}
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"plain":                {good, nil},
		"by hand":              {rgb(whole), nil},
		"before words":         {append(bytes.Clone(good), "bye\n"...), nil},
		"two IDAT":             {assembled(ihdr(2, 2, 8, 2, 0, 0, 0), chunk("IDAT", whole[:5]), chunk("IDAT", nil), chunk("IDAT", whole[5:]), end), nil},
		"with other chunks":    {assembled(ihdr(2, 2, 8, 2, 0, 0, 0), chunk("sRGB", []byte{0}), chunk("IDAT", whole), chunk("tEXt", []byte("hello")), end), nil},
		"junk after the rows":  {rgb(append(bytes.Clone(whole), 1, 2, 3)), nil}, // in IDAT, after the checksum of the rows
		"16 bits":              {assembled(ihdr(1, 1, 16, 2, 0, 0, 0), chunk("IDAT", deflated(t, []byte{0, 255, 9, 0, 9, 0, 9})), end), nil},
		"16 bits with alpha":   {assembled(ihdr(1, 1, 16, 6, 0, 0, 0), chunk("IDAT", deflated(t, []byte{0, 255, 9, 0, 9, 0, 9, 255, 255})), end), nil},
		"no IEND":              {good[:len(good)-12], ErrTruncated},
		"a byte short":         {good[:len(good)-1], ErrTruncated},
		"cut in the pixels":    {good[:len(good)/2], ErrTruncated},
		"cut in the header":    {good[:20], ErrTruncated},
		"only the signature":   {good[:8], ErrTruncated},
		"words":                {[]byte(displaysWarning), ErrMalformed},
		"nothing":              {nil, ErrTruncated},
		"long words":           {bytes.Repeat([]byte("lorem ipsum "), 5000), ErrMalformed},
		"line ends mangled":    {bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), ErrMalformed},
		"a broken header":      {flip(good, 30), ErrMalformed},
		"broken pixels":        {flip(good, len(good)/2), ErrMalformed},
		"a broken checksum":    {flip(good, len(good)-1), ErrMalformed},
		"no IHDR":              {assembled(chunk("IDAT", whole), end), ErrMalformed},
		"a short IHDR":         {assembled(chunk("IHDR", make([]byte, 12)), end), ErrMalformed},
		"no IDAT":              {assembled(ihdr(2, 2, 8, 2, 0, 0, 0), end), ErrMalformed},
		"an empty IDAT":        {rgb(nil), ErrMalformed},
		"too few rows":         {rgb(deflated(t, red[:7])), ErrMalformed},
		"too many rows":        {rgb(deflated(t, append(bytes.Clone(red), 0))), ErrMalformed},
		"rows without an end":  {rgb(whole[:len(whole)-4]), ErrMalformed},
		"rows' checksum wrong": {rgb(flip(whole, len(whole)-1)), ErrMalformed},
		"an unknown filter":    {rgb(deflated(t, append([]byte{5}, red[1:]...))), ErrMalformed},
		"data in IEND":         {assembled(ihdr(2, 2, 8, 2, 0, 0, 0), chunk("IDAT", whole), chunk("IEND", []byte{1})), ErrMalformed},
		"no width":             {assembled(ihdr(0, 2, 8, 2, 0, 0, 0), end), ErrMalformed},
		"a palette":            {assembled(ihdr(2, 2, 8, 3, 0, 0, 0), end), ErrMalformed},
		"4 bits":               {assembled(ihdr(2, 2, 4, 2, 0, 0, 0), end), ErrMalformed},
		"interlaced":           {assembled(ihdr(2, 2, 8, 2, 0, 0, 1), end), ErrMalformed},
		"too wide":             {assembled(ihdr(maxSide+1, 2, 8, 2, 0, 0, 0), end), ErrTooLarge},
		"too many pixels":      {assembled(ihdr(maxSide, maxSide, 8, 2, 0, 0, 0), end), ErrTooLarge},
		"a huge chunk":         {append(assembled(ihdr(2, 2, 8, 2, 0, 0, 0)), 0x7F, 0xFF, 0xFF, 0xFF, 'I', 'D', 'A', 'T'), ErrTooLarge},
	} {
		for way, b := range map[string][]byte{"": c.in, " behind a warning": append([]byte(displaysWarning), c.in...)} {
			want := c.err
			if way != "" && name == "nothing" {
				want = ErrMalformed
			}
			if p, err := ReadPNG(t.Context(), bytes.NewReader(b), Options{}); !errors.Is(err, want) || (p == nil) != (want != nil) {
				t.Errorf("%s%s: %v, want %v", name, way, err, want)
			}
			if _, err := ReadPNG(t.Context(), iotest.OneByteReader(bytes.NewReader(b)), Options{}); !errors.Is(err, want) {
				t.Errorf("%s%s, in pieces: %v, want %v", name, way, err, want)
			}
		}
	}
}

func TestReport06_MultiDisplayWarningBeforePNG(t *testing.T) {
	img := screenOf(30, 20)
	p, err := ReadPNG(t.Context(), strings.NewReader(displaysWarning+string(pngOf(t, img))+"\n"), Options{})
	if err != nil || p.Hash != encoded(t, img, Options{}).Hash {
		t.Errorf("got %v", err)
	}
}

// TestPNGPixels compares with the standard library: each filter, with and without
// alpha, transparent pixels included.
func TestPNGPixels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 20 {
		size := image.Pt(1+r.IntN(40), 1+r.IntN(40))
		img := image.NewNRGBA(image.Rectangle{Max: size})
		for j := range img.Pix {
			img.Pix[j] = uint8(r.UintN(256)) >> (i % 3 * 2)
			if j%4 == 3 && i%2 == 0 {
				img.Pix[j] = 255
			}
		}
		p, err := ReadPNG(t.Context(), bytes.NewReader(pngOf(t, img)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Hash != encoded(t, img, Options{}).Hash {
			t.Errorf("picture %d of %v has other pixels", i, size)
		}
		for filter := range byte(5) {
			if got := refiltered(t, img, filter); got.Hash != p.Hash {
				t.Errorf("picture %d of %v, filter %d: other pixels", i, size, filter)
			}
		}
	}
}

// refiltered reads img from a PNG all rows of which have one filter.
func refiltered(t *testing.T, img *image.NRGBA, filter byte) *Picture {
	t.Helper()
	var rows []byte
	above := make([]byte, img.Stride)
	for y := range img.Rect.Dy() {
		row := img.Pix[y*img.Stride : (y+1)*img.Stride]
		rows = append(rows, filter)
		for i, v := range row {
			var left, corner int
			if i >= 4 {
				left, corner = int(row[i-4]), int(above[i-4])
			}
			predicted := [5]byte{0, byte(left), above[i], byte((left + int(above[i])) / 2), paeth(left, int(above[i]), corner)}
			rows = append(rows, v-predicted[filter])
		}
		above = row
	}
	b := assembled(ihdr(uint32(img.Rect.Dx()), uint32(img.Rect.Dy()), 8, 6, 0, 0, 0), chunk("IDAT", deflated(t, rows)), chunk("IEND", nil))
	if _, err := png.Decode(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	p, err := ReadPNG(t.Context(), bytes.NewReader(b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestATransparentPNGIsBlack(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 20, 20))
	for i := range img.Pix {
		if i%4 < 3 {
			img.Pix[i] = 255
		}
	}
	p, err := ReadPNG(t.Context(), bytes.NewReader(pngOf(t, img)), Options{})
	if err != nil || !p.Black {
		t.Errorf("black %v, %v", p, err)
	}
	shows(t, p, color.RGBA{})
}
