package button

import (
	"context"
	"fmt"
	"time"

	"periph.io/x/conn/v3/gpio"
)

// look is how long a wait for an edge may last: gpio.PinIn cannot be interrupted, and a missed edge must not hide a
// release.
const look = 500 * time.Millisecond

// Events are what Watch tells. Both are called from Watch's own goroutine, which waits for them.
type Events struct {
	Stage func(Stage) // the stage has changed
	Act   func(Act)   // the button was released with an act
}

// Watch reads the button until ctx ends; activeLow means that a pressed button reads low. It returns within look of the
// end of ctx, and with an error only if the pin cannot be made an input.
func Watch(ctx context.Context, pin gpio.PinIn, activeLow bool, events Events) error {
	pull := gpio.PullDown
	if activeLow {
		pull = gpio.PullUp
	}
	if err := pin.In(pull, gpio.BothEdges); err != nil {
		return fmt.Errorf("watch the button at %s: %w", pin.Name(), err)
	}
	began := time.Now()
	var press Press
	shown := Up
	for ctx.Err() == nil {
		press.Level(bool(pin.Read()) != activeLow, time.Since(began))
		stage, act, again := press.At(time.Since(began))
		if act != None && events.Act != nil {
			events.Act(act)
		}
		if stage != shown && events.Stage != nil {
			events.Stage(stage)
		}
		shown = stage
		if again == 0 || again > look {
			again = look
		}
		pin.WaitForEdge(again)
	}
	return nil
}
