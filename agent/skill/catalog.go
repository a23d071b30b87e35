package skill

import (
	"errors"
	"log/slog"
	"sync"

	"phonerack/agent/skill/model"
	"phonerack/agent/skill/search"
	"phonerack/agent/skill/template"
)

// Source is the rack's copy of its catalog.
type Source interface {
	// Copy is the copy as it is now.
	Copy() *model.Copy
	// Skill reads the skill of an entry of a copy; an error may mean that there is another copy by now.
	Skill(e model.Entry) (*model.Skill, error)
}

// ErrUnknown tells that there is no such skill for the caller.
var ErrUnknown = errors.New("the skill is not known")

// ErrUnreadable tells that the source has the skill, and could not give it.
var ErrUnreadable = errors.New("the skill cannot be read")

// Names under which subscriptions are granted to those who ask on a rack.
const (
	ForTasks   = "task"   // planners that work on tasks
	ForMCP     = "mcp"    // all MCP clients; one with a token of its own is mcp-NAME too
	ForPersons = "person" // at the rack itself
)

// Caller is who asks.
type Caller struct {
	Agent string // one of the names above
	Token string // name of the token of an MCP client; "" for none
	Task  string // that is worked on, for the log
	Slot  int    // likewise
}

// agents are the names by which a subscription may be the caller's.
func (c Caller) agents() []string {
	if c.Token == "" {
		return []string{c.Agent}
	}
	return []string{c.Agent, c.Agent + "-" + c.Token}
}

// Options of a catalog. Source and Tools are needed.
type Options struct {
	Source Source
	Tools  template.Tools // that are registered now
	Logger *slog.Logger
}

// Catalog answers questions about a rack's catalog skills. It is safe for
// concurrent use.
type Catalog struct {
	o Options

	mu     sync.Mutex // guards what follows, and is held while they are made anew
	rows   []model.Row
	index  *search.Index
	faults map[string]string // hash of a flow template -> why it cannot be used, "" if it can
	unread map[string]bool   // hashes of those whose fault is that they could not be read
}

// New makes a catalog. Nothing is read yet.
func New(o Options) *Catalog {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Catalog{o: o, faults: map[string]string{}}
}

// Changed makes ready for a copy that is new. Without it the next question does.
func (c *Catalog) Changed() { c.ready(c.o.Source.Copy()) }

// ToolsChanged checks every flow template again.
func (c *Catalog) ToolsChanged() {
	c.mu.Lock()
	c.rows, c.faults = nil, map[string]string{}
	c.mu.Unlock()
	c.Changed()
}

// ready gives the index of a copy, and what is wrong with its flow templates.
func (c *Catalog) ready(now *model.Copy) (*search.Index, map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index != nil && same(c.rows, now.Rows) {
		return c.index, c.faults
	}
	docs := make([]search.Document, 0, len(now.Rows))
	faults, unread := make(map[string]string, len(c.faults)), map[string]bool{}
	for _, r := range now.Rows {
		docs = append(docs, search.Document{ID: r.ID, Name: r.Name, Description: r.Description, Tags: r.Tags, Aliases: r.Aliases})
		if r.Kind != model.FlowTemplate {
			continue
		}
		fault, known := c.faults[r.SHA256]
		if !known || c.unread[r.SHA256] {
			var read bool
			if fault, read = c.fault(r); !read {
				unread[r.SHA256] = true
			}
		}
		faults[r.SHA256] = fault
	}
	c.rows, c.index, c.faults, c.unread = now.Rows, search.New(docs), faults, unread
	return c.index, faults
}

// same reports whether two lists of rows, which do not change, are one.
func same(a, b []model.Row) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// fault checks the flow template of a row, if it can be read.
func (c *Catalog) fault(r model.Row) (reason string, read bool) {
	s, err := c.o.Source.Skill(r.Entry)
	if read = err == nil; read {
		err = c.check(s)
	}
	if err == nil {
		return "", true
	}
	c.o.Logger.Warn("a skill of the catalog cannot be used", "skill", r.ID, "version", r.Version, "reason", err.Error())
	return err.Error(), read
}

// check says why a skill cannot be used with the tools that are registered now.
func (c *Catalog) check(s *model.Skill) error {
	if s.Kind != model.FlowTemplate {
		return nil
	}
	t, err := template.Parse(s)
	if err != nil {
		return err
	}
	return t.Check(c.o.Tools)
}
