package frame

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

// square is a screen of four pixels, red first, as raw pixels of a format.
func square(format uint32) []byte {
	switch format {
	case 3:
		return bytes.Repeat([]byte{255, 0, 0}, 4)
	case 4:
		return bytes.Repeat([]byte{0x00, 0xF8}, 4)
	case 5:
		return bytes.Repeat([]byte{0, 0, 255, 255}, 4)
	case 43:
		return bytes.Repeat([]byte{0xFF, 0x03, 0x00, 0xC0}, 4)
	}
	return bytes.Repeat([]byte{255, 0, 0, 255}, 4)
}

func TestRawScreenshots(t *testing.T) {
	mangled := bytes.ReplaceAll(raw(slices.Repeat([]byte{10, 10, 10, 255}, 4), 2, 2, 1, 1), []byte("\n"), []byte("\r\n"))
	header := func(fits int) func(error) bool {
		return func(err error) bool {
			var h *HeaderError
			return errors.As(err, &h) && h.Fits == fits && errors.Is(err, ErrMalformed)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	var none func(error) bool
	for name, c := range map[string]struct {
		in    []byte
		fails func(error) bool
		o     Options
	}{
		"12 bytes, RGBA":          {raw(square(1), 2, 2, 1), none, Options{}},
		"16 bytes, RGBA":          {raw(square(1), 2, 2, 1, 0), none, Options{}},
		"16 bytes, sRGB":          {raw(square(1), 2, 2, 1, 1), none, Options{}},
		"16 bytes, a data space":  {raw(square(1), 2, 2, 1, 0x08810000), none, Options{}},
		"12 bytes, RGBX":          {raw(square(2), 2, 2, 2), none, Options{}},
		"16 bytes, RGBX":          {raw(square(2), 2, 2, 2, 2), none, Options{}},
		"12 bytes, 888":           {raw(square(3), 2, 2, 3), none, Options{}},
		"16 bytes, 888":           {raw(square(3), 2, 2, 3, 1), none, Options{}},
		"12 bytes, 565":           {raw(square(4), 2, 2, 4), none, Options{}},
		"16 bytes, 565":           {raw(square(4), 2, 2, 4, 1), none, Options{}},
		"12 bytes, BGRA":          {raw(square(5), 2, 2, 5), none, Options{}},
		"16 bytes, BGRA":          {raw(square(5), 2, 2, 5, 1), none, Options{}},
		"12 bytes, 1010102":       {raw(square(43), 2, 2, 43), none, Options{}},
		"16 bytes, 1010102":       {raw(square(43), 2, 2, 43, 2), none, Options{}},
		"12 bytes, told":          {raw(square(1), 2, 2, 1), none, Options{Header: 12}},
		"16 bytes, told":          {raw(square(1), 2, 2, 1, 0xFFFFFFFF), none, Options{Header: 16}},
		"clear pixel first":       {raw([]byte{255, 0, 0, 0, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255}, 2, 2, 1), header(12), Options{}},
		"clear pixel first, told": {raw([]byte{255, 0, 0, 0, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255}, 2, 2, 1), none, Options{Header: 12}},
		"a colour space like red": {raw(square(1), 2, 2, 1, 0xFF0000FF), header(16), Options{}},
		"12 bytes, told 16":       {raw(square(1), 2, 2, 1), header(12), Options{Header: 16}},
		"16 bytes, told 12":       {raw(square(1), 2, 2, 1, 1), header(16), Options{Header: 12}},
		"565 black first":         {raw(make([]byte, 8), 2, 2, 4), header(12), Options{}},
		"nothing":                 {nil, is(ErrTruncated), Options{}},
		"a byte":                  {[]byte{2}, is(ErrTruncated), Options{}},
		"half a header":           {raw(nil, 1, 2)[:7], is(ErrTruncated), Options{}},
		"a header":                {raw(nil, 2, 2, 1), is(ErrTruncated), Options{}},
		"a long header":           {raw(nil, 2, 2, 1, 0), is(ErrTruncated), Options{}},
		"in a row":                {raw(square(1)[:5], 2, 2, 1, 0), is(ErrTruncated), Options{}},
		"between rows":            {raw(square(1)[:8], 2, 2, 1, 0), is(ErrTruncated), Options{}},
		"a byte short":            {raw(square(1)[:15], 2, 2, 1), is(ErrTruncated), Options{}},
		"a byte long":             {raw(append(square(1), 1), 2, 2, 1), is(ErrMalformed), Options{}},
		"much too long":           {raw(make([]byte, 100_000), 2, 2, 1, 0), is(ErrMalformed), Options{}},
		"words after it":          {raw(append(square(1), "bye\n"...), 2, 2, 1, 0), is(ErrMalformed), Options{}},
		"line ends mangled":       {mangled, is(ErrMalformed), Options{}},
		"no width":                {raw(square(1), 0, 2, 1), is(ErrMalformed), Options{}},
		"no height":               {raw(square(1), 2, 0, 1, 0), is(ErrMalformed), Options{}},
		"unknown format":          {raw(square(1), 2, 2, 22), is(ErrMalformed), Options{}},
		"too wide":                {raw(square(1), maxSide+1, 2, 1), is(ErrTooLarge), Options{}},
		"too high":                {raw(square(1), 2, 1<<31, 1), is(ErrTooLarge), Options{}},
		"too many pixels":         {raw(square(1), maxSide, maxSide, 1), is(ErrTooLarge), Options{}},
		"large and hardly there":  {raw(square(1), 4096, 4096, 1), is(ErrTruncated), Options{}},
		"words":                   {[]byte("screencap: capture failed, sorry\n"), is(ErrTooLarge), Options{}},
		"a warning before it":     {append([]byte("[Warning] Multiple displays were found\n"), raw(square(1), 2, 2, 1)...), is(ErrTooLarge), Options{}},
		"a PNG":                   {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), is(ErrTooLarge), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, read := range map[string]func() (*Picture, error){
				"plain": func() (*Picture, error) { return ReadRaw(t.Context(), bytes.NewReader(c.in), c.o) },
				"in pieces": func() (*Picture, error) {
					return ReadRaw(t.Context(), iotest.OneByteReader(bytes.NewReader(c.in)), c.o)
				},
				"with EOF": func() (*Picture, error) {
					return ReadRaw(t.Context(), iotest.DataErrReader(bytes.NewReader(c.in)), c.o)
				},
				"compressed": func() (*Picture, error) { return ReadGzip(t.Context(), bytes.NewReader(gzipOf(t, c.in)), c.o) },
			} {
				p, err := read()
				if c.fails != nil {
					if p != nil || err == nil || !c.fails(err) {
						t.Errorf("%s: %v", way, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", way, err)
					continue
				}
				if p.Source != image.Pt(2, 2) || p.Size != image.Pt(2, 2) || p.Black {
					t.Errorf("%s: %v of %v, black %t", way, p.Size, p.Source, p.Black)
				}
				shows(t, p, color.RGBA{255, 0, 0, 255})
			}
		})
	}
}

// shows checks the colour of a picture that has one.
func shows(t *testing.T, p *Picture, want color.RGBA) {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(p.JPEG))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Size() != p.Size {
		t.Errorf("%v in a JPEG of %v", p.Size, img.Bounds())
	}
	got := color.RGBAModel.Convert(img.At(0, 0)).(color.RGBA)
	far := func(a, b uint8) bool { return max(a, b)-min(a, b) > 3 }
	if far(got.R, want.R) || far(got.G, want.G) || far(got.B, want.B) {
		t.Errorf("shows %v, want %v", got, want)
	}
}

func TestCompressedScreenshotsThatAreNot(t *testing.T) {
	good := gzipOf(t, raw(square(1), 2, 2, 1))
	bad := bytes.Clone(good)
	bad[len(bad)-5] ^= 1
	broken := bytes.Clone(good)
	broken[12] ^= 0xFF
	for name, c := range map[string]struct {
		in  []byte
		err error
	}{
		"words":             {[]byte("sh: gzip: not found, inaccessible\n"), ErrMalformed},
		"nothing":           {nil, ErrTruncated},
		"a byte":            {good[:1], ErrTruncated},
		"cut header":        {good[:5], ErrTruncated},
		"cut data":          {good[:14], ErrTruncated},
		"no checksum":       {good[:len(good)-8], ErrTruncated},
		"cut checksum":      {good[:len(good)-6], ErrTruncated},
		"checksum":          {bad, ErrMalformed},
		"data":              {broken, ErrMalformed},
		"line ends mangled": {bytes.ReplaceAll(gzipOf(t, rawOf(screenOf(64, 64), longHeader)), []byte("\n"), []byte("\r\n")), ErrMalformed},
	} {
		if _, err := ReadGzip(t.Context(), bytes.NewReader(c.in), Options{}); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEveryWayGivesTheSamePicture compares the ways that lose nothing, at sizes
// that take each of the scaler's branches.
func TestEveryWayGivesTheSamePicture(t *testing.T) {
	for _, size := range []image.Point{
		{108, 240},
		{108, 241},
		{108, 242},
		{144, 150},
		{144, 151},
		{144, 153},
		{122, 128},
		{72, 73},
		{72, 74},
		{240, 108},
		{107, 239},
		{17, 5},
		{1, 1},
		{300, 1},
		{33, 500},
		{300, 280},
	} {
		img := screenOf(size.X, size.Y)
		o := Options{Width: 72, Mask: size.Y / 40}
		want := encoded(t, img, o)
		if got := decode(t, want.JPEG).Bounds().Size(); got != want.Size {
			t.Errorf("%v: a JPEG of %v, want %v", size, got, want.Size)
		}
		for name, c := range map[string]struct {
			read   reader
			stream []byte
		}{
			"raw 12": {ReadRaw, rawOf(img, shortHeader)},
			"raw 16": {ReadRaw, rawOf(img, longHeader)},
			"gzip":   {ReadGzip, gzipOf(t, rawOf(img, longHeader))},
			"png":    {ReadPNG, pngOf(t, img)},
		} {
			for _, r := range []io.Reader{bytes.NewReader(c.stream), iotest.HalfReader(bytes.NewReader(c.stream)), iotest.OneByteReader(bytes.NewReader(c.stream))} {
				got, err := c.read(t.Context(), r, o)
				if err != nil {
					t.Fatalf("%v %s: %v", size, name, err)
				}
				if !bytes.Equal(got.JPEG, want.JPEG) || got.Hash != want.Hash || got.Thumb != want.Thumb || got.Black != want.Black || got.Size != want.Size || got.Source != want.Source {
					t.Errorf("%v %s: another picture", size, name)
				}
			}
		}
	}
}

// TestASetForgetsThePictureBefore makes pictures of many sizes in one set.
func TestASetForgetsThePictureBefore(t *testing.T) {
	var used set
	for range 2 {
		for _, size := range []image.Point{{300, 280}, {108, 240}, {17, 5}, {144, 150}, {122, 128}, {72, 73}, {240, 108}} {
			img := screenOf(size.X, size.Y)
			o := Options{Width: 72, Quality: 50 + size.X%3}
			got, want := used.encode(img, o), new(set).encode(img, o)
			if !bytes.Equal(got.JPEG, want.JPEG) || got.Hash != want.Hash || got.Thumb != want.Thumb {
				t.Errorf("%v: another picture than in a new set", size)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct{ source, want image.Point }{
		{image.Pt(1080, 2400), image.Pt(720, 1600)},
		{image.Pt(2400, 1080), image.Pt(1600, 720)}, // on its side: as legible as upright
		{image.Pt(1080, 2408), image.Pt(720, 1605)},
		{image.Pt(1440, 3120), image.Pt(720, 1560)},
		{image.Pt(1220, 2712), image.Pt(720, 1600)},
		{image.Pt(720, 1600), image.Pt(720, 1600)},
		{image.Pt(480, 800), image.Pt(480, 800)},
		{image.Pt(maxSide, 1), image.Pt(maxSide, 1)},
		{image.Pt(721, 721), image.Pt(720, 720)},
	} {
		w, h, _ := scaled(c.source.X, c.source.Y, DefaultWidth)
		if got := image.Pt(w, h); got != c.want {
			t.Errorf("%v becomes %v, want %v", c.source, got, c.want)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	img := grey(9, 9, 9)
	for name, o := range map[string]Options{
		"quality":  {Quality: 101},
		"negative": {Quality: -1},
		"width":    {Width: maxSide + 1},
		"narrow":   {Width: -1},
		"mask":     {Mask: -1},
		"header":   {Header: 13},
		"stall":    {Stall: -1},
		"total":    {Total: -1},
	} {
		if _, err := Encode(img, o); err == nil {
			t.Errorf("%s: Encode takes it", name)
		}
		if _, err := ReadRaw(t.Context(), bytes.NewReader(rawOf(img, longHeader)), o); err == nil {
			t.Errorf("%s: ReadRaw takes it", name)
		}
	}
	var none *image.RGBA
	for name, img := range map[string]image.Image{"nil": nil, "nil RGBA": none, "empty": image.NewGray(image.Rect(5, 5, 5, 9))} {
		if _, err := Encode(img, Options{}); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Encode(image.NewUniform(color.Black), Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless: %v", err)
	}
}

func TestEncodeTakesAnyImage(t *testing.T) {
	rgba := screenOf(90, 200)
	o := Options{Width: 60}
	want := encoded(t, rgba, o)
	moved := image.NewRGBA(image.Rect(7, 9, 150, 300))
	draw.Draw(moved, rgba.Rect.Add(image.Pt(11, 13)), rgba, image.Point{}, draw.Src)
	nrgba := image.NewNRGBA(rgba.Rect)
	draw.Draw(nrgba, rgba.Rect, rgba, image.Point{}, draw.Src)
	for name, img := range map[string]image.Image{"part": moved.SubImage(rgba.Rect.Add(image.Pt(11, 13))), "NRGBA": nrgba} {
		if got := encoded(t, img, o); !bytes.Equal(got.JPEG, want.JPEG) || got.Hash != want.Hash {
			t.Errorf("%s: another picture", name)
		}
	}
}
