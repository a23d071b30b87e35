package led

import (
	"fmt"

	"periph.io/x/conn/v3/gpio"
)

// Pin is a lamp on a GPIO line. It keeps its level when the process dies.
type Pin struct {
	out gpio.PinOut
	low bool // the lamp is lit by a low level
}

// OnPin returns the lamp of a line that lights it when it is high, or when it is low if activeLow says so. The line is
// not touched before the first Set.
func OnPin(out gpio.PinOut, activeLow bool) *Pin { return &Pin{out, activeLow} }

// Set implements Lamp. The line is not read back: reading is not part of gpio.PinOut.
func (p *Pin) Set(on bool) error {
	if err := p.out.Out(gpio.Level(on != p.low)); err != nil {
		return fmt.Errorf("set the line %s: %w", p.out.Name(), err)
	}
	return nil
}

// Ends implements Lamp.
func (p *Pin) Ends() bool { return false }

// Name implements Lamp.
func (p *Pin) Name() string { return p.out.Name() }
