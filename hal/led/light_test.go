package led

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a GPIO line that notes when its level changes.
type line struct {
	name  string
	began time.Time
	level gpio.Level
	edges []string // "1.5s on"

	mu    sync.Mutex
	fault error // guarded by mu
}

func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = err
}

func (l *line) Out(level gpio.Level) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		return l.fault
	}
	if level != l.level {
		l.level = level
		word := map[gpio.Level]string{gpio.High: "on", gpio.Low: "off"}[level]
		l.edges = append(l.edges, fmt.Sprintf("%v %s", time.Since(l.began), word))
	}
	return nil
}

func (l *line) PWM(gpio.Duty, physic.Frequency) error { return errors.ErrUnsupported }
func (l *line) Halt() error                           { return nil }
func (l *line) Name() string                          { return l.name }
func (l *line) String() string                        { return l.name }
func (l *line) Number() int                           { return 0 }
func (l *line) Function() string                      { return "" }

// watched is a light that runs on the fake clock of a bubble, with its lines.
type watched struct {
	*Light
	green, red *line
	stop       func()
}

func watch(t *testing.T, colours int) *watched {
	t.Helper()
	w := &watched{green: &line{name: "green", began: time.Now()}}
	var red Lamp
	if colours == 2 {
		w.red = &line{name: "red", began: time.Now()}
		red = OnPin(w.red, false)
	}
	w.Light = New(OnPin(w.green, false), red, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return w
}

func TestEachConditionHasItsRhythm(t *testing.T) {
	for _, c := range []struct {
		condition  Condition
		green, red string // edges of the first four seconds, of a light of two colours
	}{
		{Fault, "", "0s on, 100ms off, 340ms on, 440ms off, 680ms on, 780ms off"},
		{Updating, "0s on, 1.5s off, 1.8s on, 3.3s off, 3.6s on", "0s on, 1.5s off, 1.8s on, 3.3s off, 3.6s on"},
		{NeedsHands, "", "0s on, 200ms off, 400ms on, 600ms off, 1.8s on, 2s off, 2.2s on, 2.4s off, 3.6s on, 3.8s off"},
		{Power, "", "0s on, 200ms off, 400ms on, 600ms off, 800ms on, 1s off, 2.2s on, 2.4s off"},
		{Unprovisioned, "0s on, 1s off, 1.3s on, 1.5s off, 3s on", "0s on, 1s off, 1.3s on, 1.5s off, 3s on"},
		{NoCloud, "0s on, 200ms off, 400ms on, 600ms off, 800ms on, 1s off, 1.2s on, 1.4s off, 2.6s on", "0s on, 200ms off, 400ms on, 600ms off, 800ms on, 1s off, 1.2s on, 1.4s off, 2.6s on"},
		{Recovering, "0s on, 100ms off, 3s on, 3.1s off", "0s on, 100ms off, 3s on, 3.1s off"},
		{Well, "0s on, 2.9s off, 3s on", ""},
	} {
		t.Run(c.condition.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, 2)
				w.Set(c.condition, true)
				time.Sleep(4*time.Second - 1)
				synctest.Wait()
				for _, l := range []struct {
					*line
					want string
				}{{w.green, c.green}, {w.red, c.red}} {
					if got := strings.Join(l.edges, ", "); !strings.HasPrefix(got, l.want) || (l.want == "") != (got == "") {
						t.Errorf("%s\ngot  %s\nwant %s", l.name, got, l.want)
					}
				}
				w.stop()
				if w.green.level || w.red.level {
					t.Error("the light is on after Run has ended")
				}
			})
		})
	}
}

func TestSingleColourShowsTheSameRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 1)
		w.Set(NeedsHands, true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := strings.Join(w.green.edges, ", "), "0s on, 200ms off, 400ms on, 600ms off, 1.8s on, 2s off"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		w.stop()
	})
}

