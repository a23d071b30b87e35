package mcp

import "github.com/modelcontextprotocol/go-sdk/mcp"

// SDK is the server of the library, to which judges add what they want to see.
func SDK(s *Server) *mcp.Server { return s.sdk }
