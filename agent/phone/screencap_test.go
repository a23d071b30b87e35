package phone

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/phone/phonetest"
)

// shot is what a screen of 90x200 shows, in a colour of its own.
func shot(c color.RGBA) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, 90, 200))
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = c.R, c.G, c.B, c.A
	}
	return img
}

var (
	grey  = color.RGBA{0x80, 0x80, 0x80, 0xFF}
	black = color.RGBA{0, 0, 0, 0xFF}
)

// rawShot returns a raw screenshot with a header of 12 or 16 bytes.
func rawShot(img *image.RGBA, header int) string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(img.Rect.Dx()))
	b = binary.LittleEndian.AppendUint32(b, uint32(img.Rect.Dy()))
	b = binary.LittleEndian.AppendUint32(b, 1)
	if header == longHeader {
		b = binary.LittleEndian.AppendUint32(b, 1)
	}
	return string(append(b, img.Pix...))
}

func pngShot(img *image.RGBA) string {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

func gzipShot(img *image.RGBA) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(rawShot(img, longHeader)))
	_ = z.Close()
	return b.String()
}

func jpegShot(img *image.RGBA) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		panic(err)
	}
	return b.String()
}

// screencaps answers screencap as a phone on which the named ways work.
func screencaps(works ...string) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		way := wayOf(r.Command)
		if way == "" {
			return phonetest.Reply{}, false
		}
		if !slices.Contains(works, way) {
			return phonetest.Reply{Stdout: "sh: not found\n"}, true
		}
		return phonetest.Reply{Stdout: map[string]string{
			"raw": rawShot(shot(grey), longHeader), "gzip": gzipShot(shot(grey)), "png": pngShot(shot(grey)), "jpeg": jpegShot(shot(grey)),
		}[way]}, true
	}
}

func wayOf(cmd string) string {
	switch {
	case !strings.HasPrefix(cmd, "screencap"):
		return ""
	case strings.Contains(cmd, "| gzip"):
		return "gzip"
	case strings.Contains(cmd, " -p"):
		return "png"
	case strings.Contains(cmd, " -j"):
		return "jpeg"
	}
	return "raw"
}

// ways are the ways to take a screenshot that were tried.
func ways(a *phonetest.ADB) (all []string) {
	for _, r := range a.Sent() {
		if way := wayOf(r.Command); way != "" {
			all = append(all, way)
		}
	}
	return all
}

func TestEachWayTakesAScreenshot(t *testing.T) {
	for _, way := range []string{"raw", "gzip", "png", "jpeg"} {
		t.Run(way, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, screencaps(way))
			if got := p.Info().Screenshot; got != way {
				t.Fatalf("chosen %q", got)
			}
			picture, err := p.Screenshot(t.Context())
			if err != nil || picture.Source != image.Pt(90, 200) || picture.Black || !slices.Equal(ways(a), []string{way}) {
				t.Errorf("got %v after %v", err, ways(a))
			}
		})
	}
}

func TestAttachTimesEachWay(t *testing.T) {
	_, a := attached(t, phonetest.Handset{}, nil)
	a.Forget()
	if _, err := Attach(t.Context(), a, Options{}); err != nil {
		t.Fatal(err)
	}
	tried := ways(a)
	slices.Sort(tried)
	if !slices.Equal(tried, []string{"gzip", "jpeg", "png", "raw"}) {
		t.Errorf("tried %v", tried)
	}
}

// A way that fails is tried after the others for a while, then before them again.
func TestAFailedWayRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := []string{"raw", "png"}
		slow := func(r phonetest.Request) (phonetest.Reply, bool) {
			if wayOf(r.Command) == "png" {
				time.Sleep(time.Second)
			}
			return screencaps(works...)(r)
		}
		p, a := attached(t, phonetest.Handset{}, slow)
		shoot := func(way string, tried ...string) {
			t.Helper()
			a.Forget()
			if _, err := p.Screenshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ways(a), tried) || p.Info().Screenshot != way {
				t.Errorf("tried %v, want %v; now %q, want %q", ways(a), tried, p.Info().Screenshot, way)
			}
		}
		shoot("raw", "raw")
		works = []string{"png"}
		shoot("png", "raw", "png")
		shoot("png", "png")
		time.Sleep(firstRest)
		shoot("png", "raw", "png")
		time.Sleep(firstRest)
		shoot("png", "png") // it rests twice as long
		works = []string{"raw", "png"}
		time.Sleep(firstRest)
		shoot("raw", "raw")
		works = nil
		a.Forget()
		if _, err := p.Screenshot(t.Context()); !errors.Is(err, ErrNoScreenshot) || !errors.Is(err, ErrMalformed) {
			t.Errorf("nothing works: %v", err)
		}
		if len(ways(a)) != 4 {
			t.Errorf("tried %v", ways(a))
		}
		works = []string{"jpeg"}
		shoot("jpeg", "raw", "png", "gzip", "jpeg")
	})
}

func TestAStalledWayGivesWayToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
			if hangs && wayOf(r.Command) == "raw" {
				return phonetest.Reply{Hang: true}, true
			}
			return screencaps("raw", "png")(r)
		})
		p.shots = methods()
		hangs = true
		if picture, err := p.Screenshot(t.Context()); err != nil || picture.Source != image.Pt(90, 200) {
			t.Errorf("got %v", err)
		}
	})
}

