package firmware

import (
	"context"
	"errors"
	"log/slog"

	"phonerack/firmware/config"
	"phonerack/firmware/factory"
	"phonerack/hal/button"
)

// FinishResetCut is FinishReset with a step before each of its own.
func FinishResetCut(c *config.Config, file string, log *slog.Logger, step func(string) error) (bool, error) {
	return finishReset(c, file, log, step)
}

// PressFactoryReset holds the button for as long as a factory reset takes.
func PressFactoryReset(r *Rack) error {
	r.care.pressed(context.Background(), button.FactoryReset)
	_, asked, err := factory.Asked(r.config.Rack.State)
	if err == nil && !asked {
		err = errors.New("no reset was asked for")
	}
	return err
}
