package health

import (
	"testing"
	"time"
)

// TestAPhoneThatLeftIsNotCalledWell: at once, without an act; that it is lost looks have to agree on, and one that comes back is as it
// was.
func TestAPhoneThatLeftIsNotCalledWell(t *testing.T) {
	for _, c := range []struct {
		name  string
		was   func() Look
		state State // once it has left
		main  string
	}{
		{"well", nil, UnknownHow, "left"},
		{"waits for its prompt", with(1, func(l *Look) { l.Greet = GreetAsked }), UnknownHow, "left"},
		{"lost already", hung(1), Recovering, "hung"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 2)
			b.pass(time.Minute)
			if c.was != nil {
				b.phones[1] = c.was
				b.pass(time.Minute + 30*time.Second)
			}
			before, acts := b.state(1), b.rungsOf(1)
			b.Left(1)
			if st, _ := b.Status(1); st.State != c.state || st.Main.Code != c.main || !st.Paused || b.rungsOf(1) != acts {
				t.Errorf("it is %s with %+v, acts %q after %q", st.State, st.Main, b.rungsOf(1), acts)
			}
			if late := b.phones[1](); late.Bus == BusADB { // that began before it left
				late.Shell = ShellLost
				b.Look(1, late)
			}
			b.Look(1, gone(1)())
			if st, _ := b.Status(1); c.state == UnknownHow && (st.State != c.state || st.Main.Code != "left") {
				t.Errorf("after one look it is %s with %+v", st.State, st.Main)
			}
			if b.state(2) != Well {
				t.Errorf("its neighbour is %s", b.state(2))
			}
			if c.was == nil {
				b.Look(1, b.phones[1]())
				if b.state(1) != before {
					t.Errorf("back, it is %s, and was %s", b.state(1), before)
				}
				b.phones[1] = gone(1)
				b.Left(1)
				b.pass(time.Minute + time.Second)
				if st, _ := b.Status(1); st.State != Recovering || st.Main.Code != string(Dead) {
					t.Errorf("a minute later it is %s with %+v", st.State, st.Main)
				}
			}
		})
	}
}

// TestASlotThatAPersonHasSwitchedOffSaysSo, and not that it is maintained, unless it is that too.
func TestASlotThatAPersonHasSwitchedOffSaysSo(t *testing.T) {
	b := rack(t, 2)
	b.pass(time.Minute)
	b.Dark(1, true)
	b.Left(1)
	st, _ := b.Status(1)
	if st.State != Maintenance || st.Main.Code != "dark" || codes(st.Others) != "" || !st.Paused {
		t.Errorf("%+v", st)
	}
	b.Maintain(0, true)
	if st, _ := b.Status(1); st.Main.Code != "dark" || codes(st.Others) != "maintenance" {
		t.Errorf("in maintenance: %+v", st)
	}
	b.Maintain(0, false)
	b.phones[1] = gone(1)
	b.pass(10 * time.Minute)
	if acts := b.rungsOf(1); acts != "" || b.state(1) != Maintenance {
		t.Errorf("%s, and something was done about it: %s", b.state(1), acts)
	}
	b.Dark(1, false)
	if st, _ := b.Status(1); st.State == Maintenance || st.Main.Code == "dark" {
		t.Errorf("switched on: %+v", st)
	}
}
