package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/cmd/internal/table"
	"phonerack/sync/wire"
)

type orderCommands struct {
	Send orderSend `cmd:"" help:"Send a command to a rack, such as identify, screenshot, reboot or power_cycle."`
	List orderList `cmd:"" help:"List commands, newest first."`
	Show orderShow `cmd:"" help:"Show a command."`
}

type orderSend struct {
	Name    string        `arg:"" help:"ping, identify, screenshot, reboot, power_on, power_off, power_cycle, quarantine, quarantine_end, maintenance, slot_retry, sign or sign_end."`
	Rack    string        `arg:"" help:"Id of the rack."`
	Slot    int           `help:"Of this slot; the rack itself without it."`
	Args    string        `help:"Arguments as a JSON object." placeholder:"JSON"`
	Expires time.Duration `help:"How long it may wait for its rack; seven days without it." placeholder:"DURATION"`
	Wait    waitFlag      `help:"Wait for its end, with --wait=DURATION so long at most; the exit code is 1 unless it succeeded."`
	Out     string        `help:"File for the picture of a screenshot; it waits for it." placeholder:"FILE"`
}

func (c orderSend) Run(s *session) error {
	n, err := c.order()
	if err != nil {
		return err
	}
	wait := c.Wait
	if c.Out != "" {
		if !wait.on {
			wait = waitFlag{on: true, limit: pictureWait}
		}
		// Before anything is ordered: a picture that cannot be kept need not be taken.
		if err := writeSecretFile(c.Out, nil); err != nil {
			return err
		}
	}
	v, err := s.order(n, wait)
	if c.Out != "" {
		if err == nil && v.State == wire.CommandSucceeded {
			err = s.fetchPicture(v.CommandID, c.Out)
		}
		if err != nil || v.State != wire.CommandSucceeded {
			err = errors.Join(err, os.Remove(c.Out))
		}
	}
	if err != nil {
		return err
	}
	if err := s.showCommands(v); err != nil {
		return err
	}
	if wait.on && v.State != wire.CommandSucceeded {
		return exitCode(exitRefused)
	}
	return nil
}

// pictureWait is how long the picture of a screenshot is waited for if nothing is said.
const pictureWait = time.Minute

// order makes the order of the flags.
func (c orderSend) order() (fleet.NewCommand, error) {
	n := fleet.NewCommand{Rack: c.Rack, Slot: c.Slot, Name: c.Name}
	switch {
	case c.Expires < 0:
		return n, fmt.Errorf("%w: --expires is not negative", errUsage)
	case c.Out != "" && c.Name != fleet.Screenshot:
		return n, fmt.Errorf("%w: --out keeps the picture of a screenshot, and %s brings none", errUsage, table.Plain(c.Name))
	}
	if c.Args != "" {
		n.Args = json.RawMessage(c.Args)
		if !json.Valid(n.Args) {
			return n, fmt.Errorf("%w: --args is no JSON", errUsage)
		}
	}
	if c.Expires > 0 {
		n.Expires = time.Now().Add(c.Expires).UnixMilli()
	}
	return n, nil
}

// order sends a command and waits for its end if it is to.
func (s *session) order(n fleet.NewCommand, wait waitFlag) (v fleet.Command, err error) {
	if err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/commands", nil, n, &v); err != nil {
		return v, err
	}
	for end := wait.end(); wait.on && !v.State.Over() && !passed(end); {
		select {
		case <-s.ctx.Done():
			return v, s.ctx.Err()
		case <-time.After(pollEvery):
		}
		var now fleet.Command // a new one: what is left out must not stay from before
		if err := s.client.call(s.ctx, http.MethodGet, commandPath(v.CommandID), nil, nil, &now); err != nil {
			return v, err
		}
		v = now
	}
	return v, nil
}

func commandPath(id string) string { return "/v1/admin/commands/" + url.PathEscape(id) }

// fetchPicture writes the picture of a screenshot into a file that was made for it.
func (s *session) fetchPicture(command, out string) error {
	picture, err := s.client.raw(s.ctx, http.MethodGet, commandPath(command)+"/picture", nil, nil)
	if err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o600)
}

type orderShow struct {
	Command string `arg:"" help:"Id of the command."`
	Out     string `help:"File for the picture of a screenshot." placeholder:"FILE"`
}

func (c orderShow) Run(s *session) error {
	var v fleet.Command
	if err := s.client.call(s.ctx, http.MethodGet, commandPath(c.Command), nil, nil, &v); err != nil {
		return err
	}
	if c.Out != "" {
		if err := writeSecretFile(c.Out, nil); err != nil {
			return err
		}
		if err := s.fetchPicture(v.CommandID, c.Out); err != nil {
			return errors.Join(err, os.Remove(c.Out))
		}
	}
	return s.showCommands(v)
}

type orderList struct {
	Rack  string `help:"Only of this rack."`
	Limit uint   `help:"At most so many; 0 for all." default:"50"`
}

func (c orderList) Run(s *session) error {
	q := url.Values{}
	if c.Rack != "" {
		q.Set("rack", c.Rack)
	}
	all, err := list[fleet.Command](s, "/v1/admin/commands", q, int(c.Limit))
	if err != nil {
		return err
	}
	if s.json {
		return s.print(all)
	}
	return s.tableOfCommands(all)
}

func (s *session) showCommands(v fleet.Command) error {
	return show(s, v, nil, func(v fleet.Command) error {
		if err := s.tableOfCommands([]fleet.Command{v}); err != nil {
			return err
		}
		if v.Error != nil {
			fmt.Fprintln(s.stdout, v.Error.Sentence(s.lang))
		}
		if len(v.Detail) > 0 {
			fmt.Fprintln(s.stdout, table.Plain(string(v.Detail)))
		}
		return nil
	})
}

func (s *session) tableOfCommands(all []fleet.Command) error {
	t := table.New(s.stdout, "COMMAND", "RACK", "SLOT", "SEQ", "NAME", "STATE", "UPDATED")
	for _, v := range all {
		t.Row(v.CommandID, v.Rack, slotText(v.Slot), strconv.FormatInt(v.Seq, 10), v.Name, string(v.State), when(v.Updated))
	}
	return t.Flush()
}
