package provider

import (
	"context"
	"net/url"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Client asks one provider profile for decisions. It is safe for concurrent
// use, costs little to make, and needs no closing.
type Client struct {
	cfg  Config
	base *url.URL
}

// Usage is what a call cost, in tokens, as the provider counts them. In holds
// all input tokens, those read from the provider's cache (Cached) included.
type Usage struct{ In, Out, Cached int }

// Outcome is what came of a call, of a failed one too.
type Outcome struct {
	Decision  planner.Decision // the zero value after a failure
	Usage     Usage            // zero if the provider told nothing
	Attempts  int              // requests that were sent
	Status    int              // HTTP status of the last answer, 0 without one
	RequestID string           // the provider's id of the last answer, bounded
	Model     string           // which model answered, as the provider says, bounded
}

// New checks cfg. It neither connects nor looks anything up.
func New(cfg Config) (*Client, error) {
	cfg, base, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, base: base}, nil
}

// Decide implements planner.Planner by [Client.Call].
func (c *Client) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	out, err := c.Call(ctx, req)
	return out.Decision, err
}

// Call asks for one decision. It blocks until the profile's timeout at the
// longest, or until ctx ends.
//
// Its error is a *wire.Refusal: one of the planner codes, with the arguments
// provider_status, request_id, attempts and detail where they are known;
// BadRequest if req cannot be asked at all; or ProviderTimeout if a deadline of ctx passed. If ctx was
// cancelled, it is an error that wraps context.Canceled instead. The Outcome tells
// what is known of a failed call as well.
func (c *Client) Call(ctx context.Context, req planner.Request) (Outcome, error) {
	return Outcome{}, wire.Refuse(wire.Unsupported, map[string]any{"what": "provider " + string(c.cfg.Provider)})
}
