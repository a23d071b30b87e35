// Package mcp offers a rack to clients of the Model Context Protocol: the skills
// that a caller is entitled to, and the tools that act on phones.
//
// A [Server] has no skills and no phones of its own. It asks a [Skills] and a
// [Devices], and gives each the [Caller], so that visibility and leases are
// decided where they are decided for everybody else. It speaks both eras of the
// protocol, up to 2025-11-25 with its handshake and 2026-07-28 without one, over
// Streamable HTTP ([Server.Serve]) and over a byte stream with a message a line
// ([Server.Converse]). Nothing is kept between requests: what has to last, such
// as a hold of a slot, is named by its arguments.
//
// A tool that does not exist, or a request that is none, is an error of the
// protocol. Everything else that cannot be done is a result with isError: one
// sentence, and the refusal with its code as JSON. There is no tool that makes or
// changes a skill (spec 000, D2), and none that runs a flow template: the client
// resolves its parameters and issues each call itself, looking in between (D5).
//
// What callers send is checked against the tool's schema before anything is done,
// and bounded; what comes from phones and skills is freed of invisible and control
// characters. docs/mcp.md is for users.
package mcp
