package phone

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

// raw returns a raw screenshot with a header of so many uint32.
func raw(pixels []byte, header ...uint32) []byte {
	var b []byte
	for _, v := range header {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, pixels...)
}

func pngOf(t testing.TB, w, h int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	img.SetNRGBA(0, 0, color.NRGBA{1, 2, 3, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func squeeze(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRawScreenshots(t *testing.T) {
	two := []byte{1, 2, 3, 255, 4, 5, 6, 0}
	for name, c := range map[string]struct {
		in    []byte
		first color.RGBA
		err   error
	}{
		"12 bytes, RGBA":         {raw(two, 1, 2, 1), color.RGBA{1, 2, 3, 255}, nil},
		"16 bytes, RGBA":         {raw(two, 1, 2, 1, 0), color.RGBA{1, 2, 3, 255}, nil},
		"RGBX":                   {raw([]byte{1, 2, 3, 9, 4, 5, 6, 9}, 2, 1, 2, 1), color.RGBA{1, 2, 3, 255}, nil},
		"12 bytes, 565":          {raw([]byte{0x00, 0xF8, 0, 0}, 2, 1, 4), color.RGBA{255, 0, 0, 255}, nil},
		"16 bytes, 565":          {raw([]byte{0xE0, 0x07, 0, 0}, 2, 1, 4, 0), color.RGBA{0, 255, 0, 255}, nil},
		"nothing":                {nil, color.RGBA{}, ErrTruncated},
		"half a header":          {raw(nil, 1, 2)[:7], color.RGBA{}, ErrTruncated},
		"no pixels":              {raw(nil, 1, 2, 1), color.RGBA{}, ErrTruncated},
		"a byte short":           {raw(two[:7], 1, 2, 1), color.RGBA{}, ErrTruncated},
		"line ends mangled":      {raw(append(two, 1, 2), 1, 2, 1, 0), color.RGBA{}, ErrMalformed},
		"much too long":          {raw(make([]byte, 1000), 1, 2, 1), color.RGBA{}, ErrMalformed},
		"no size":                {raw(two, 0, 2, 1), color.RGBA{}, ErrMalformed},
		"1010102":                {raw(two, 1, 2, 43), color.RGBA{}, ErrMalformed},
		"too wide":               {raw(two, maxEdge+1, 2, 1), color.RGBA{}, ErrTooLarge},
		"too high":               {raw(two, 1, 1<<31, 1), color.RGBA{}, ErrTooLarge},
		"words":                  {[]byte("screencap: capture failed, sorry\n"), color.RGBA{}, ErrTooLarge},
		"large and hardly there": {raw(two, maxEdge, maxEdge, 1), color.RGBA{}, ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			for way, decode := range map[string]func() (*image.RGBA, error){
				"plain":      func() (*image.RGBA, error) { return decodeRaw(bytes.NewReader(c.in), maxEdge) },
				"in pieces":  func() (*image.RGBA, error) { return decodeRaw(oneByte{bytes.NewReader(c.in)}, maxEdge) },
				"compressed": func() (*image.RGBA, error) { return decodeGzip(bytes.NewReader(squeeze(t, c.in)), maxEdge) },
			} {
				img, err := decode()
				if !errors.Is(err, c.err) {
					t.Fatalf("%s: %v", way, err)
				}
				if err != nil {
					continue
				}
				if got := img.RGBAAt(0, 0); got != c.first || img.Bounds().Dx()*img.Bounds().Dy() != 2 {
					t.Errorf("%s: %v in %v", way, got, img.Bounds())
				}
				for i := 3; i < len(img.Pix); i += 4 {
					if img.Pix[i] != 255 {
						t.Errorf("%s: not opaque", way)
					}
				}
			}
		})
	}
}

// oneByte reads a byte at a time.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

func TestCompressedScreenshotsThatAreNot(t *testing.T) {
	good := squeeze(t, raw(make([]byte, 8), 1, 2, 1))
	bad := bytes.Clone(good)
	bad[len(bad)-5] ^= 1
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"words":      {[]byte("sh: gzip: not found, inaccessible\n"), ErrMalformed},
		"nothing":    {nil, ErrTruncated},
		"cut":        {good[:len(good)-6], ErrTruncated},
		"cut header": {good[:5], ErrTruncated},
		"checksum":   {bad, ErrMalformed},
	} {
		if _, err := decodeGzip(bytes.NewReader(c.in), maxEdge); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPNGScreenshots(t *testing.T) {
	good := pngOf(t, 3, 2)
	const warning = "[Warning] Multiple displays were found, but no display id was specified!\n"
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"plain":               {good, nil},
		"behind a warning":    {append([]byte(warning), good...), nil},
		"before words":        {append(bytes.Clone(good), "bye\n"...), nil},
		"no IEND":             {good[:len(good)-12], ErrTruncated},
		"a byte short":        {good[:len(good)-1], ErrTruncated},
		"cut in a chunk":      {good[:40], ErrTruncated},
		"only the signature":  {good[:8], ErrTruncated},
		"words":               {[]byte(warning), ErrMalformed},
		"nothing":             {nil, ErrMalformed},
		"line ends mangled":   {bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), ErrMalformed},
		"a broken checksum":   {flip(good, 30), ErrMalformed},
		"too large to decode": {pngOf(t, 300, 2), ErrTooLarge},
	} {
		img, err := decodePNG(c.in, 200)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (img.Bounds().Size() != image.Pt(3, 2) || img.RGBAAt(0, 0) != color.RGBA{1, 2, 3, 255}) {
			t.Errorf("%s: %v", name, img.RGBAAt(0, 0))
		}
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x55
	return b
}

func TestScreenshotKeepsWhatWorks(t *testing.T) {
	const w, h = 4, 2
	works := map[string]bool{"raw": true, "png": true}
	script := func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case strings.HasPrefix(r.Command, "screencap -p") && works["png"]:
			return phonetest.Reply{Stdout: string(pngOf(t, w, h))}, true
		case r.Command == "screencap 2>/dev/null" && works["raw"]:
			return phonetest.Reply{Stdout: string(phonetest.RawScreenshot(image.Pt(w, h)))}, true
		}
		return phonetest.Reply{Stdout: "sh: not found\n"}, strings.HasPrefix(r.Command, "screencap")
	}
	p, a := attached(t, phonetest.Handset{}, script)
	first := p.Info().Screenshot
	if first != "raw" && first != "png" {
		t.Fatalf("chosen %q", first)
	}
	shoot := func(requests int, way string) {
		t.Helper()
		a.Forget()
		img, err := p.Screenshot(t.Context())
		if err != nil || img.Source != image.Pt(w, h) {
			t.Fatalf("got %v, %v", img, err)
		}
		if n := len(a.Sent()); n != requests || p.Info().Screenshot != way {
			t.Errorf("%d requests, want %d; now %q, want %q", n, requests, p.Info().Screenshot, way)
		}
	}
	shoot(1, first)
	other := map[string]string{"raw": "png", "png": "raw"}[first]
	works[first] = false
	shoot(2, other)
	shoot(1, other)
	works[other] = false
	if _, err := p.Screenshot(t.Context()); !errors.Is(err, ErrNoScreenshot) || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
		t.Errorf("nothing works: %v", err)
	}
	works["raw"] = true
	if _, err := p.Screenshot(t.Context()); err != nil {
		t.Errorf("works again: %v", err)
	}
}

func FuzzScreenshot(f *testing.F) {
	f.Add(raw(make([]byte, 8), 1, 2, 1))
	f.Add(raw(make([]byte, 8), 2, 2, 4, 0))
	f.Add(squeeze(f, raw(make([]byte, 8), 1, 2, 1, 0)))
	f.Add(pngOf(f, 3, 2))
	f.Add(append([]byte("[Warning] two displays\n"), pngOf(f, 5, 5)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 256
		for _, decode := range []func() (*image.RGBA, error){
			func() (*image.RGBA, error) { return decodeRaw(bytes.NewReader(b), limit) },
			func() (*image.RGBA, error) { return decodeGzip(bytes.NewReader(b), limit) },
			func() (*image.RGBA, error) { return decodePNG(b, limit) },
		} {
			img, err := decode()
			if (img == nil) == (err == nil) {
				t.Fatalf("image %v, error %v", img != nil, err)
			}
			if img != nil && (img.Bounds().Dx() > limit || img.Bounds().Dy() > limit || len(img.Pix) != 4*img.Bounds().Dx()*img.Bounds().Dy()) {
				t.Fatalf("%v with %d bytes", img.Bounds(), len(img.Pix))
			}
		}
	})
}
