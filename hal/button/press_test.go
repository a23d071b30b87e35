package button

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/pin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pushed is a button's pin; its level changes at times of the bubble's clock.
type pushed struct {
	pin.Pin // for the methods that nobody calls
	mu      sync.Mutex
	level   gpio.Level // guarded by mu
	edge    chan struct{}
	pull    gpio.Pull
	fault   error
}

func newPushed(level gpio.Level) *pushed {
	return &pushed{level: level, edge: make(chan struct{}, 1)}
}

func (p *pushed) set(l gpio.Level) {
	p.mu.Lock()
	p.level = l
	p.mu.Unlock()
	select {
	case p.edge <- struct{}{}:
	default: // edges need not accumulate
	}
}

func (p *pushed) In(pull gpio.Pull, _ gpio.Edge) error { p.pull = pull; return p.fault }

func (p *pushed) Read() gpio.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.level
}

func (p *pushed) WaitForEdge(timeout time.Duration) bool {
	select {
	case <-p.edge:
		return true
	case <-time.After(timeout):
		return false
	}
}

func (p *pushed) Pull() gpio.Pull        { return p.pull }
func (p *pushed) DefaultPull() gpio.Pull { return gpio.Float }
func (p *pushed) Name() string           { return "GPIO3" }

// told is what Watch said.
type told struct {
	mu     sync.Mutex
	stages []Stage
	acts   []Act
}

func (o *told) events() Events {
	return Events{
		Stage: func(s Stage) { o.mu.Lock(); defer o.mu.Unlock(); o.stages = append(o.stages, s) },
		Act:   func(a Act) { o.mu.Lock(); defer o.mu.Unlock(); o.acts = append(o.acts, a) },
	}
}

func TestPresses(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	type hold struct{ up, down time.Duration } // the button is up, then down, for so long
	for _, c := range []struct {
		name   string
		down   bool // at the start
		holds  []hold
		acts   []Act
		stages []Stage
	}{
		{"a touch of 29 ms is noise", false, []hold{{s, 29 * ms}}, nil, nil},
		{"bounces of 5 ms are one press", false, []hold{{s, 5 * ms}, {5 * ms, 5 * ms}, {5 * ms, 200 * ms}, {5 * ms, 5 * ms}}, []Act{Identify}, []Stage{Held, Up}},
		{"30 ms", false, []hold{{s, 31 * ms}}, []Act{Identify}, []Stage{Held, Up}},
		{"1.49 s", false, []hold{{s, 1490 * ms}}, []Act{Identify}, []Stage{Held, Up}},
		{"2 s mean nothing", false, []hold{{s, 2 * s}}, nil, []Stage{Held, Between, Up}},
		{"3.1 s", false, []hold{{s, 3100 * ms}}, []Act{Maintenance}, []Stage{Held, Between, LongHeld, Up}},
		{"9.9 s", false, []hold{{s, 9900 * ms}}, []Act{Maintenance}, []Stage{Held, Between, LongHeld, Up}},
		{"15 s mean nothing", false, []hold{{s, 15 * s}}, nil, []Stage{Held, Between, LongHeld, Warning, Up}},
		{"21 s", false, []hold{{s, 21 * s}}, []Act{FactoryReset}, []Stage{Held, Between, LongHeld, Warning, ResetHeld, Up}},
		{"a stuck button does nothing", false, []hold{{s, time.Hour}}, nil, []Stage{Held, Between, LongHeld, Warning, ResetHeld, Stuck, Up}},
		{"it works again after its release", false, []hold{{s, time.Hour}, {s, s}}, []Act{Identify}, []Stage{Held, Between, LongHeld, Warning, ResetHeld, Stuck, Up, Held, Up}},
		{"a press over a restart does nothing", true, []hold{{0, 21 * s}}, nil, nil},
		{"the next press counts", true, []hold{{0, 5 * s}, {s, s}}, []Act{Identify}, []Stage{Held, Up}},
		{"stuck from the start", true, []hold{{0, time.Hour}}, nil, []Stage{Stuck, Up}},
		{"two presses", false, []hold{{s, s}, {s, 4 * s}}, []Act{Identify, Maintenance}, []Stage{Held, Up, Held, Between, LongHeld, Up}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, o := newPushed(gpio.Level(!c.down)), &told{} // a pressed button reads low
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- Watch(ctx, p, true, o.events()) }()
				synctest.Wait()
				for _, h := range c.holds {
					if h.up > 0 {
						time.Sleep(h.up)
					}
					p.set(gpio.Low)
					time.Sleep(h.down)
					p.set(gpio.High)
				}
				time.Sleep(time.Second)
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(o.acts, c.acts) || !slices.Equal(o.stages, c.stages) {
					t.Errorf("acts   %v, want %v\nstages %v, want %v", o.acts, c.acts, o.stages, c.stages)
				}
				if p.pull != gpio.PullUp {
					t.Errorf("pull is %v", p.pull)
				}
			})
		})
	}
}

// lost is a pin that reports no edges (periph/host#62): the level alone has to do.
type lost struct{ *pushed }

func (l lost) WaitForEdge(timeout time.Duration) bool { time.Sleep(timeout); return false }

func TestALostEdgeDelaysAPressAndDoesNotHideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, o := lost{newPushed(gpio.Low)}, &told{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Watch(ctx, p, false, o.events()) }()
		time.Sleep(time.Second)
		p.set(gpio.High)
		time.Sleep(5 * time.Second)
		p.set(gpio.Low)
		time.Sleep(2 * time.Second)
		cancel()
		if err := <-done; err != nil || !slices.Equal(o.acts, []Act{Maintenance}) {
			t.Errorf("acts %v, %v", o.acts, err)
		}
	})
}

func TestAPinThatIsNoInput(t *testing.T) {
	p := newPushed(gpio.Low)
	p.fault = errors.New("held by the kernel")
	if err := Watch(t.Context(), p, false, Events{}); err == nil || err.Error() != "watch the button at GPIO3: held by the kernel" {
		t.Error(err)
	}
}
