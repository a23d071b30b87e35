package phone

import (
	"context"
	"fmt"
	"image"
	"regexp"
	"slices"
	"time"

	"phonerack/agent/frame"
)

// Which of several physical displays is captured if none is named may change
// from one screenshot to the next, as screencap itself warns. So one is chosen:
// the first that shows something and has the size of the logical display.

var (
	multipleDisplays = regexp.MustCompile(`(?i)multiple displays`)
	displayLine      = regexp.MustCompile(`(?m)^Display (\d{1,20}) \(HWC display (\d{1,3})\)`)
)

// displays is what is known of a phone's physical displays.
type displays struct {
	heard   bool      // a way that lets warnings through was tried, or they were counted
	several bool      // there is more than one
	chosen  string    // the one that is captured; "" leaves it to the phone
	picked  time.Time // when it was chosen
}

// maxDisplays bounds how many displays are looked at, repick how often, while
// the chosen one is black: a phone that has been folded uses the other one.
const (
	maxDisplays = 4
	repick      = time.Minute
)

// heard keeps what is known about the number of displays.
func (p *Phone) heard(several bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.displays.heard = true
	p.displays.several = p.displays.several || several
}

// countDisplays asks once how many displays there are, if no way has been tried
// that would have shown the warning. Phones before Android 10 have one.
func (p *Phone) countDisplays(ctx context.Context) {
	p.mu.Lock()
	known := p.displays.heard
	p.mu.Unlock()
	if known || p.info.SDK < 29 {
		return
	}
	ids, err := p.physicalDisplays(ctx)
	p.heard(err == nil && len(ids) > 1)
}

// mustPick tells whether there are several displays and none is chosen.
func (p *Phone) mustPick() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.displays.several && p.displays.chosen == "" && p.displays.picked.IsZero()
}

// pickDisplay chooses the display that is captured from now on. If none can be
// told the choice is left to the phone.
func (p *Phone) pickDisplay(ctx context.Context, m method) {
	ids, err := p.physicalDisplays(ctx)
	if err != nil {
		p.log.Warn("cannot tell the displays of the phone", "serial", p.info.Serial, "err", err)
	}
	best, score := "", -1
	for _, id := range ids {
		picture, err := p.shootDisplay(ctx, m, id)
		if err != nil {
			continue
		}
		s := 0
		if !picture.Black {
			s += 2
		}
		if d := p.display.Load(); d != nil && sameSides(picture.Source, image.Pt(d.Width, d.Height)) {
			s++
		}
		if s > score {
			best, score = id, s
		}
	}
	p.log.Info("display chosen", "serial", p.info.Serial, "display", best, "of", ids)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.displays.chosen, p.displays.picked = best, time.Now()
}

// forgetDisplay leaves the choice to the phone and tells whether that changes
// anything.
func (p *Phone) forgetDisplay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.displays.chosen != ""
	p.displays.chosen, p.displays.picked = "", time.Time{}
	return had
}

// otherDisplay looks at the other displays if the chosen one is black, and
// returns what one of them shows. It is nil if that is not to be tried.
func (p *Phone) otherDisplay(ctx context.Context, picture *frame.Picture, m method) *frame.Picture {
	p.mu.Lock()
	known := p.displays
	p.mu.Unlock()
	due := known.several && (known.chosen == "" && known.picked.IsZero() || picture.Black && time.Since(known.picked) > repick)
	if !due {
		return nil
	}
	p.pickDisplay(ctx, m)
	p.mu.Lock()
	changed := p.displays.chosen != known.chosen
	p.mu.Unlock()
	if !changed {
		return nil
	}
	again, err := p.shoot(ctx, m)
	if err != nil {
		return nil
	}
	return again
}

// physicalDisplays returns the numbers of the displays, the main one first.
func (p *Phone) physicalDisplays(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, err := p.conn.text(ctx, "dumpsys SurfaceFlinger --display-id")
	if err != nil {
		return nil, fmt.Errorf("list displays: %w", err)
	}
	ids := parsePhysical(out)
	if len(ids) == 0 {
		return nil, fmt.Errorf("list displays: %q: %w", excerpt([]byte(out)), ErrMalformed)
	}
	return ids, nil
}

// parsePhysical reads SurfaceFlinger's list, in the order of the hardware composer.
func parsePhysical(out string) []string {
	found := displayLine.FindAllStringSubmatch(out, maxDisplays)
	slices.SortStableFunc(found, func(a, b []string) int { return number(a[2]) - number(b[2]) })
	ids := make([]string, len(found))
	for i, m := range found {
		ids[i] = m[1]
	}
	return ids
}

// sameSides tells whether two sizes are equal but for a quarter turn.
func sameSides(a, b image.Point) bool { return a == b || a == image.Pt(b.Y, b.X) }
