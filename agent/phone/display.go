package phone

import (
	"context"
	"fmt"
	"image"
	"regexp"
	"strings"
)

// Display is the screen as it is turned now.
type Display struct {
	Width, Height int // pixels, an override counted in
	Rotation      int // quarter turns anticlockwise from the natural position, 0 to 3
	Density       int // dots per inch, an override counted in
}

// statusBar is the height of Android's status bar, in density-independent pixels.
const statusBar = 24

// statusBar is the height of the status bar, in pixels.
func (d Display) statusBar() int { return (statusBar*d.Density + 159) / 160 }

// The window manager's dump has all of it since Android 7. wm tells the natural
// size, not turned, and costs the start of a virtual machine before Android 8;
// with it the rotation is asked wherever versions of Android tell it.
var displayPart = part[State]{
	name: "display",
	fail: func(s *State, err error) { s.DisplayErr = fmt.Errorf("read display: %w", err) },
	ways: []way[State]{
		{"window", []source{displaysSource, windowsSource}, func(a *answers, s *State) (err error) {
			s.Display, err = parseDisplays(a.text(displaysSource), a.text(windowsSource))
			return err
		}},
		naturalSize("wm", displaysSource, windowsSource),
		naturalSize("input", inputSource),
		naturalSize("display", displaySource),
	},
}

var (
	wmSource      = source{"wm", "wm size; wm density"}
	inputSource   = source{"input", "dumpsys input | grep SurfaceOrientation"}
	displaySource = source{"display", "dumpsys display | grep mCurrentOrientation"}
)

// naturalSize reads the size from wm and the rotation from other sources.
func naturalSize(name string, turned ...source) way[State] {
	return way[State]{name, append([]source{wmSource}, turned...), func(a *answers, s *State) error {
		d, err := parseSize(a.text(wmSource))
		if err != nil {
			return err
		}
		for _, from := range turned {
			turn, ok := parseRotation(firstDisplay(a.text(from)))
			if !ok {
				continue
			}
			if d.Rotation = turn; turn%2 == 1 {
				d.Width, d.Height = d.Height, d.Width
			}
			s.Display = d
			return nil
		}
		return fmt.Errorf("no rotation: %w", ErrMalformed)
	}}
}

var (
	// initLine is a display's size: as built, overridden, and as turned now.
	initLine = regexp.MustCompile(`^\s*init=(\d{1,5})x(\d{1,5}) (\d{1,5})dpi(?: base=(\d{1,5})x(\d{1,5})(?: (\d{1,5})dpi)?)?.* cur=(\d{1,5})x(\d{1,5})\b`)

	sizeLine   = regexp.MustCompile(`^(Physical|Override) size: (\d{1,5})x(\d{1,5})\s*$`)
	denseLine  = regexp.MustCompile(`^(Physical|Override) density: (\d{1,5})\s*$`)
	turnedLine = regexp.MustCompile(`^\s*(?:mRotation|mCurrentRotation|SurfaceOrientation|mCurrentOrientation)[=:] *(?:ROTATION_)?(\d{1,3})\b`)
	framesLine = regexp.MustCompile(`^\s*DisplayFrames w=\d+ h=\d+ r=(\d)\b`)
)

// Display returns the size and the rotation of the screen as they are now. While
// it turns it asks again for up to three seconds.
func (p *Phone) Display(ctx context.Context) (Display, error) {
	s := p.settled(ctx, []part[State]{displayPart})
	if s.DisplayErr == nil {
		p.display.Store(&s.Display)
	}
	return s.Display, s.DisplayErr
}

// displayByTool asks wm, for a phone whose window manager does not come to rest.
func (p *Phone) displayByTool(ctx context.Context, s *State) {
	tool := displayPart
	tool.ways = tool.ways[1:]
	got := p.readState(ctx, []part[State]{tool})
	s.Display, s.DisplayErr = got.Display, got.DisplayErr
}

// firstDisplay cuts a dump of displays to that of number 0, which is the one
// that is touched and shot.
func firstDisplay(out string) string {
	const head = "Display: mDisplayId="
	from := 0
	for {
		at := strings.Index(out[from:], head)
		if at < 0 {
			return out
		}
		at += from
		line := out[strings.LastIndexByte(out[:at], '\n')+1:]
		if end := strings.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if m := displayRow.FindStringSubmatch(line); m != nil && m[1] == "0" {
			if end := strings.Index(out[at+len(head):], head); end >= 0 {
				return out[at : at+len(head)+end]
			}
			return out[at:]
		}
		from = at + len(head)
	}
}

// parseDisplays reads the window manager's dump of displays. Before Android 10
// the rotation stands in the dump of windows.
func parseDisplays(displays, windows string) (Display, error) {
	own := firstDisplay(displays)
	m := row(own, "init=", initLine)
	if m == nil {
		return Display{}, fmt.Errorf("no size: %w", ErrMalformed)
	}
	d := Display{Width: number(m[7]), Height: number(m[8]), Density: number(m[3])}
	natural := image.Pt(number(m[1]), number(m[2]))
	if m[4] != "" {
		if m[6] == "" {
			return Display{}, fmt.Errorf("an override without density: %w", ErrMalformed)
		}
		natural, d.Density = image.Pt(number(m[4]), number(m[5])), number(m[6])
	}
	turn, ok := parseRotation(own)
	if !ok {
		turn, ok = parseRotation(windows)
	}
	if !ok {
		return Display{}, fmt.Errorf("no rotation: %w", ErrMalformed)
	}
	d.Rotation = turn
	if turn%2 == 1 {
		natural = image.Pt(natural.Y, natural.X)
	}
	if natural.X > natural.Y != (d.Width > d.Height) && natural.X != natural.Y && d.Width != d.Height {
		return Display{}, fmt.Errorf("%dx%d turned by %d: %w", d.Width, d.Height, turn, ErrInTransition)
	}
	return d, d.check()
}

// parseSize reads what wm prints: the natural size, not turned.
func parseSize(out string) (Display, error) {
	var d Display
	for line := range rows(out, " size: ") {
		m := sizeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if w, h := number(m[2]), number(m[3]); d.Width == 0 || m[1] == "Override" {
			d.Width, d.Height = w, h
		}
	}
	for line := range rows(out, " density: ") {
		m := denseLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if d.Density == 0 || m[1] == "Override" {
			d.Density = number(m[2])
		}
	}
	return d, d.check()
}

// check refuses a size that no display has.
func (d Display) check() error {
	if d.Width < 1 || d.Height < 1 || d.Width > maxEdge || d.Height > maxEdge {
		return fmt.Errorf("size %dx%d: %w", d.Width, d.Height, ErrMalformed)
	}
	return nil
}

// parseRotation reads quarter turns, which newer versions print in degrees.
func parseRotation(out string) (int, bool) {
	m := row(out, "otation=", turnedLine)
	for _, key := range []string{"SurfaceOrientation:", "mCurrentOrientation="} {
		if m == nil {
			m = row(out, key, turnedLine)
		}
	}
	if m == nil {
		m = row(out, "DisplayFrames ", framesLine)
	}
	if m == nil {
		return 0, false
	}
	turn := number(m[1])
	if turn >= 90 && turn%90 == 0 {
		turn /= 90
	}
	return turn, turn <= 3
}
