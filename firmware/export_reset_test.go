package firmware

import (
	"context"
	"errors"
	"log/slog"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/factory"
	"phonerack/hal/button"
	"phonerack/hal/led"
)

// FinishResetCut is FinishReset with a step before each of its own.
func FinishResetCut(c *config.Config, file string, log *slog.Logger, step func(string) error) (bool, error) {
	return finishReset(c, file, log, step)
}

// Press does what a press of the button asks for.
func Press(r *Rack, a button.Act) { r.care.pressed(context.Background(), a) }

// WatchButton reads a rack's button, with a light of the rack and its actions.
func WatchButton(ctx context.Context, pin conn.PinIn, light *led.Light, actions *action.Registry) error {
	c := &care{
		rack: &Rack{actions: actions}, log: slog.New(slog.DiscardHandler), hands: &occupied{}, lights: map[int]lights{0: {light}},
	}
	return c.watchButton(ctx, pin)
}

// PressFactoryReset holds the button for as long as a factory reset takes.
func PressFactoryReset(r *Rack) error {
	Press(r, button.FactoryReset)
	_, asked, err := factory.Asked(r.config.Rack.State)
	if err == nil && !asked {
		err = errors.New("no reset was asked for")
	}
	return err
}
