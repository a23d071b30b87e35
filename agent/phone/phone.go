package phone

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of Attach; the zero value is usable.
type Options struct {
	Serial     string     // as the USB device names it; the phone's own property if empty
	Strategies Strategies // that worked on this phone before; what no longer works is chosen anew
	Helpers    Helpers    // nil if there are none

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

	mu    sync.Mutex // guards shots
	shots []method   // ways to take a screenshot, the best first
}

// tempStem begins the name of every file that this package writes on a phone.
const tempStem = "/data/local/tmp/phonerack-"

// knownFeatures are the ADB features that Info lists.
var knownFeatures = []string{"shell_v2", "cmd", "abb_exec", "stat_v2", "sendrecv_v2"}

// Attach probes the phone behind a and returns it. It reads properties and
// display, removes temporary files that an earlier attachment has left, and
// takes a screenshot in each known way to find the fastest. It fails if the
// phone does not answer or has no display; no way to take a screenshot is no
// failure.
func Attach[S io.ReadWriteCloser, F Files](ctx context.Context, a ADB[S, F], o Options) (*Phone, error) {
	return attach(ctx, connOf(a), o)
}

func attach(ctx context.Context, c conn, o Options) (*Phone, error) {
	o.TreeTimeout = cmp.Or(o.TreeTimeout, 30*time.Second)
	o.ScreenshotTimeout = cmp.Or(o.ScreenshotTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	p := &Phone{conn: c, options: o, log: o.Logger, stem: tempStem + strings.ToLower(rand.Text()[:10])}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if err := p.properties(ctx); err != nil {
		return nil, fmt.Errorf("attach phone: %w", err)
	}
	for _, f := range knownFeatures {
		if c.feature(f) {
			p.info.Features = append(p.info.Features, f)
		}
	}
	d, err := p.Display(ctx)
	if err != nil {
		return nil, fmt.Errorf("attach phone: %w", err)
	}
	p.info.Display = d
	if err := p.chooseScreenshot(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("attach phone: %w", err)
		}
		p.log.Warn("phone gives no screenshot", "serial", p.info.Serial, "err", err)
	}
	return p, nil
}

// properties reads the properties in one round trip and clears old files.
func (p *Phone) properties(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var sdk string
	i := &p.info
	wanted := []struct {
		name string
		to   *string
	}{
		{"ro.serialno", &i.Serial},
		{"ro.product.manufacturer", &i.Manufacturer},
		{"ro.product.model", &i.Model},
		{"ro.product.device", &i.Device},
		{"ro.build.version.release", &i.Release},
		{"ro.build.version.sdk", &sdk},
		{"ro.product.cpu.abi", &i.ABI},
		{"ro.build.display.id", &i.Build},
		{"ro.product.locale", &i.Locale},
	}
	var cmd strings.Builder
	for _, w := range wanted {
		cmd.WriteString("getprop " + w.name + "; ")
	}
	cmd.WriteString("rm -f " + tempStem + "*")
	out, err := p.conn.text(ctx, cmd.String())
	if err != nil {
		return fmt.Errorf("read properties: %w", err)
	}
	lines := strings.Split(out, "\n")
	if len(lines) < len(wanted) {
		return fmt.Errorf("read properties: %d of %d: %w", len(lines), len(wanted), ErrTruncated)
	}
	for n, w := range wanted {
		*w.to = excerpt([]byte(lines[n]))
	}
	i.SDK, err = strconv.Atoi(sdk)
	if err != nil || i.SDK < 1 || i.SDK > 10000 {
		return fmt.Errorf("read properties: version %q: %w", sdk, ErrMalformed)
	}
	if p.options.Serial != "" {
		i.Serial = p.options.Serial
	}
	return nil
}

// Info returns what Attach found out, with the present way to take screenshots.
func (p *Phone) Info() Info {
	i := p.info
	i.Features = append([]string(nil), p.info.Features...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shots) > 0 {
		i.Screenshot = p.shots[0].name
	}
	return i
}

// Under returns the controls of the phone under a lease.
func (p *Phone) Under(f Fence) *Controls { return &Controls{phone: p, fence: f} }
