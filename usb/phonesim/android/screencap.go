package android

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"strings"
	"time"

	"phonerack/usb/phonesim/android/toybox"
)

// Numbers of the physical displays, as SurfaceFlinger gives them.
const (
	firstDisplay  = "4619827259835644672"
	secondDisplay = "4619827551948147201"
)

// Pixels is the format of a raw screenshot, by its number in Android (PixelFormat, HAL_PIXEL_FORMAT).
type Pixels uint32

// The formats. 0 is PixelsRGBA.
const (
	PixelsRGBA    Pixels = 1
	PixelsRGB565  Pixels = 4    // 2 bytes a pixel
	Pixels1010102 Pixels = 0x2b // 10 bits a colour and 2 of alpha, in 4 bytes: HDR phones
)

const colorsSRGB = 1 // since Android 10 the header names the colours

func screencap(c *call) int {
	format, file, ok := c.screencapArgs()
	if !ok {
		return 1
	}
	if !c.spend(180 * time.Millisecond) {
		return exitKilled
	}
	f := c.Faults()
	if (c.config.Second || f.DisplayWarning) && c.release.version >= 12 && !c.hasDisplayArg() {
		c.errorf("[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found, " +
			"however this default is not guaranteed to be consistent across captures. A display id should be specified.\n" +
			"A display ID can be specified with the [-d display-id] option.\n" +
			"See \"dumpsys SurfaceFlinger --display-id\" for valid display IDs.\n")
	}
	var out io.Writer = c.out
	if file != "" {
		w, err := c.createFile(file)
		if err != nil {
			c.errorf("Error opening file: %s (%s)\n", file, toybox.Reason(err))
			return 1
		}
		defer w.Close()
		out = w
	}
	if f.Truncate > 0 {
		out = &cutter{w: out, left: f.Truncate}
	}
	if err := c.encode(out, format, c.picture(f)); err != nil {
		return 1
	}
	return 0
}

// screencapArgs reads the options; the name of a file decides the format, too.
func (c *call) screencapArgs() (format, file string, ok bool) {
	format = "raw"
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; {
		case a == "-p" || a == "--png":
			format = "png"
		case (a == "-j" || a == "--jpeg") && c.release.version >= 15:
			format = "jpeg"
		case a == "-a" && c.release.version >= 14:
		case a == "-d":
			i++
			if i >= len(c.args) || !c.validDisplay(c.args[i]) {
				c.errorf("Invalid display ID\n")
				return "", "", false
			}
		case a == "-h" || strings.HasPrefix(a, "-"):
			c.errorf("usage: screencap [-hp] [-d display-id] [FILENAME]\n   -h: this message\n   -p: save the file as a png.\n" +
				"   -d: specify the display ID to capture\nIf FILENAME ends with .png it will be saved as a png.\n" +
				"If FILENAME is not given, the results will be printed to stdout.\n")
			return "", "", false
		default:
			file = a
			switch {
			case strings.HasSuffix(a, ".png"):
				format = "png"
			case c.release.version >= 15 && (strings.HasSuffix(a, ".jpg") || strings.HasSuffix(a, ".jpeg")):
				format = "jpeg"
			}
		}
	}
	return format, file, true
}

func (c *call) hasDisplayArg() bool {
	for _, a := range c.args {
		if a == "-d" || a == "-a" {
			return true
		}
	}
	return false
}

// validDisplay knows the logical number of old Androids and the physical ones of new Androids.
func (c *call) validDisplay(id string) bool {
	if c.release.version < 10 {
		return id == "0"
	}
	return id == firstDisplay || id == secondDisplay && c.config.Second || id == "0" && c.release.version < 14
}

// picture is what the display shows: black if it is off or not to be seen.
func (d *Device) picture(f Faults) *image.RGBA {
	img := d.screen.Render()
	if f.Black || !d.screen.ScreenOn() {
		for i := 0; i+3 < len(img.Pix); i += 4 {
			img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = 0, 0, 0, 255
		}
	}
	return img
}

func (c *call) encode(w io.Writer, format string, img *image.RGBA) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch format {
	case "png":
		if !c.spend(350 * time.Millisecond) {
			return c.ctx.Err()
		}
		err = writePNG(buffered, img)
	case "jpeg":
		err = jpeg.Encode(buffered, img, &jpeg.Options{Quality: 100})
	default:
		err = c.encodeRaw(buffered, img)
	}
	if err != nil {
		return fmt.Errorf("screencap: %w", err)
	}
	return buffered.Flush()
}

// encodeRaw writes the header of this Android and the rows without padding.
func (c *call) encodeRaw(w io.Writer, img *image.RGBA) error {
	size := img.Rect.Size()
	pixels := cmp.Or(c.Faults().Pixels, PixelsRGBA)
	header := []uint32{uint32(size.X), uint32(size.Y), uint32(pixels)}
	if c.release.version > 9 {
		header = append(header, colorsSRGB)
	}
	if err := binary.Write(w, binary.LittleEndian, header); err != nil {
		return err
	}
	for y := range size.Y {
		if _, err := w.Write(pixels.row(img.Pix[y*img.Stride:][:4*size.X])); err != nil {
			return err
		}
	}
	return nil
}

// row converts a row of RGBA, which is opaque.
func (p Pixels) row(pix []byte) []byte {
	var out []byte
	switch p {
	case PixelsRGB565:
		for ; len(pix) > 0; pix = pix[4:] {
			out = binary.LittleEndian.AppendUint16(out, uint16(pix[0])>>3<<11|uint16(pix[1])>>2<<5|uint16(pix[2])>>3)
		}
	case Pixels1010102:
		ten := func(v byte) uint32 { return uint32(v)<<2 | uint32(v)>>6 }
		for ; len(pix) > 0; pix = pix[4:] {
			out = binary.LittleEndian.AppendUint32(out, ten(pix[0])|ten(pix[1])<<10|ten(pix[2])<<20|3<<30)
		}
	default:
		return pix
	}
	return out
}

// cutter drops all after so many bytes.
type cutter struct {
	w    io.Writer
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	part := p[:min(len(p), c.left)]
	c.left -= len(part)
	if _, err := c.w.Write(part); err != nil {
		return 0, err
	}
	return len(p), nil
}
