package phone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"phonerack/agent/frame"
)

// Lengths of a raw screenshot's header, in bytes: newer phones name the colours.
const (
	shortHeader = 12
	longHeader  = 16
)

// maxEdge bounds the sides of a display, in pixels.
const maxEdge = 8192

// method is one way to take a screenshot.
type method struct {
	name    string
	options string // of screencap
	then    string // what the shell does with its output
	read    func(context.Context, io.Reader, frame.Options) (*frame.Picture, error)

	took     time.Duration // when it was tried
	failures int           // since it worked last
	rests    time.Time     // until when others are tried before it
}

// methods are the known ways. The raw ones throw warnings away, which would
// otherwise stand in front of the header.
func methods() []method {
	return []method{
		{name: "raw", then: " 2>/dev/null", read: frame.ReadRaw},
		{name: "gzip", then: " 2>/dev/null | gzip -1", read: frame.ReadGzip},
		{name: "png", options: " -p", read: frame.ReadPNG},
		{name: "jpeg", options: " -j", read: frame.ReadJPEG},
	}
}

// How long a way that failed rests: doubled with each failure.
const (
	firstRest = 30 * time.Second
	maxRest   = 10 * time.Minute
)

// failed sends the way to rest.
func (m *method) failed(now time.Time) {
	m.rests = now.Add(min(firstRest<<min(m.failures, 8), maxRest))
	m.failures++
}

// Screenshot returns the screen as it is now. It uses the way that proved
// fastest; one that fails is tried after the others for a while, longer each
// time. If all fail the error wraps ErrNoScreenshot. A window that forbids
// screenshots is black in it; on some phones it makes every way fail. It fails
// with frame.ErrBusy if too many other pictures are being read.
func (p *Phone) Screenshot(ctx context.Context) (*frame.Picture, error) {
	picture, m, err := p.tryAll(ctx)
	if errors.Is(err, ErrNoScreenshot) && p.forgetDisplay() {
		picture, m, err = p.tryAll(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("take screenshot: %w", err)
	}
	p.countDisplays(ctx)
	if again := p.otherDisplay(ctx, picture, m); again != nil {
		return again, nil
	}
	return picture, nil
}

// tryAll takes a screenshot in the first way that works.
func (p *Phone) tryAll(ctx context.Context) (*frame.Picture, method, error) {
	failure := ErrNoScreenshot
	for _, m := range p.inTurn(time.Now()) {
		picture, err := p.shoot(ctx, m)
		if err == nil {
			p.worked(m)
			return picture, m, nil
		}
		if ctx.Err() != nil || errors.Is(err, frame.ErrBusy) {
			return nil, m, err
		}
		p.log.Info("screenshot failed", "serial", p.info.Serial, "way", m.name, "err", err)
		p.didNotWork(m)
		failure = fmt.Errorf("%w; %s: %w", failure, m.name, err)
	}
	return nil, method{}, failure
}

// inTurn returns the ways as they are to be tried: the best first, but those that
// rest last.
func (p *Phone) inTurn(now time.Time) []method {
	p.mu.Lock()
	ways := slices.Clone(p.shots)
	p.mu.Unlock()
	if len(ways) == 0 {
		return methods()
	}
	slices.SortStableFunc(ways, func(a, b method) int {
		switch restsA, restsB := a.rests.After(now), b.rests.After(now); {
		case restsA && restsB:
			return a.rests.Compare(b.rests)
		case restsA:
			return 1
		case restsB:
			return -1
		}
		return 0
	})
	return ways
}

// screenshotWay is the way that would be tried first, "" if none has worked.
func (p *Phone) screenshotWay() string {
	p.mu.Lock()
	known := len(p.shots) > 0
	p.mu.Unlock()
	if !known {
		return ""
	}
	return p.inTurn(time.Now())[0].name
}

func (p *Phone) worked(m method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shots) == 0 { // the first that works at all
		p.shots = append([]method{m}, slices.DeleteFunc(methods(), func(o method) bool { return o.name == m.name })...)
	}
	if i := p.indexOf(m); i >= 0 {
		p.shots[i].failures, p.shots[i].rests = 0, time.Time{}
	}
}

