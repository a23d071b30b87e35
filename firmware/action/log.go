package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"phonerack/firmware/logbook"
	"phonerack/sync/wire"
)

// Logs is a rack whose log can be read.
type Logs interface {
	Log() *logbook.Book // nil if it cannot
}

// LogArgs are the arguments of log.
type LogArgs struct {
	Level  string `json:"level,omitempty" doc:"least level: debug, info, warn or error; info if not given"`
	Last   int    `json:"last,omitempty" doc:"begin with so many records; 100 if not given"`
	Follow bool   `json:"follow,omitempty" doc:"go on with records as they come"`

	level slog.Level
}

const (
	defaultLast = 100
	maxLast     = 10_000
	logTimeout  = 12 * time.Hour
)

func (a *LogArgs) validate() error {
	if a.Last < 0 || a.Last > maxLast {
		return fmt.Errorf("last must be from 1 to %d", maxLast)
	}
	if a.Last == 0 {
		a.Last = defaultLast
	}
	if a.Level == "" {
		return nil
	}
	if err := a.level.UnmarshalText([]byte(a.Level)); err != nil {
		return errors.New("level must be debug, info, warn or error")
	}
	return nil
}

func logActions() []entry {
	return []entry{
		define(Definition{Name: "log", Summary: "read the newest records of the log, one JSON object a line", Role: Operator, Idempotent: true, Streams: Download, Timeout: logTimeout}, readLog),
	}
}

func readLog(ctx context.Context, c *call, args *LogArgs) (any, error) {
	l, ok := c.rack.(Logs)
	if !ok || l.Log() == nil {
		return nil, wire.Refuse(wire.Unsupported, map[string]any{"what": "reading the log here"})
	}
	out := json.NewEncoder(c.pipes.Out)
	out.SetEscapeHTML(false)
	records, next, _, more := l.Log().Since(0, args.level, 0)
	records = records[max(0, len(records)-args.Last):]
	for {
		for _, r := range records {
			if err := out.Encode(r); err != nil {
				return nil, err
			}
		}
		if !args.Follow {
			return nil, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		records, next, _, more = l.Log().Since(next, args.level, 0)
	}
}
