//go:build board

package gpio_test

import (
	"errors"
	"testing"
	"time"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/hal/gpio"
)

// TestBoard runs on the emulated board (firmware/rig), whose lines are those of a PL061.
func TestBoardLines(t *testing.T) {
	spec := gpio.Spec{Name: "HUB3_PWR", Consumer: "phonerack hub 3"}
	first, err := gpio.New(&gpio.Cdev{}, nil).Output(spec, gpio.Initial{Active: true})
	if err != nil {
		t.Fatal(err)
	}
	if level, err := first.Level(); level != conn.High || err != nil {
		t.Errorf("%v, %v", level, err)
	}
	_, err = gpio.New(&gpio.Cdev{}, nil).Output(gpio.Spec{Name: "HUB3_PWR", Consumer: "another"}, gpio.Initial{})
	if busy, ok := errors.AsType[*gpio.BusyError](err); !ok || busy.Consumer != spec.Consumer {
		t.Errorf("a second request: %v", err)
	}
	_, err = gpio.New(&gpio.Cdev{}, nil).Output(gpio.Spec{Name: "HUB9"}, gpio.Initial{})
	if !errors.Is(err, gpio.ErrNotFound) {
		t.Errorf("an unknown line: %v", err)
	}

	name, parked, err := first.Park()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	wrong := gpio.Spec{Name: "HUB2_PWR", Consumer: spec.Consumer}
	hand, err := gpio.New(&gpio.Cdev{}, map[string]gpio.Parked{name: parked}).Output(spec, gpio.Initial{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if !hand.Adopted() || hand.Read() != conn.High {
		t.Errorf("adopted %v, reads %v", hand.Adopted(), hand.Read())
	}
	if err := hand.Out(conn.Low); err != nil || hand.Read() != conn.Low {
		t.Errorf("the adopted handle drives nothing: %v", err)
	}
	name, again, err := hand.Park()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gpio.New(&gpio.Cdev{}, map[string]gpio.Parked{name: again}).Output(wrong, gpio.Initial{Active: true}); !errors.Is(err, gpio.ErrForeign) {
		t.Errorf("adopted as another line: %v", err)
	}
	if err := hand.Close(); err != nil {
		t.Error(err)
	}

	// A PL061 keeps what nobody holds, and the kernel lets it be taken over as it is.
	kept, err := gpio.New(&gpio.Cdev{}, nil).Output(spec, gpio.Initial{Active: true, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if kept.Read() != conn.Low {
		t.Error("the line was driven high when it was taken over")
	}

	input, err := gpio.New(&gpio.Cdev{}, nil).Input(gpio.Spec{Name: "OVERCURRENT"}, conn.PullNoChange)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if err := input.In(conn.PullNoChange, conn.BothEdges); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	if input.WaitForEdge(50*time.Millisecond) || time.Since(begin) > 5*time.Second {
		t.Errorf("an edge, or too late: %v", time.Since(begin))
	}
}