func (p *Phone) didNotWork(m method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.indexOf(m); i >= 0 {
		p.shots[i].failed(time.Now())
	}
}

// indexOf finds a way in p.shots; p.mu is locked.
func (p *Phone) indexOf(m method) int {
	return slices.IndexFunc(p.shots, func(o method) bool { return o.name == m.name })
}

// shoot takes a screenshot in one way.
func (p *Phone) shoot(ctx context.Context, m method) (*frame.Picture, error) {
	p.mu.Lock()
	display := p.displays.chosen
	p.mu.Unlock()
	return p.shootDisplay(ctx, m, display)
}

// shootDisplay takes a screenshot of a physical display, "" being the phone's
// choice. If a raw one turns out to have the other header it takes another.
func (p *Phone) shootDisplay(ctx context.Context, m method, display string) (*frame.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.ScreenshotTimeout)
	defer cancel()
	picture, err := p.shootOnce(ctx, m, display)
	var other *frame.HeaderError
	if errors.As(err, &other) {
		p.choose(func(ways *Strategies) { ways.Header = other.Fits })
		picture, err = p.shootOnce(ctx, m, display)
	}
	return picture, err
}

func (p *Phone) shootOnce(ctx context.Context, m method, display string) (picture *frame.Picture, err error) {
	o := p.options.Picture
	if d := p.display.Load(); d != nil {
		o.Mask = d.statusBar()
	}
	p.mu.Lock()
	o.Header = p.ways.Header
	p.mu.Unlock()
	cmd := "screencap" + m.options
	if display != "" {
		cmd += " -d " + display
	}
	err = p.conn.stream(ctx, cmd+m.then, func(r io.Reader) (err error) {
		lead := &leading{r: r}
		picture, err = m.read(ctx, lead, o)
		if m.then == "" && err == nil {
			p.heard(multipleDisplays.Match(lead.bytes))
		}
		return err
	})
	return picture, err
}

// leading remembers how a stream begins: a phone's warnings stand there.
type leading struct {
	r     io.Reader
	bytes []byte
}

const maxLeading = 512 // bytes

func (l *leading) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if room := maxLeading - len(l.bytes); room > 0 {
		l.bytes = append(l.bytes, p[:min(n, room)]...)
	}
	return n, err
}

// Close implements io.Closer, so that a read in progress can be ended.
func (l *leading) Close() error {
	if c, ok := l.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// chooseScreenshot times every way and orders them: those that work by time,
// then the others. The ways that show warnings come first, so that the others
// are timed with the display chosen.
func (p *Phone) chooseScreenshot(ctx context.Context) error {
	var works, fails []method
	failure := ErrNoScreenshot
	for _, m := range slices.Backward(methods()) {
		start := time.Now()
		_, err := p.shoot(ctx, m)
		if p.mustPick() {
			p.pickDisplay(ctx, m)
			start = time.Now()
			_, err = p.shoot(ctx, m)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("time screenshots: %w", cmp.Or(err, ctx.Err()))
		}
		if err != nil && !errors.Is(err, frame.ErrBusy) { // which says nothing about the way
			failure = fmt.Errorf("%w; %s: %w", failure, m.name, err)
			fails = append(fails, m)
			continue
		}
		m.took = time.Since(start)
		works = append(works, m)
	}
	if len(works) == 0 {
		return failure
	}
	slices.Reverse(works)
	slices.Reverse(fails)
	slices.SortStableFunc(works, func(a, b method) int { return cmp.Compare(a.took, b.took) })
	p.mu.Lock()
	p.shots = append(works, fails...)
	p.mu.Unlock()
	return nil
}
