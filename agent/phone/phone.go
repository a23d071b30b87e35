package phone

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/agent/frame"
)

// Options of Attach; the zero value is usable.
type Options struct {
	Serial     string     // as the USB device names it; the phone's own property if empty
	Strategies Strategies // that worked on this phone before; what no longer works is chosen anew
	Helpers    Helpers    // nil if there are none

	Picture frame.Options // of screenshots; Mask and Header are found out

	TreeTimeout       time.Duration // of one element tree with all its attempts, 30 s if zero
	ScreenshotTimeout time.Duration // of one screenshot, 10 s if zero
	WriteTimeout      time.Duration // of one write, on top of what it lasts by itself, 10 s if zero

	Logger *slog.Logger // none if nil
}

// Info is what Attach found out.
type Info struct {
	Serial, Manufacturer, Model, Device string
	Release                             string // "14"
	SDK                                 int    // 34
	ABI, Build, Locale                  string
	Features                            []string // ADB features that matter here
	Display                             Display  // as it was
	Screenshot                          string   // the way that proved fastest, empty if none worked
}

// Phone is an attached phone. Its methods may be called at the same time.
type Phone struct {
	conn    conn
	options Options
	info    Info
	log     *slog.Logger
	display atomic.Pointer[Display] // as read last
	stem    string                  // of temporary files, unique to this attachment
	count   atomic.Uint64           // of temporary files

	scales       atomic.Pointer[scales] // the animations' as they were; nil unless they are stopped
	scalesUnsure atomic.Bool            // the phone may keep scales that are not in scales

	nowhere atomic.Int32  // how often in a row it was waited in vain for a window in front
	looking chan struct{} // holds one token, which whoever reads an element tree has

	mu       sync.Mutex           // guards what follows
	shots    []method             // ways to take a screenshot, the best first; none if none has worked
	displays displays             // of which one is captured
	ways     Strategies           // but for the order of shots
	learnt   map[string]time.Time // since when a part has its way
	helper   retry                // when the helper is asked for a tree again
	moving   time.Time            // until when the screen is taken to be one that does not rest
}

// tempStem begins the name of every file that this package writes on a phone.
const tempStem = "/data/local/tmp/phonerack-"

// knownFeatures are the ADB features that Info lists.
var knownFeatures = []string{"shell_v2", "cmd", "abb_exec", "stat_v2", "sendrecv_v2"}

// Attach probes the phone behind a and returns it. It reads properties and
// display, removes temporary files that an earlier attachment has left, and
// takes a screenshot in each known way to find the fastest, unless
// Options.Strategies name it. It fails if the phone does not answer or has no
// display; no way to take a screenshot is no failure.
func Attach[S io.ReadWriteCloser, F Files](ctx context.Context, a ADB[S, F], o Options) (*Phone, error) {
	return attach(ctx, connOf(a), o)
}

func attach(ctx context.Context, c conn, o Options) (*Phone, error) {
	o.TreeTimeout = cmp.Or(o.TreeTimeout, 30*time.Second)
	o.ScreenshotTimeout = cmp.Or(o.ScreenshotTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	p := &Phone{conn: c, options: o, log: o.Logger, stem: tempStem + strings.ToLower(rand.Text()[:10]), looking: make(chan struct{}, 1)}
	p.looking <- struct{}{}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.remember(o.Strategies)
	for _, f := range knownFeatures {
		if c.feature(f) {
			p.info.Features = append(p.info.Features, f)
		}
	}
	if err := p.probe(ctx); err != nil {
		return nil, fmt.Errorf("attach phone: %w", err)
	}
	if p.recallScreenshot() {
		return p, nil
	}
	if err := p.chooseScreenshot(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("attach phone: %w", err)
		}
		p.log.Warn("phone gives no screenshot", "serial", p.info.Serial, "err", err)
	}
	return p, nil
}

// recallScreenshot puts the ways to take a screenshot into the order that is
// known from earlier, if one is. The first that fails is given up as ever.
func (p *Phone) recallScreenshot() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ways.Screenshot) == 0 {
		return false
	}
	order := methods()
	for _, name := range slices.Backward(p.ways.Screenshot) {
		order = preferred(order, func(m method) string { return m.name }, name)
	}
	p.shots = order
	return true
}

// Info returns what Attach found out, with the present way to take screenshots.
func (p *Phone) Info() Info {
	i := p.info
	i.Features = append([]string(nil), p.info.Features...)
	i.Screenshot = p.screenshotWay()
	return i
}

// Under returns the controls of the phone under a lease.
func (p *Phone) Under(f Fence) *Controls { return &Controls{phone: p, fence: f} }
