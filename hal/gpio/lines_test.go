package gpio_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	conn "periph.io/x/conn/v3/gpio"

	"phonerack/hal/gpio"
	"phonerack/hal/gpio/gpiotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pi is a chip as a Raspberry Pi has it; persist says whether its driver keeps outputs.
func pi(persist bool) *gpiotest.Kernel {
	return gpiotest.New(
		gpiotest.Chip{Label: "firmware", Lines: []string{"LED", "", "TWICE"}},
		gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1", "HUB2", "TWICE", "", "BUTTON"}, Persist: persist},
	)
}

func output(t *testing.T, l *gpio.Lines, s gpio.Spec, initial gpio.Initial) *gpio.Pin {
	t.Helper()
	p, err := l.Output(s, initial)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// expect compares the edges so far.
func expect(t *testing.T, k *gpiotest.Kernel, want ...string) {
	t.Helper()
	var got []string
	for _, e := range k.Edges() {
		got = append(got, e.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("edges %q, want %q", got, want)
	}
}

func TestOutputIsRequestedWithItsValue(t *testing.T) {
	for _, c := range []struct {
		active, low bool
		want        string
	}{
		{true, false, "HUB1: in to high"},
		{false, false, "HUB1: in to low"},
		{true, true, "HUB1: in to low"},
		{false, true, "HUB1: in to high"},
	} {
		k := pi(true)
		p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1", ActiveLow: c.low}, gpio.Initial{Active: c.active})
		expect(t, k, c.want) // and no other in between
		if got := p.Read(); bool(got) != c.active {
			t.Errorf("%+v reads %v", c, got)
		}
		p.Close()
	}
}

func TestReadingAndHaltingAndClosingCauseNoEdge(t *testing.T) {
	k := pi(true)
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
	for range 3 {
		if p.Read() != conn.High || p.Func() != conn.OUT_HIGH {
			t.Errorf("reads %v, %v", p.Read(), p.Func())
		}
	}
	if err := errors.Join(p.Halt(), p.Out(conn.High), p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	expect(t, k, "HUB1: in to high")
}

func TestRoleOfAPinIsFixed(t *testing.T) {
	k := pi(true)
	l := gpio.New(k, nil)
	out := output(t, l, gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
	in, err := l.Input(gpio.Spec{Name: "BUTTON"}, conn.PullUp)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"In": out.In(conn.PullUp, conn.NoEdge), "SetFunc in": out.SetFunc(conn.IN), "Out": in.Out(conn.High), "SetFunc out": in.SetFunc(conn.OUT),
	} {
		if !errors.Is(err, gpio.ErrRole) {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect(t, k, "HUB1: in to high")
}

func TestLinesAreFoundByNameOrLabelNeverByNumber(t *testing.T) {
	k := pi(true)
	for range 2 {
		l := gpio.New(k, nil)
		p := output(t, l, gpio.Spec{Chip: "pinctrl-bcm2711", Offset: 1}, gpio.Initial{Keep: true})
		if k.Holder("HUB2") != "phonerack" || p.Number() != 1 || p.Name() != "pinctrl-bcm2711 1" {
			t.Errorf("%v is line %d, HUB2 is held by %q", p, p.Number(), k.Holder("HUB2"))
		}
		p.Close()
		for spec, want := range map[gpio.Spec]error{
			{Name: "TWICE"}:                       gpio.ErrAmbiguous,
			{Name: "HUB9"}:                        gpio.ErrNotFound,
			{Chip: "gpiochip0", Offset: 1}:        gpio.ErrNotFound,
			{Chip: "pinctrl-bcm2711", Offset: 5}:  gpio.ErrNotFound,
			{Chip: "pinctrl-bcm2711", Offset: -1}: gpio.ErrNotFound,
			{Chip: "", Name: "", Offset: 0}:       gpio.ErrNotFound,
		} {
			if _, err := l.Output(spec, gpio.Initial{}); !errors.Is(err, want) {
				t.Errorf("%v: %v", spec, err)
			}
		}
		k.Renumber()
	}
}

func TestBusyLineNamesItsHolder(t *testing.T) {
	k := pi(true)
	release := k.Hold("HUB1", "gpioset")
	_, err := gpio.New(k, nil).Output(gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
	busy, ok := errors.AsType[*gpio.BusyError](err)
	if !ok || busy.Consumer != "gpioset" || !strings.Contains(err.Error(), `GPIO line HUB1 is held by "gpioset"`) {
		t.Error(err)
	}
	release()
	output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
}

// start is rackd at its start: it has what the store kept, takes two lines as they are, and parks them.
func start(t *testing.T, k *gpiotest.Kernel, store *gpiotest.Store) (pins []*gpio.Pin) {
	t.Helper()
	l := gpio.New(k, store.Hand())
	for _, name := range []string{"HUB1", "HUB2"} {
		p := output(t, l, gpio.Spec{Name: name, ActiveLow: name == "HUB2", Consumer: "hub " + name}, gpio.Initial{Active: false, Keep: true})
		parkedName, parked, err := p.Park()
		if err != nil {
			t.Fatal(err)
		}
		if parkedName != "hub "+name {
			t.Errorf("parked as %q", parkedName)
		}
		store.Put(parkedName, parked)
		pins = append(pins, p)
	}
	return pins
}

func TestLinesAreKeptOverAKillByTheStore(t *testing.T) {
	k, store := pi(false), &gpiotest.Store{} // a chip that lets outputs go
	for life := range 5 {
		pins := start(t, k, store)
		if pins[0].Adopted() != (life > 0) {
			t.Errorf("life %d: adopted %v", life, pins[0].Adopted())
		}
		if life == 0 {
			if err := errors.Join(pins[0].Out(conn.High), pins[1].Out(conn.High)); err != nil {
				t.Fatal(err)
			}
		}
		if pins[0].Read() != conn.High || pins[1].Wanted() != conn.High {
			t.Errorf("life %d: %v %v", life, pins[0].Read(), pins[1].Wanted())
		}
		k.Kill()
	}
	expect(t, k, "HUB1: in to low", "HUB2: in to high", "HUB1: low to high", "HUB2: high to low")
}

func TestLinesAreKeptOverAKillByTheKernel(t *testing.T) {
	for _, persist := range []bool{true, false} {
		k := pi(persist)
		for range 3 {
			p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true, Keep: true})
			if p.Read() != conn.High {
				t.Error("the hub is off")
			}
			k.Kill()
		}
		if persist {
			expect(t, k, "HUB1: in to high")
		} else if len(k.Edges()) != 6 { // what persist and the store are for
			t.Errorf("edges %v", k.Edges())
		}
	}
}

func TestKeepingALineDoesNotTrustWhatTheKernelRemembers(t *testing.T) {
	k := pi(false)
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
	p.Close() // the chip makes it an input, and the kernel goes on saying that it is an output
	p = output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true, Keep: true})
	if p.Read() != conn.High {
		t.Error("the level of an input was taken for that of the output")
	}
}

func TestKeepingAnotherPolarityIsNoEdge(t *testing.T) {
	k := pi(true)
	k.Preset("HUB1", true) // by the boot loader
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1", ActiveLow: true, Consumer: "a"}, gpio.Initial{Active: true, Keep: true})
	if p.Read() != conn.Low {
		t.Error("high is active, of an active-low line")
	}
	store := &gpiotest.Store{}
	name, parked, _ := p.Park()
	store.Put(name, parked)
	k.Kill()
	// The board file was mended since: the line is active high.
	p = output(t, gpio.New(k, store.Hand()), gpio.Spec{Name: "HUB1", Consumer: "a"}, gpio.Initial{Keep: true})
	if p.Read() != conn.High || !p.Adopted() {
		t.Errorf("reads %v, adopted %v", p.Read(), p.Adopted())
	}
	expect(t, k)
}

func TestAdoptedLineIsTheRightOne(t *testing.T) {
	k, store := pi(true), &gpiotest.Store{}
	start(t, k, store)
	k.Kill()
	hand := store.Hand()
	hand["hub HUB1"], hand["hub HUB2"] = hand["hub HUB2"], hand["hub HUB1"]
	l := gpio.New(k, hand)
	for _, name := range []string{"HUB1", "HUB2"} {
		if _, err := l.Output(gpio.Spec{Name: name, Consumer: "hub " + name}, gpio.Initial{Active: true}); !errors.Is(err, gpio.ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := gpio.New(k, store.Hand()).Leftover(); !slices.Equal(got, []string{"hub HUB1", "hub HUB2"}) {
		t.Errorf("left over %v", got)
	}
	// The line was given to another hub in the board file: the store has it under the old name.
	l = gpio.New(k, store.Hand())
	_, err := l.Output(gpio.Spec{Name: "HUB1", Consumer: "hub new"}, gpio.Initial{Active: true})
	if busy, ok := errors.AsType[*gpio.BusyError](err); !ok || busy.Consumer != "hub HUB1" {
		t.Error(err)
	}
	if got := l.Leftover(); !slices.Equal(got, []string{"hub HUB1", "hub HUB2"}) {
		t.Errorf("left over %v", got)
	}
	for _, parked := range []map[string]gpio.Parked{hand, store.Hand()} { // copies that nobody asked for
		for _, p := range parked {
			p.Close()
		}
	}
	store.Drop("hub HUB1")
	expect(t, k, "HUB1: in to low", "HUB2: in to high")
}

func TestAdoptionWithoutFdinfoGoesByTheHolder(t *testing.T) {
	k := gpiotest.New(gpiotest.Chip{Label: "old", Lines: []string{"A", "B"}, Secret: true})
	store := &gpiotest.Store{}
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "A", Consumer: "hub A"}, gpio.Initial{Active: true})
	name, parked, _ := p.Park()
	store.Put(name, parked)
	k.Kill()
	if p := output(t, gpio.New(k, store.Hand()), gpio.Spec{Name: "A", Consumer: "hub A"}, gpio.Initial{Keep: true}); !p.Adopted() || p.Read() != conn.High {
		t.Error("not adopted")
	}
	k.Preset("B", true) // an output too, of nobody
	_, err := gpio.New(k, store.Hand()).Output(gpio.Spec{Name: "B", Consumer: "hub A"}, gpio.Initial{Active: true})
	if !errors.Is(err, gpio.ErrForeign) {
		t.Error(err)
	}
}

func TestShortedLineShowsInLevelAndFaultsAreTold(t *testing.T) {
	k := pi(true)
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1"}, gpio.Initial{Active: true})
	k.Stick("HUB1", false)
	if level, err := p.Level(); level != conn.Low || err != nil || p.Wanted() != conn.High {
		t.Errorf("%v, %v, wanted %v", level, err, p.Wanted())
	}
	k.Fail("HUB1", syscall.EIO)
	if level, err := p.Level(); level != conn.High || !errors.Is(err, syscall.EIO) {
		t.Errorf("%v, %v", level, err)
	}
	if p.Read() != conn.High {
		t.Error("a kernel that does not answer is not a line that is off")
	}
	if err := p.Out(conn.Low); !errors.Is(err, syscall.EIO) || p.Wanted() != conn.High {
		t.Errorf("%v, wanted %v", err, p.Wanted())
	}
}

func TestWaitForEdge(t *testing.T) {
	for name, c := range map[string]struct {
		edge    conn.Edge
		timeout time.Duration
		after   time.Duration // until act
		act     func(k *gpiotest.Kernel, p *gpio.Pin)
		want    bool
		least   time.Duration
		most    time.Duration
	}{
		"press":            {conn.RisingEdge, -1, time.Hour, func(k *gpiotest.Kernel, p *gpio.Pin) { k.Drive("BUTTON", false) }, true, time.Hour, time.Hour},
		"release, unasked": {conn.RisingEdge, 10 * time.Second, time.Second, func(k *gpiotest.Kernel, p *gpio.Pin) { k.Drive("BUTTON", true) }, false, 10 * time.Second, 10 * time.Second},
		"none":             {conn.BothEdges, 90 * time.Second, time.Second, func(*gpiotest.Kernel, *gpio.Pin) {}, false, 90 * time.Second, 90 * time.Second},
		"halt":             {conn.BothEdges, -1, time.Minute, func(k *gpiotest.Kernel, p *gpio.Pin) { p.Halt() }, false, time.Minute, time.Minute + time.Second},
		"set up anew":      {conn.BothEdges, -1, time.Minute, func(k *gpiotest.Kernel, p *gpio.Pin) { p.In(conn.PullUp, conn.NoEdge) }, false, time.Minute, time.Minute + time.Second},
		"close":            {conn.BothEdges, -1, time.Minute, func(k *gpiotest.Kernel, p *gpio.Pin) { p.Close() }, false, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := pi(true)
				k.Drive("BUTTON", true)
				p, err := gpio.New(k, nil).Input(gpio.Spec{Name: "BUTTON", ActiveLow: true}, conn.PullUp)
				if err != nil {
					t.Fatal(err)
				}
				if c.want == false && name == "release, unasked" {
					k.Drive("BUTTON", false)
				}
				if err := p.In(conn.PullUp, c.edge); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				go func() {
					time.Sleep(c.after)
					c.act(k, p)
				}()
				got := p.WaitForEdge(c.timeout)
				if took := time.Since(begin); got != c.want || took < c.least || took > c.most {
					t.Errorf("%v after %v", got, took)
				}
				synctest.Wait()
			})
		})
	}
}

func TestNamesOfPins(t *testing.T) {
	k := pi(true)
	p := output(t, gpio.New(k, nil), gpio.Spec{Name: "HUB1", Consumer: strings.Repeat("x", 40)}, gpio.Initial{})
	if fmt.Sprint(p) != "HUB1" || p.Name() != "HUB1" || p.Number() != 0 || p.Function() != "Out/Low" || len(k.Holder("HUB1")) != 31 {
		t.Errorf("%v %q %d %q held by %q", p, p.Name(), p.Number(), p.Function(), k.Holder("HUB1"))
	}
	if p.PWM(conn.DutyHalf, 0) == nil || p.WaitForEdge(0) {
		t.Error("an output that does PWM or has edges")
	}
}
