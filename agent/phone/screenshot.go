package phone

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
	"time"

	"phonerack/agent/frame"
)

// method is one way to take a screenshot.
type method struct {
	name   string
	cmd    string
	decode func(io.Reader) (*image.RGBA, error)
	took   time.Duration // when it was tried
}

// methods are the known ways. The raw ones throw warnings away, which would
// otherwise stand in front of the header.
func methods() []method {
	return []method{
		{name: "raw", cmd: "screencap 2>/dev/null", decode: func(r io.Reader) (*image.RGBA, error) {
			return decodeRaw(r, maxEdge)
		}},
		{name: "gzip", cmd: "screencap 2>/dev/null | gzip -1", decode: func(r io.Reader) (*image.RGBA, error) {
			return decodeGzip(r, maxEdge)
		}},
		{name: "png", cmd: "screencap -p", decode: func(r io.Reader) (*image.RGBA, error) {
			b, err := readBounded(r, maxPNG)
			if err != nil {
				return nil, err
			}
			return decodePNG(b, maxEdge)
		}},
	}
}

// decodeGzip reads a compressed raw screenshot.
func decodeGzip(r io.Reader, limit int) (*image.RGBA, error) {
	z, err := gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
	if err != nil {
		if errors.Is(err, gzip.ErrHeader) {
			return nil, fmt.Errorf("screenshot is not compressed: %w", ErrMalformed)
		}
		return nil, endOf(err, "compressed screenshot")
	}
	img, err := decodeRaw(z, limit)
	if errors.Is(err, gzip.ErrChecksum) {
		return nil, fmt.Errorf("compressed screenshot: %v: %w", err, ErrMalformed)
	}
	return img, err
}

// Screenshot returns the screen as it is now. It uses the way that proved
// fastest; when that fails, the others are tried and the first that works is
// kept. If all fail the error wraps ErrNoScreenshot. A window that forbids
// screenshots is black in it, on some phones it makes every way fail.
func (p *Phone) Screenshot(ctx context.Context) (*frame.Picture, error) {
	img, err := p.pixels(ctx)
	if err != nil {
		return nil, err
	}
	return frame.Encode(img, frame.Options{Mask: p.display.Load().StatusBar()})
}

func (p *Phone) pixels(ctx context.Context) (*image.RGBA, error) {
	p.mu.Lock()
	ways := slices.Clone(p.shots)
	p.mu.Unlock()
	if len(ways) == 0 {
		ways = methods()
	}
	failure := ErrNoScreenshot
	for i, m := range ways {
		img, err := p.shoot(ctx, m)
		if err == nil {
			if i > 0 || len(p.Info().Screenshot) == 0 {
				p.prefer(m, ways)
			}
			return img, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("take screenshot: %w", err)
		}
		p.log.Info("screenshot failed", "serial", p.info.Serial, "way", m.name, "err", err)
		failure = fmt.Errorf("%w; %s: %w", failure, m.name, err)
	}
	return nil, fmt.Errorf("take screenshot: %w", failure)
}

func (p *Phone) shoot(ctx context.Context, m method) (img *image.RGBA, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.ScreenshotTimeout)
	defer cancel()
	err = p.conn.stream(ctx, m.cmd, func(r io.Reader) (err error) {
		img, err = m.decode(r)
		return err
	})
	return img, err
}

// prefer puts m before the other ways.
func (p *Phone) prefer(m method, ways []method) {
	order := []method{m}
	for _, w := range ways {
		if w.name != m.name {
			order = append(order, w)
		}
	}
	p.mu.Lock()
	p.shots = order
	p.mu.Unlock()
}

// chooseScreenshot times every way and orders them: those that work by time,
// then the others.
func (p *Phone) chooseScreenshot(ctx context.Context) error {
	var works, fails []method
	failure := ErrNoScreenshot
	for _, m := range methods() {
		start := time.Now()
		if _, err := p.shoot(ctx, m); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("time screenshots: %w", err)
			}
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
	slices.SortStableFunc(works, func(a, b method) int { return int(a.took - b.took) })
	p.mu.Lock()
	p.shots = append(works, fails...)
	p.mu.Unlock()
	return nil
}
