package link

import (
	"context"
)

// session is one connection that the cloud has welcomed.
type session struct{ link *Link }

func (s *session) open(context.Context, Call) (*Exchange, error) { return nil, ErrOffline }
func (s *session) telemetry(context.Context, any) error          { return ErrOffline }

// Run keeps sessions up until ctx ends.
func (l *Link) Run(ctx context.Context) error { <-ctx.Done(); return nil }
