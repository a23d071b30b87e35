package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/cmd/internal/table"
	"phonerack/sync/wire"
)

type orderCommands struct {
	Send orderSend `cmd:"" help:"Send a command to a rack: ping, identify or screenshot."`
	List orderList `cmd:"" help:"List commands, newest first."`
	Show orderShow `cmd:"" help:"Show a command."`
}

type orderSend struct {
	Name    string        `arg:"" help:"ping, identify or screenshot."`
	Rack    string        `arg:"" help:"Id of the rack."`
	Slot    int           `help:"Of this slot; the rack itself without it."`
	Args    string        `help:"Arguments as a JSON object." placeholder:"JSON"`
	Expires time.Duration `help:"How long it may wait for its rack; seven days without it." placeholder:"DURATION"`
	Wait    time.Duration `help:"Wait so long for its end." placeholder:"DURATION"`
	Out     string        `help:"File for the picture of a screenshot; it waits for it." placeholder:"FILE"`
}

func (c orderSend) Run(s *session) error {
	n := fleet.NewCommand{Rack: c.Rack, Slot: c.Slot, Name: c.Name}
	if c.Args != "" {
		n.Args = json.RawMessage(c.Args)
		if !json.Valid(n.Args) {
			return fmt.Errorf("%w: --args is no JSON", errUsage)
		}
	}
	if c.Expires > 0 {
		n.Expires = time.Now().Add(c.Expires).UnixMilli()
	}
	var v fleet.Command
	if err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/commands", nil, n, &v); err != nil {
		return err
	}
	wait := c.Wait
	if c.Out != "" && wait == 0 {
		wait = time.Minute
	}
	for end := time.Now().Add(wait); !v.State.Over() && time.Now().Before(end); {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(pollEvery):
		}
		if err := s.client.call(s.ctx, http.MethodGet, "/v1/admin/commands/"+v.CommandID, nil, nil, &v); err != nil {
			return err
		}
	}
	if c.Out != "" && v.State == wire.CommandSucceeded {
		picture, err := s.client.raw(s.ctx, http.MethodGet, "/v1/admin/commands/"+v.CommandID+"/picture", nil, nil)
		if err != nil {
			return err
		}
		if err := writeSecretFile(c.Out, picture); err != nil {
			return err
		}
	}
	if err := s.showCommands(v); err != nil {
		return err
	}
	if wait > 0 && v.State != wire.CommandSucceeded {
		return exitCode(exitRefused)
	}
	return nil
}

type orderShow struct {
	Command string `arg:"" help:"Id of the command."`
	Out     string `help:"File for the picture of a screenshot." placeholder:"FILE"`
}

func (c orderShow) Run(s *session) error {
	var v fleet.Command
	path := "/v1/admin/commands/" + url.PathEscape(c.Command)
	if err := s.client.call(s.ctx, http.MethodGet, path, nil, nil, &v); err != nil {
		return err
	}
	if c.Out != "" {
		picture, err := s.client.raw(s.ctx, http.MethodGet, path+"/picture", nil, nil)
		if err != nil {
			return err
		}
		if err := writeSecretFile(c.Out, picture); err != nil {
			return err
		}
	}
	return s.showCommands(v)
}

type orderList struct {
	Rack  string `help:"Only of this rack."`
	Limit int    `help:"At most so many; 0 for all." default:"50"`
}

func (c orderList) Run(s *session) error {
	q := url.Values{}
	if c.Rack != "" {
		q.Set("rack", c.Rack)
	}
	all, err := list[fleet.Command](s, "/v1/admin/commands", q, c.Limit)
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
		t.Row(v.CommandID, v.Rack, strconv.Itoa(v.Slot), strconv.FormatInt(v.Seq, 10), v.Name, string(v.State), when(v.Updated))
	}
	return t.Flush()
}
