package main

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// waitFlag is --wait, which waits for the end of what was ordered, or --wait=DURATION, which waits so long at most.
type waitFlag struct {
	on    bool
	limit time.Duration // 0 for none
}

// IsBool implements kong.BoolMapperValue: a value is not needed.
func (*waitFlag) IsBool() bool { return true }

// Decode implements kong.MapperValue. A duration may also be the next word.
func (w *waitFlag) Decode(c *kong.DecodeContext) error {
	*w = waitFlag{on: true}
	next := c.Scan.Peek()
	text := next.String()
	limit, err := time.ParseDuration(text)
	switch {
	case next.Type == kong.FlagValueToken && (err != nil || limit <= 0):
		return fmt.Errorf("%q is no time to wait: 30s and 5m are", text)
	case next.Type == kong.FlagValueToken, next.IsValue() && err == nil && limit > 0:
		w.limit = limit
		c.Scan.Pop()
	}
	return nil
}

// end is when the waiting ends that begins now; the zero time if it has no limit.
func (w waitFlag) end() time.Time {
	if w.limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(w.limit)
}

// passed tells whether a time of end has come.
func passed(end time.Time) bool { return !end.IsZero() && !time.Now().Before(end) }
