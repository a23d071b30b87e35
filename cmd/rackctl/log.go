package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/firmware/logbook"
)

type logCommand struct {
	Level  string `help:"Least level: debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	Last   int    `short:"n" help:"Begin with so many lines." default:"100"`
	Follow bool   `short:"f" help:"Go on with lines as they come."`
}

func (c logCommand) Run(s *session) error {
	args := action.LogArgs{Level: c.Level, Last: c.Last, Follow: c.Follow}
	if s.json {
		return s.client.Stream(s.ctx, "log", args, action.Pipes{Out: s.stdout}, nil)
	}
	read, write := io.Pipe()
	printed := make(chan error, 1)
	go func() {
		err := s.printLog(read)
		read.CloseWithError(err)
		printed <- err
	}()
	err := s.client.Stream(s.ctx, "log", args, action.Pipes{Out: write}, nil)
	write.Close()
	if printErr := <-printed; err == nil {
		err = printErr
	}
	return err
}

// printLog prints records one a line; what a phone has said cannot rule the terminal.
func (s *session) printLog(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		var record logbook.Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return fmt.Errorf("the log cannot be read: %w", err)
		}
		if _, err := fmt.Fprintln(s.stdout, record.Time.Format(time.DateTime), record.Level, table.Plain(record.Line)); err != nil {
			return err
		}
	}
	return lines.Err()
}
