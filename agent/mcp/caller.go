package mcp

import "context"

// Caller is who asks.
type Caller struct {
	Name string // of the token, or of the person at the socket; the same name is the same caller
	Via  string // ViaHTTP or ViaStream
}

// Doors through which callers come.
const (
	ViaHTTP   = "mcp-http"
	ViaStream = "mcp-stdio"
)

type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is the caller of a request; the doors have put one into each.
func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
