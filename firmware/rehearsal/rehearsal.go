// Package rehearsal takes a recorded task again on a simulated phone that is made like the recorded one: its Android,
// screen and language, in a process of its own or in the caller's. It needs no rack and touches no phone.
//
// The simulated phone starts at its home screen with its apps as they come. A record of another start, or of apps that the
// simulated phone does not have, differs from its first step on, and the report says in what.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/runner/record"
	"phonerack/agent/runner/replay"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// Options of Run; the zero value is usable.
type Options struct {
	Params     map[string]string // values of the task's parameters, which the record does not hold
	Seed       int64             // of the simulated phone: the order of its shuffled lists follows from it
	Apps       fs.FS             // one folder an app; nil is the apps that the simulated phone comes with
	Trajectory string            // where to write the rehearsal's own trajectory; "" nowhere
	Logger     *slog.Logger      // nothing is logged if nil
}

// Run takes the record in a trajectory's folder again. It returns nil if nothing differs, and otherwise a *wire.Refusal such as
// wire.ReplayDiffers, which names the step; the report then has the lines that differ. It blocks for about as long as the
// phone needs; decisions take no time.
func Run(ctx context.Context, dir string, o Options) (replay.Report, error) {
	rec, err := replay.Load(dir)
	if err != nil {
		return replay.Report{}, err
	}
	clock := &clock{now: rec.Task.Started}
	sim, err := simulate(rec.Task.Phone, o, clock)
	if err != nil {
		return replay.Report{}, err
	}
	host, there := net.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { _ = sim.ServeStream(ctx, there) }) // its end is seen at the host's side
	defer served.Wait()
	defer cancel()
	conn, err := adb.Connect(ctx, adb.NewStreamLink(host), adb.Options{Logger: o.Logger})
	if err != nil {
		return replay.Report{}, fmt.Errorf("connect to the simulated phone: %w", err)
	}
	defer conn.Close()
	p, err := phone.Attach(ctx, conn, phone.Options{Serial: rec.Task.Phone.Serial, Logger: o.Logger})
	if err != nil {
		return replay.Report{}, err
	}
	return replay.Run(ctx, rec, replay.Phone{Source: p, Controls: p.Under(free{}), Reads: p}, replay.Options{
		Params: o.Params, Fast: true, At: clock.set, Trajectory: o.Trajectory, Logger: o.Logger,
	})
}

// clock is the simulated phone's: the record's time, and on top of it what the phone itself waits.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.set(c.Now().Add(d))
	return ctx.Err()
}

// set goes forward only.
func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// free is the fence of a phone that nobody else uses.
type free struct{}

// Check implements phone.Fence.
func (free) Check() error { return nil }

// versions are the releases of Android that can be simulated.
var versions = []int{7, 8, 9, 10, 11, 12, 14, 15}

// errUnlike means that no simulated phone is like the recorded one.
var errUnlike = errors.New("no simulated phone is like the recorded one")

// simulate makes a phone like the recorded one.
func simulate(p record.Phone, o Options, clock *clock) (*phonesim.Phone, error) {
	release, _, _ := strings.Cut(p.Android, ".")
	version, err := strconv.Atoi(release)
	if err != nil || !slices.Contains(versions, version) {
		return nil, fmt.Errorf("%w: its Android is %.20q, and %v can be simulated", errUnlike, p.Android, versions)
	}
	width, height := p.Width, p.Height
	if p.Rotation%2 == 1 {
		width, height = height, width
	}
	language, _, _ := strings.Cut(p.Locale, "-")
	display, err := screen.New(screen.Config{
		Width: width, Height: height, Density: p.Density, Language: language, Seed: o.Seed, Apps: o.Apps, Clock: clock.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnlike, err)
	}
	device, err := android.New(android.Config{
		Version: version, Serial: p.Serial, Model: p.Model, Manufacturer: p.Manufacturer, Screen: display, Seed: uint64(o.Seed),
		Clock: clock.Now, Sleep: clock.Sleep,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnlike, err)
	}
	return phonesim.New(phonesim.Config{Serial: p.Serial, Android: version, System: device})
}
