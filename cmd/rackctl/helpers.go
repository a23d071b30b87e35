package main

import (
	"fmt"
	"strings"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
)

type helperCommands struct {
	Status  helpersStatus  `cmd:"" help:"Show which helper apps a phone has."`
	Install helpersInstall `cmd:"" help:"Install the helper apps on a phone and start them."`
	Remove  helpersRemove  `cmd:"" help:"Take the helper apps off a phone."`
}

type helpersStatus struct{ slotArg }

func (c helpersStatus) Run(s *session) error {
	return call(s, "helpers_status", c.args(), s.showHelpers)
}

type helpersInstall struct{ slotArg }

// openServer warns whoever installs the helper apps; docs/helpers.md, Security, has the rest.
const openServer = "Warning: the helper server listens on all network interfaces of the phone without authentication: " +
	"whoever reaches the phone over its network can read its screen and operate it."

func (c helpersInstall) Run(s *session) error {
	fmt.Fprintln(s.stderr, openServer)
	return call(s, "helpers_install", c.args(), s.showHelpers)
}

type helpersRemove struct{ slotArg }

func (c helpersRemove) Run(s *session) error {
	return call(s, "helpers_remove", c.args(), s.showHelpers)
}

func (s *session) showHelpers(status action.HelperStatus) error {
	if !status.Supported {
		fmt.Fprintln(s.stdout, "the phone's Android is too old for the helper apps")
	}
	t := table.New(s.stdout, "APP", "STATE")
	for _, a := range status.Apps {
		state := "not installed"
		switch {
		case a.Installed && a.Current:
			state = strings.TrimSpace("installed " + a.Version) // the companion has no version of its own
		case a.Installed:
			state = strings.TrimSpace("installed "+a.Version) + ", another release than the rack's"
		}
		t.Row(a.Package, state)
	}
	running := "does not run"
	if status.Running {
		running = "runs"
	}
	t.Row("server", running)
	return t.Flush()
}