// The screen's first pixel is transparent, so that it looks like a colour space;
// or the header is long and ends in what looks like a pixel.
func TestAWrongGuessOfTheHeaderIsRemembered(t *testing.T) {
	clearPixel := shot(grey)
	clearPixel.Pix[3] = 0
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		if wayOf(r.Command) == "raw" {
			return phonetest.Reply{Stdout: rawShot(clearPixel, shortHeader)}, true
		}
		return phonetest.Reply{}, wayOf(r.Command) != ""
	})
	if p.Info().Screenshot != "raw" {
		t.Fatalf("chosen %q", p.Info().Screenshot)
	}
	if _, err := p.Screenshot(t.Context()); err != nil || len(ways(a)) != 1 {
		t.Errorf("got %v after %v", err, ways(a))
	}
}

const displaysWarning = "[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found.\n"

// foldable answers as a phone with two displays, of which one is on.
func foldable(on string, shows color.RGBA) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		if strings.HasPrefix(r.Command, "dumpsys SurfaceFlinger --display-id") {
			return phonetest.Reply{Stdout: "Display 222 (HWC display 1): port=1 pnpId=ABC displayName=\"cover\"\nDisplay 111 (HWC display 0): port=0 pnpId=ABC displayName=\"main\"\n"}, true
		}
		if wayOf(r.Command) != "png" {
			return phonetest.Reply{}, wayOf(r.Command) != ""
		}
		_, id, _ := strings.Cut(r.Command, " -d ")
		switch id {
		case "":
			return phonetest.Reply{Stdout: displaysWarning + pngShot(shot(grey))}, true
		case on:
			return phonetest.Reply{Stdout: pngShot(shot(shows))}, true
		case "111", "222":
			return phonetest.Reply{Stdout: pngShot(shot(black))}, true
		}
		return phonetest.Reply{Stdout: "Invalid display ID\n"}, true
	}
}

func TestReport06_WithSeveralDisplaysOneIsNamed(t *testing.T) {
	for _, on := range []string{"111", "222"} {
		t.Run(on, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, foldable(on, grey))
			picture, err := p.Screenshot(t.Context())
			if err != nil || picture.Black {
				t.Fatalf("got %v", err)
			}
			if sent := a.Sent(); len(sent) != 1 || sent[0].Command != "screencap -p -d "+on {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

func TestReport06_AFoldedPhoneShowsItsOtherDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := "111"
		p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) { return foldable(on, grey)(r) })
		on = "222"
		if picture, err := p.Screenshot(t.Context()); err != nil || !picture.Black {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(repick + time.Second)
		if picture, err := p.Screenshot(t.Context()); err != nil || picture.Black {
			t.Errorf("later: %v", err)
		}
	})
}

func TestADisplayThatIsGoneIsForgotten(t *testing.T) {
	gone := false
	p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case !gone:
			return foldable("222", grey)(r)
		case strings.Contains(r.Command, " -d "):
			return phonetest.Reply{Stdout: "Invalid display ID\n"}, true
		}
		return screencaps("png")(r)
	})
	gone = true
	if picture, err := p.Screenshot(t.Context()); err != nil || picture.Black {
		t.Errorf("got %v", err)
	}
}

func TestParsePhysicalDisplays(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil,
		"Display 4619827259835644672 (HWC display 0): port=0 pnpId=GGL\n":             {"4619827259835644672"},
		"Display 7 (HWC display 2): port=1\r\nDisplay 5 (HWC display 0): port=0\r\n":  {"5", "7"},
		"Display 1; reboot (HWC display 0): port=0\n":                                 nil,
		"Display 123456789012345678901 (HWC display 0)\n":                             nil,
		" Display 7 (HWC display 0)\nno Display 8 (HWC display 0)\n":                  nil,
		strings.Repeat("Display 7 (HWC display 0): port=0\n", 100):                    {"7", "7", "7", "7"},
		"Display 9 (HWC display 0): port=0 displayName=\"a\nDisplay 8 (HWC display\"": {"9"},
	} {
		if got := parsePhysical(in); !slices.Equal(got, want) {
			t.Errorf("%.40q: %v, want %v", in, got, want)
		}
	}
}

func TestReport21_ABlackWindowBelowTheStatusBar(t *testing.T) {
	big := image.NewRGBA(image.Rect(0, 0, 90, 200))
	for i := range big.Pix {
		if i%4 == 3 || i < 4*90*60 { // the clock: the status bar is 63 rows high
			big.Pix[i] = 0xFF
		}
	}
	p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{Stdout: rawShot(big, longHeader)}, wayOf(r.Command) != ""
	})
	picture, err := p.Screenshot(t.Context())
	if err != nil || !picture.Black {
		t.Errorf("got %v", err)
	}
}

func TestTooManyPicturesAreNoFaultOfTheWay(t *testing.T) {
	p, _ := attached(t, phonetest.Handset{}, nil)
	p.shots = methods()
	p.shots[0].read = func(context.Context, io.Reader, frame.Options) (*frame.Picture, error) {
		return nil, fmt.Errorf("wait: %w", frame.ErrBusy)
	}
	if _, err := p.Screenshot(t.Context()); !errors.Is(err, frame.ErrBusy) || p.Info().Screenshot != "raw" {
		t.Errorf("got %v; now %q", err, p.Info().Screenshot)
	}
}
