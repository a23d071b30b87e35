package frame

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"testing"
	"testing/iotest"
)

func TestJPEGScreenshots(t *testing.T) {
	good := jpegOf(t, screenOf(64, 48))
	huge := bytes.Clone(good)
	at := bytes.Index(huge, []byte{0xFF, 0xC0}) + 5 // height, width
	copy(huge[at:], []byte{0x20, 0x01, 0x20, 0x01})
	many := bytes.Clone(good)
	copy(many[at:], []byte{0x20, 0x00, 0x20, 0x00})
	none := bytes.Clone(good)
	copy(none[at:], []byte{0, 0})
	four := bytes.Clone(good)
	four[at+4] = 4
	progressive := bytes.Clone(good)
	progressive[at-4] = 0xC2
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"plain":              {good, nil},
		"behind a warning":   {append([]byte(displaysWarning), good...), nil},
		"before words":       {append(bytes.Clone(good), "bye\n"...), nil},
		"grey":               {jpegOf(t, image.NewGray(image.Rect(0, 0, 30, 20))), nil},
		"nothing":            {nil, ErrTruncated},
		"words":              {[]byte("usage: screencap [-hp] [-d display-id] [FILENAME]\n"), ErrMalformed},
		"only the signature": {good[:3], ErrTruncated},
		"cut in a segment":   {good[:30], ErrTruncated},
		"cut before a frame": {good[:at-5], ErrTruncated},
		"cut in the frame":   {good[:at+2], ErrTruncated},
		"cut in the pixels":  {good[:len(good)/2], ErrTruncated},
		"no end":             {good[:len(good)-2], ErrTruncated},
		"line ends mangled":  {bytes.ReplaceAll(jpegOf(t, screenOf(200, 200)), []byte("\n"), []byte("\r\n")), ErrMalformed},
		"no segment":         {append([]byte("\xFF\xD8\xFF\xE0\x00\x02"), "no marker\xFF\xD9"...), ErrMalformed},
		"too large":          {huge, ErrTooLarge},
		"too many pixels":    {many, ErrTooLarge},
		"no height":          {none, ErrMalformed},
		"four components":    {four, ErrMalformed},
		"progressive":        {progressive, ErrMalformed},
		"a scan first":       {[]byte("\xFF\xD8\xFF\xDA\x00\x02\xFF\xD9"), ErrMalformed},
	} {
		p, err := ReadJPEG(t.Context(), bytes.NewReader(c.in), Options{})
		if !errors.Is(err, c.err) || (p == nil) != (c.err != nil) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		if _, err := ReadJPEG(t.Context(), iotest.OneByteReader(bytes.NewReader(c.in)), Options{}); !errors.Is(err, c.err) {
			t.Errorf("%s, in pieces: %v, want %v", name, err, c.err)
		}
	}
	if _, err := ReadJPEG(t.Context(), &endless{"\xFF\xD8\xFF\xE0"}, Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless: %v", err)
	}
}

// endless is a beginning and then zeros for ever.
type endless struct{ lead string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.lead)
	e.lead = e.lead[n:]
	clear(p[n:])
	return len(p), nil
}

func TestAJPEGShowsWhatWasSent(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 90, 200))
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = 200, 100, 50, 255
	}
	p, err := ReadJPEG(t.Context(), bytes.NewReader(jpegOf(t, img)), Options{Width: 60})
	if err != nil || p.Source != image.Pt(90, 200) || p.Size != image.Pt(60, 133) || p.Black {
		t.Fatalf("got %v", err)
	}
	shows(t, p, color.RGBA{200, 100, 50, 255})
}

// TestOurJPEGsAreReadBack is about the tables, the codes and the stuffing: all
// qualities, all sizes of edges.
func TestOurJPEGsAreReadBack(t *testing.T) {
	for quality := 1; quality <= 100; quality += 9 {
		for _, size := range []image.Point{{1, 1}, {8, 8}, {15, 17}, {16, 16}, {33, 9}, {64, 64}} {
			img := screenOf(size.X, size.Y)
			for i := range img.Pix {
				if i%4 != 3 && i%5 < 2 {
					img.Pix[i] = byte(i * i * 7)
				}
			}
			p := encoded(t, img, Options{Quality: quality})
			back, err := jpeg.Decode(bytes.NewReader(p.JPEG))
			if err != nil || back.Bounds().Size() != size {
				t.Fatalf("quality %d, %v: %v", quality, size, err)
			}
			var theirs bytes.Buffer
			if err := jpeg.Encode(&theirs, img, &jpeg.Options{Quality: quality}); err != nil {
				t.Fatal(err)
			}
			exact := areaAverage(img, size, ratio{1, 1})
			got, want := psnr(t, p.JPEG, exact, img.Rect), psnr(t, theirs.Bytes(), exact, img.Rect)
			if got < want-0.6 { // few pixels: chance weighs
				t.Errorf("quality %d, %v: %.2f dB, the standard library has %.2f", quality, size, got, want)
			}
		}
	}
}
