// Package client uses the tools of MCP servers that somebody has allowed in the
// rack's configuration.
//
// [Open] starts a server's program, or reaches it over HTTP; [Session.Tools] lists
// what planners can be offered of it, [Session.Call] calls a tool, and
// [Session.Close] ends it and waits for its program. Everything is bounded in time,
// size and number, and nothing that a server does or leaves undone makes a call
// last longer than its bound.
//
// A server is not trusted. Its program is started without a shell and with an
// environment of its own, never with what a skill says; its texts come back as
// data, bounded and without characters that cannot be seen; and a tool that is no
// longer what was offered is not called. An error is a *[Fault]: one sentence.
package client
