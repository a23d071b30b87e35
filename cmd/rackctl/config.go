package main

import (
	"fmt"

	"phonerack/firmware/action"
)

type configCommands struct {
	Reload configReload `cmd:"" help:"Have rackd read its configuration anew; says which changed keys count now and which after a restart."`
}

type configReload struct{}

func (configReload) Run(s *session) error {
	return call(s, "config_reload", struct{}{}, func(c action.ConfigChanges) error {
		if len(c.Live)+len(c.Restart) == 0 {
			_, err := fmt.Fprintln(s.stdout, "nothing is changed")
			return err
		}
		for _, key := range c.Live {
			fmt.Fprintf(s.stdout, "%s: counts now\n", key)
		}
		for _, key := range c.Restart {
			fmt.Fprintf(s.stdout, "%s: counts after a restart of rackd\n", key)
		}
		return nil
	})
}
