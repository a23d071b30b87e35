package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/rehearsal"
	"phonerack/sync/wire"
)

type taskReplay struct {
	Record     string            `arg:"" help:"Folder of a trajectory, or the id of a task of this rack." placeholder:"DIR|ID"`
	Param      map[string]string `mapsep:"none" help:"A value that the task had; may be repeated." placeholder:"NAME=VALUE"`
	Seed       int64             `help:"Seed of the simulated phone, as phonesim takes it." placeholder:"N"`
	Apps       string            `help:"Folder of the simulated phone's apps, instead of those that it comes with." type:"existingdir" placeholder:"DIR"`
	Trajectory string            `help:"Write the replay's own pictures and steps into this folder." placeholder:"DIR"`
}

// taskID is a ULID, by which a task is named.
var taskID = regexp.MustCompile(`^[0-9A-Za-z]{26}$`)

// replayed is the result as JSON.
type replayed struct {
	Steps   int           `json:"steps"`             // taken again without a difference
	Of      int           `json:"of"`                // that the record has
	Differs int           `json:"differs,omitempty"` // step that differs first
	Lines   []string      `json:"lines,omitempty"`   // "- " as recorded, "+ " as it is now
	Refusal *wire.Refusal `json:"refusal,omitempty"`
}

func (c taskReplay) Run(s *session) error {
	dir := c.Record
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if !taskID.MatchString(c.Record) {
			return fmt.Errorf("there is no folder %s, nor is that the id of a task: name the folder of a trajectory, or an id as rackctl task list shows it", table.Plain(c.Record))
		}
		temp, err := os.MkdirTemp("", "rackctl-replay-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		if err := s.fetch(c.Record, temp); err != nil {
			return err
		}
		dir = temp
	}
	options := rehearsal.Options{Params: c.Param, Seed: c.Seed, Trajectory: c.Trajectory}
	if c.Apps != "" {
		options.Apps = os.DirFS(c.Apps)
	}
	report, err := rehearsal.Run(s.ctx, dir, options)
	refusal, refused := errors.AsType[*wire.Refusal](err)
	if err != nil && !refused {
		return err
	}
	if s.json {
		err := s.print(replayed{Steps: report.Steps, Of: report.Of, Differs: report.Differs, Lines: report.Lines, Refusal: refusal})
		if refused {
			err = errors.Join(err, exitCode(exitRefused))
		}
		return err
	}
	if !refused {
		_, err := fmt.Fprintf(s.stdout, "nothing differs in %d steps\n", report.Steps)
		return err
	}
	fmt.Fprintln(s.stdout, refusal.Sentence(s.lang))
	for _, line := range report.Lines {
		fmt.Fprintln(s.stdout, "  "+table.Plain(line))
	}
	return exitCode(exitRefused)
}
