package client

import (
	"fmt"
	"time"

	"phonerack/agent/skill/model"
)

// Bounds of what is done with a server.
const (
	MaxTools = 100 // of one server

	openTime  = 10 * time.Second // until a server has said what it is
	listTime  = 10 * time.Second // for a whole list of tools
	callTime  = 60 * time.Second // for the answer to a call
	closeTime = time.Second      // that a program has to end by itself
	graceTime = 5 * time.Second  // for whatever is pending after its end

	maxMessage = 1 << 20  // bytes of one message
	maxTalk    = 8 << 20  // bytes of all that a program says from one question to the next
	maxPages   = 20       // of a list
	maxText    = 64 << 10 // bytes of a call's text; who shows it bounds it further
)

// Server says how a server is reached. Either Command or URL is set.
type Server struct {
	Name    string
	Command []string // absolute path of the program, and its arguments
	Env     []string // NAME=value, beside the path and the language that every program gets
	URL     string
	Token   string // sent to the URL's host as a bearer; "" for none
}

// Transport is how skills call the way to the server.
func (s *Server) Transport() model.Transport {
	if s.URL != "" {
		return model.StreamableHTTP
	}
	return model.Stdio
}

// Fault is why a server, or a tool of it, could not be used.
type Fault struct {
	Server string
	Reason string // what it did or did not do
	Told   bool   // the tool itself says so: it was called, and could not do it
	Sent   bool   // the call went out: nobody knows what became of it, unless Told is set
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("the MCP server %s %s", f.Server, f.Reason) }

// Tool is a tool as planners can be offered it.
type Tool struct {
	Name        string // the server's own
	Description string
	Schema      []byte // of the arguments, in the subset of planner.ParseSchema
	ReadOnly    bool   // as the server says
	Sum         string // SHA-256 of all that the server says of it
}

// LeftOut is a tool that planners cannot be offered.
type LeftOut struct{ Name, Reason string }

// Listing is what a server has.
type Listing struct {
	Tools   []Tool // by name
	LeftOut []LeftOut
}
