package main

import (
	"phonerack/firmware/action"
)

type mcpCommand struct{}

// Help explains the command.
func (mcpCommand) Help() string {
	return "For clients of the Model Context Protocol that start their servers: they write to standard input and read standard output, a message a line. docs/mcp.md shows how to set them up."
}

func (mcpCommand) Run(s *session) error {
	return s.client.Stream(s.ctx, "mcp", struct{}{}, action.Pipes{In: s.stdin, Out: s.stdout}, nil)
}
