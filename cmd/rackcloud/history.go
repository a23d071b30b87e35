package main

import (
	"net/url"
	"strconv"

	"phonerack/cloud/api"
	"phonerack/cloud/fleet"
	"phonerack/cmd/internal/table"
)

type eventsCommand struct {
	Rack  string `help:"Only of this rack."`
	Limit uint   `help:"At most so many; 0 for all." default:"50"`
}

func (c eventsCommand) Run(s *session) error {
	q := url.Values{}
	if c.Rack != "" {
		q.Set("rack", c.Rack)
	}
	all, err := list[fleet.Event](s, "/v1/admin/events", q, int(c.Limit))
	return show(s, all, err, func(all []fleet.Event) error {
		t := table.New(s.stdout, "TIME", "RACK", "SLOT", "KIND", "DETAIL")
		for _, e := range all {
			t.Row(when(e.At), e.Rack, slotText(e.Slot), e.Kind, shorten(string(e.Detail)))
		}
		return t.Flush()
	})
}

type auditCommand struct {
	Limit uint `help:"At most so many; 0 for all." default:"50"`
}

func (c auditCommand) Run(s *session) error {
	all, err := list[fleet.Audit](s, "/v1/admin/audits", nil, int(c.Limit))
	return show(s, all, err, func(all []fleet.Audit) error {
		t := table.New(s.stdout, "TIME", "WHO", "WHAT", "OBJECT", "DETAIL")
		for _, a := range all {
			t.Row(when(a.At), a.Actor, a.Verb, a.Object, shorten(string(a.Detail)))
		}
		return t.Flush()
	})
}

type usageCommand struct {
	From string `help:"First day, such as 2026-11-01."`
	To   string `help:"Last day."`
	Rack string `help:"Only of this rack."`
}

func (c usageCommand) Run(s *session) error {
	q := url.Values{}
	for k, v := range map[string]string{"from": c.From, "to": c.To, "rack": c.Rack} {
		if v != "" {
			q.Set(k, v)
		}
	}
	all, err := list[api.Usage](s, "/v1/admin/usage", q, 0)
	return show(s, all, err, func(all []api.Usage) error {
		t := table.New(s.stdout, "DAY", "RACK", "TASK", "PROFILE", "REQUESTS", "IN", "OUT", "COST")
		for _, u := range all {
			n := func(v int64) string { return strconv.FormatInt(v, 10) }
			t.Row(u.Day, u.Rack, u.TaskID, u.Profile, n(u.Requests), n(u.TokensIn), n(u.TokensOut), n(u.Cost))
		}
		return t.Flush()
	})
}

// slotText is a slot in a table; what is of the rack itself has none.
func slotText(slot int) string {
	if slot == 0 {
		return "-"
	}
	return strconv.Itoa(slot)
}