func TestNoPatternFlashesMoreThanThreeTimesASecondOrLooksLikeAnother(t *testing.T) {
	all := map[string]pattern{"alive": alive, "two": identifyTwo}
	for c, p := range patterns {
		all[Condition(c).String()] = p
	}
	for f, p := range feedbackPatterns {
		if p != nil {
			all[fmt.Sprint("feedback ", f)] = p
		}
	}
	for name, p := range all {
		for _, lamp := range []Colour{Green, Red} {
			var lit []time.Duration // when the lamp lights up, over some repetitions
			var now time.Duration
			for was := false; now < 20*time.Second; {
				colour, stays := p.at(now)
				if stays == 0 {
					break
				}
				is := colour == lamp || colour == Amber
				if is && !was {
					lit = append(lit, now)
				}
				was = is
				now += stays
			}
			for i := 3; i < len(lit); i++ {
				if d := lit[i] - lit[i-3]; d < time.Second {
					t.Fatalf("%s lights up four times in %v", name, d)
				}
			}
		}
	}
	// The rhythm of a single colour: how often it lights up before its longest gap, and how long.
	seen := map[string]Condition{}
	for c, p := range patterns {
		var rhythm strings.Builder
		for _, s := range p {
			length := "long"
			switch {
			case s.length < 250*time.Millisecond:
				length = "short"
			case s.length < 600*time.Millisecond:
				length = "middle"
			}
			fmt.Fprintf(&rhythm, "%v/%s ", s.colour != Dark, length)
		}
		if other, ok := seen[rhythm.String()]; ok {
			t.Errorf("%v has the rhythm of %v: %s", Condition(c), other, rhythm.String())
		}
		seen[rhythm.String()] = Condition(c)
	}
}

func TestTheMostUrgentConditionIsShown(t *testing.T) {
	l := New(OnPin(&line{}, false), nil, nil)
	if l.Shows().String() != "off" {
		t.Errorf("nothing is true, and it shows %v", l.Shows())
	}
	all := Conditions()
	slices.Reverse(all)
	var end func()
	for _, c := range all {
		if c == Identify {
			end = l.Identify(time.Second)
		}
		l.Set(c, true)
		if l.Shows() != c {
			t.Errorf("%v was set and %v is shown", c, l.Shows())
		}
	}
	end()
	if l.Shows() != Fault {
		t.Errorf("%v is shown after identify", l.Shows())
	}
}

func TestIdentifyEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 2)
		w.Set(NeedsHands, true)
		time.Sleep(time.Second)
		w.Identify(time.Hour)
		time.Sleep(IdentifyFor - time.Millisecond)
		if w.Shows() != Identify {
			t.Errorf("shows %v", w.Shows())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if w.Shows() != NeedsHands || w.green.level || !w.red.level {
			t.Errorf("shows %v, green %v, red %v", w.Shows(), w.green.level, w.red.level)
		}
		if got := w.green.edges[len(w.green.edges)-1]; got != "1m0.75s off" {
			t.Errorf("the last alternation: %s", got)
		}
		w.stop()
	})
}

// TestEachWhoAsksHasTheirOwnTime: who goes away, or wanted it for less, ends it for nobody else.
func TestEachWhoAsksHasTheirOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(OnPin(&line{}, false), nil, nil)
		long := l.Identify(20 * time.Second)
		l.Identify(time.Second)
		l.Identify(time.Hour)()
		time.Sleep(5 * time.Second)
		if l.Shows() != Identify {
			t.Errorf("shows %v", l.Shows())
		}
		l.Identify(2 * time.Second)
		long()
		if l.Shows() != Identify {
			t.Errorf("shows %v", l.Shows())
		}
		time.Sleep(2 * time.Second)
		if l.Shows() != conditions {
			t.Errorf("shows %v when the last is over", l.Shows())
		}
	})
}

func TestFeedbackCoversEverythingWhileTheButtonIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 1)
		w.Identify(time.Minute)
		w.Feedback(FeedbackHeld)
		time.Sleep(2 * time.Second)
		w.Feedback(FeedbackLong)
		time.Sleep(time.Second)
		w.Feedback(NoFeedback)
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if got, want := strings.Join(w.green.edges, ", "), "0s on, 2.5s off, 3s on, 3.25s off"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		w.stop()
	})
}

func TestALampThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 1)
		w.green.fail(errors.New("gone"))
		w.Set(Recovering, true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.green.fail(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := strings.Join(w.green.edges, ", "); got != "6s on, 6.1s off" {
			t.Errorf("got %s", got)
		}
		w.stop()
	})
}

func TestActiveLowLine(t *testing.T) {
	l := &line{name: "x"}
	if err := OnPin(l, true).Set(false); err != nil || l.level != gpio.High {
		t.Errorf("off is %v, %v", l.level, err)
	}
	if err := OnPin(l, true).Set(true); err != nil || l.level != gpio.Low {
		t.Errorf("on is %v, %v", l.level, err)
	}
}
