package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

type linkCommands struct {
	Status linkStatusCommand `cmd:"" help:"Show whether the rack reaches its cloud, since when, and what waits to be sent."`
	Retry  linkRetryCommand  `cmd:"" help:"Try to reach the cloud now, instead of after the pause that status shows."`
}

type linkStatusCommand struct{}

func (linkStatusCommand) Run(s *session) error { return s.link("link_status") }

type linkRetryCommand struct{}

func (linkRetryCommand) Run(s *session) error { return s.link("link_retry") }

// link calls an action that tells how the link is.
func (s *session) link(name string) error {
	return call(s, name, nil, func(status action.LinkStatus) error {
		if status.Link == nil {
			_, err := fmt.Fprintln(s.stdout, "This rack has no cloud: cloud.identity is not in its configuration.")
			return err
		}
		t := table.New(s.stdout, "WHAT", "IS")
		linkRows(t, *status.Link)
		return t.Flush()
	})
}

func linkRows(t table.Table, l link.Status) {
	t.Row("state", fmt.Sprintf("%s since %s", l.State, l.Since.Local().Format(time.DateTime)))
	if l.NextTry > 0 {
		t.Row("next try", "in "+l.NextTry.Round(time.Second).String())
	}
	if l.LastError != "" {
		t.Row("last error", l.LastError)
	}
	t.Row("broker", l.Broker)
	t.Row("rack", l.Tenant+"/"+l.Rack)
	t.Row("session", strconv.FormatUint(l.Session, 10))
	if l.Presence == wire.Draining {
		t.Row("tasks", "none are taken")
	}
	if l.Desired > 0 {
		t.Row("settings", fmt.Sprintf("version %d of the cloud's are applied", l.Desired))
	}
	if l.RoundTrip > 0 {
		t.Row("round trip", l.RoundTrip.Round(time.Millisecond).String())
	}
	clock := "its own: the cloud has not told the time yet"
	if l.Trusted {
		clock = fmt.Sprintf("the cloud's, %s from the board's own", l.Offset.Round(time.Millisecond))
	}
	t.Row("clock", clock)
	waiting := 0
	for _, n := range l.Outbox.Entries {
		waiting += n
	}
	t.Row("outbox", fmt.Sprintf("%d waiting, %d of %d KB", waiting, l.Outbox.Bytes>>10, l.Outbox.Limit>>10))
	if l.Outbox.Refused > 0 {
		t.Row("refused", fmt.Sprintf("%d, kept on the rack", l.Outbox.Refused))
	}
	if l.Outbox.Dropped > 0 {
		t.Row("dropped events", strconv.FormatUint(l.Outbox.Dropped, 10))
	}
	for _, name := range slices.Sorted(maps.Keys(l.Counters)) {
		t.Row(name, strconv.FormatUint(l.Counters[name], 10))
	}
}
