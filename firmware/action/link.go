package action

import (
	"context"

	"phonerack/sync/link"
)

// LinkStatus is how the rack stands with its cloud.
type LinkStatus struct {
	Joined bool         `json:"joined"`         // it has an identity
	Link   *link.Status `json:"link,omitempty"` // nil if it has none
}

func linkActions() []entry {
	return []entry{
		define(Definition{Name: "link_status", Summary: "show the link to the cloud", Role: Viewer, Idempotent: true, Timeout: quick}, linkStatus),
		define(Definition{Name: "link_retry", Summary: "try to reach the cloud now instead of after the pause", Role: Operator, Idempotent: true, Timeout: quick}, linkRetry),
	}
}

func linkStatus(_ context.Context, c *call, _ *struct{}) (any, error) { return c.rack.Link(), nil }

func linkRetry(_ context.Context, c *call, _ *struct{}) (any, error) {
	c.rack.RetryLink()
	return c.rack.Link(), nil
}
