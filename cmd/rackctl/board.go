package main

import (
	"errors"
	"fmt"

	"phonerack/cmd/internal/table"
	"phonerack/hal/board"
)

// boardCommands work on files, not on rackd: docs/boards.md.
type boardCommands struct {
	Check  boardCheck  `cmd:"" help:"Check a board file: every fault with its line, and how full the USB controllers are."`
	Learn  boardLearn  `cmd:"" help:"Find out which USB port is which slot, while you plug a phone into one slot after the other."`
	Models boardModels `cmd:"" help:"List the boards that a file can build upon, or show one."`
}

type boardCheck struct {
	File string `arg:"" help:"The board file."`
}

// boardFault is a fault as --json prints it; line and column count from 1 and are 0 without a place.
type boardFault struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// boardReport is what board check --json prints.
type boardReport struct {
	OK          bool            `json:"ok"`
	Faults      []boardFault    `json:"faults"`
	Name        string          `json:"name,omitempty"`
	Slots       int             `json:"slots"`
	Hubs        int             `json:"hubs"` // that the file names
	Controllers []controllerUse `json:"controllers"`
}

type controllerUse struct {
	Name   string `json:"name"`
	Used   int    `json:"used"`
	Limit  int    `json:"limit"`
	Hubs   int    `json:"hubs"`
	Phones int    `json:"phones"`
}

func (c boardCheck) Run(s *session) error {
	b, err := board.Load(c.File)
	if s.json {
		if err := s.print(report(b, err)); err != nil {
			return err
		}
		if err != nil {
			return exitCode(exitRefused)
		}
		return nil
	}
	if err != nil {
		for _, f := range faults(err) {
			fmt.Fprintln(s.stderr, table.Plain(f.Error()))
		}
		return exitCode(exitRefused)
	}
	fmt.Fprintf(s.stdout, "%s: %s, %d slots, %d hubs named\n", c.File, b.Name, len(b.Slots), len(b.Hubs))
	for _, u := range b.Uses() {
		fmt.Fprintln(s.stdout, u)
	}
	t := table.New(s.stdout, "SLOT", "LABEL", "PORT", "HUB", "POWER")
	for _, slot := range b.Slots {
		h, _ := b.Hub(slot.Hub)
		t.Row(fmt.Sprint(slot.Number), slot.Label, slot.Path, slot.Hub, feedWords(h, slot))
	}
	return t.Flush()
}

// feedWords says what takes the power of a slot.
func feedWords(h board.Hub, s board.Slot) string {
	switch h.Feed {
	case board.Lines:
		return "line " + h.Line.String() + ", with its hub"
	case board.PortPower:
		return fmt.Sprintf("port %d of its hub", s.Port)
	}
	return "not switched"
}

// faults takes joined errors apart.
func faults(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func report(b *board.Board, err error) boardReport {
	r := boardReport{OK: err == nil, Faults: []boardFault{}, Controllers: []controllerUse{}}
	if err != nil {
		for _, e := range faults(err) {
			f, ok := errors.AsType[board.Fault](e)
			if !ok {
				f.Text = e.Error()
			}
			r.Faults = append(r.Faults, boardFault(f))
		}
		return r
	}
	r.Name, r.Slots, r.Hubs = b.Name, len(b.Slots), len(b.Hubs)
	for _, u := range b.Uses() {
		r.Controllers = append(r.Controllers, controllerUse{u.Controller.Name, u.Devices(), u.Controller.Devices, u.Hubs, u.Phones})
	}
	return r
}

type boardModels struct {
	Name string `arg:"" optional:"" help:"Print the file of this one."`
}

func (c boardModels) Run(s *session) error {
	if c.Name == "" {
		if s.json {
			return s.print(board.Models())
		}
		for _, name := range board.Models() {
			fmt.Fprintln(s.stdout, name)
		}
		return nil
	}
	text, ok := board.Model(c.Name)
	if !ok {
		return fmt.Errorf("no model is called %q: rackctl board models lists them", c.Name)
	}
	_, err := s.stdout.Write(text)
	return err
}
