package firmware_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/lease"
	"phonerack/hal/button"
	"phonerack/hal/gpio"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/led"
)

// resetting is a rack that notes its factory resets.
type resetting struct {
	*actiontest.Rack
	by []string
}

func (r *resetting) FactoryReset(by string, keys bool) error {
	r.by = append(r.by, fmt.Sprint(by, " ", keys))
	return nil
}

// rhythm are the times for which a line kept a level between two moments, each once, shortest first; those that began or ended outside
// are left out. A line that kept its level all the time gives that.
func rhythm(edges []gpiotest.Edge, from, to time.Time) string {
	var spans []time.Duration
	level, last := gpiotest.Low, time.Time{}
	for _, e := range edges {
		if !e.At.After(from) {
			level = e.To
			continue
		}
		if e.At.After(to) {
			break
		}
		if !last.IsZero() {
			spans = append(spans, e.At.Sub(last))
		}
		last = e.At
	}
	if last.IsZero() {
		return fmt.Sprint(level)
	}
	slices.Sort(spans)
	return fmt.Sprint(slices.Compact(spans))
}

// TestAPressOfTheButton holds it on a clock that nobody waits for: what the light shows meanwhile, and what is done at the release
// (docs/led.md).
func TestAPressOfTheButton(t *testing.T) {
	const s = time.Second
	shown := []struct {
		from, to time.Duration
		want     string
	}{
		{100 * time.Millisecond, 1400 * time.Millisecond, "high"},
		{1600 * time.Millisecond, 2900 * time.Millisecond, "low"},
		{3100 * time.Millisecond, 9900 * time.Millisecond, "[500ms]"},
		{10100 * time.Millisecond, 19900 * time.Millisecond, "[100ms 240ms]"},
		{20100 * time.Millisecond, 39900 * time.Millisecond, "[100ms 900ms]"},
		{40100 * time.Millisecond, 60 * s, "low"}, // stuck
	}
	for _, c := range []struct {
		held  time.Duration
		asked string // of the registry
		reset string
	}{
		{2 * s, "", ""},
		{3100 * time.Millisecond, "maintenance actor=button via=button", ""},
		{9900 * time.Millisecond, "maintenance actor=button via=button", ""},
		{11 * s, "", ""},
		{19900 * time.Millisecond, "", ""},
		{20100 * time.Millisecond, "factory_reset actor=button via=button", "button false"},
		{39900 * time.Millisecond, "factory_reset actor=button via=button", "button false"},
		{45 * s, "", ""},
		{time.Hour, "", ""},
	} {
		t.Run(c.held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"BUTTON", "LED"}})
				kernel.Drive("BUTTON", true)
				lines := gpio.New(kernel, nil)
				pin, err := lines.Input(gpio.Spec{Name: "BUTTON", ActiveLow: true}, conn.PullUp)
				if err != nil {
					t.Fatal(err)
				}
				lamp, err := lines.Output(gpio.Spec{Name: "LED"}, gpio.Initial{})
				if err != nil {
					t.Fatal(err)
				}
				light, log, rack := led.New(led.OnPin(lamp, false), nil, nil), &lockedText{}, &resetting{Rack: actiontest.New()}
				actions := action.New(rack, lease.NewTable(lease.Options{Now: func() time.Duration { return 0 }}), slog.New(slog.NewTextHandler(log, nil)))
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = light.Run(ctx) })
				running.Go(func() { _ = firmware.WatchButton(ctx, pin, light, actions) })
				time.Sleep(s)
				kernel.Drive("BUTTON", false)
				pressed := time.Now().Add(button.Debounce)
				time.Sleep(c.held + button.Debounce)
				kernel.Drive("BUTTON", true)
				time.Sleep(s)
				edges := slices.DeleteFunc(kernel.Edges(), func(e gpiotest.Edge) bool { return e.Line != "LED" })
				for _, w := range shown {
					if w.to > c.held {
						break
					}
					if got := rhythm(edges, pressed.Add(w.from), pressed.Add(w.to)); got != w.want {
						t.Errorf("held for %v to %v the light shows %s, want %s", w.from, w.to, got, w.want)
					}
				}
				if got := strings.Join(log.orders(), ", "); got != c.asked {
					t.Errorf("asked for: %q, want %q", got, c.asked)
				}
				if got := strings.Join(rack.by, ", "); got != c.reset {
					t.Errorf("reset by %q, want %q", got, c.reset)
				}
				cancel()
				running.Wait()
				for _, p := range []*gpio.Pin{pin, lamp} {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestWhatTheButtonAsksForIsWrittenDown, as any order: both of a rack's acts, and their effect.
func TestWhatTheButtonAsksForIsWrittenDown(t *testing.T) {
	t.Parallel()
	log := &lockedText{}
	b, _ := newPorts(t, nil, func(o *firmware.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for _, want := range []bool{true, false} {
		if firmware.Press(b.rack, button.Maintenance); b.status().Maintenance != want {
			t.Errorf("maintenance is not %v", want)
		}
	}
	if err := firmware.PressFactoryReset(b.rack); err != nil {
		t.Error(err)
	}
	const by = " actor=button via=button"
	if got, want := log.orders(), []string{"maintenance" + by, "maintenance" + by, "factory_reset" + by}; !slices.Equal(got, want) {
		t.Errorf("the log tells of %q, want %q", got, want)
	}
	b.cancel = nil
	<-b.ended
}
