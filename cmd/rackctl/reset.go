package main

import (
	"errors"
	"fmt"

	"phonerack/firmware/action"
)

type resetCommand struct {
	Yes    bool `help:"Do it: identity, tasks, records of phones, skills and logs are lost."`
	ADBKey bool `name:"adb-key" help:"Forget the ADB key too: each phone asks its person again."`
}

func (c resetCommand) Run(s *session) error {
	if !c.Yes {
		return errors.New("a factory reset removes the identity, tasks, records of phones, skills and logs of this rack: confirm it with --yes")
	}
	return call(s, "factory_reset", action.FactoryResetArgs{Yes: true, ADBKey: c.ADBKey}, func(struct{}) error {
		_, err := fmt.Fprintln(s.stdout, "rackd ends, and its next start makes the rack new. The power of the phones stays as it is.")
		return err
	})
}
