package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"phonerack/agent/mcp/client"
	"phonerack/agent/skill"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/toolset"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// ForTask says what the skills that a task names come down to, or refuses the task.
func (s *Skills) ForTask(caller skill.Caller, names, permissions []string) (*toolset.Set, error) {
	caller.Agent = skill.ForTasks
	o := toolset.Options{Registry: s.registry, Permitted: func(tool string) bool {
		i := slices.IndexFunc(s.o.Tools, func(t tools.Tool) bool { return t.Name == tool })
		return i >= 0 && (s.o.Tools[i].Permission == "" || slices.Contains(permissions, s.o.Tools[i].Permission))
	}}
	if s.view != nil {
		o.Catalog = s.view.For(caller)
	}
	return toolset.Assemble(o, names)
}

// Fingerprint changes with what registered skills and tools a task may find here.
func (s *Skills) Fingerprint() string {
	sum := sha256.New()
	for _, k := range s.registry.List("") {
		fmt.Fprintf(sum, "%s %d\n", k.Name, k.UpdatedAt.UnixMicro())
	}
	for _, t := range s.known.List("") {
		fmt.Fprintf(sum, "%s %s\n", t.Name, t.SourceMetadata["sha256"])
		sum.Write(t.InputSchema)
		io.WriteString(sum, "\n")
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// maxFailures is how often a server is started or reached anew in a task after it has failed.
const maxFailures = 3

// Talks are a task's conversations with MCP servers. Each begins with the first
// call that needs it, and ends with the task.
type Talks struct {
	servers *servers
	log     *slog.Logger

	turn     sync.Mutex // held during a call: a task has one at a time; guards what follows
	open     map[string]*client.Session
	failures map[string]int
}

// Talk makes a task ready to call tools of MCP servers. Whoever asks for it closes it.
func (s *Skills) Talk(log *slog.Logger) *Talks {
	return &Talks{servers: s.servers, log: log, open: map[string]*client.Session{}, failures: map[string]int{}}
}

// Call calls a tool of an MCP server as it was offered. It ends soon after ctx. The
// answer counts also with an error, which is a refusal unless ctx ended.
func (t *Talks) Call(ctx context.Context, tool registry.Tool, args json.RawMessage) (tools.Answer, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	name := tool.SourceMetadata[registry.MetaServer]
	text, err := t.call(ctx, name, tool, args)
	if err == nil {
		return tools.Answer{Text: text, Sent: true}, nil
	}
	fault, ok := errors.AsType[*client.Fault](err)
	if !ok {
		return tools.Answer{}, err
	}
	t.log.Warn("a tool of an MCP server brought nothing", "server", name, "tool", tool.Name, "reason", fault.Reason)
	refusal := wire.Refuse(wire.ServerFailed, map[string]any{"server": name, "tool": tool.SourceMetadata[registry.MetaTool], "reason": fault.Reason})
	return tools.Answer{Sent: fault.Sent, Unknown: fault.Sent && !fault.Told}, refusal.Because(err)
}

func (t *Talks) call(ctx context.Context, name string, tool registry.Tool, args json.RawMessage) (string, error) {
	server, allowed := t.servers.server(name)
	switch {
	case !allowed:
		return "", &client.Fault{Server: name, Reason: "is not in this controller's configuration"}
	case t.failures[name] >= maxFailures:
		return "", &client.Fault{Server: name, Reason: fmt.Sprintf("has failed %d times in this task, and is left alone", maxFailures)}
	}
	x := t.open[name]
	if x == nil {
		var err error
		if x, err = client.Open(ctx, server, t.servers.s.o.Version, t.log); err != nil {
			t.failures[name]++
			return "", err
		}
		t.open[name] = x
	}
	text, err := x.Call(ctx, client.Tool{Name: tool.SourceMetadata[registry.MetaTool], Sum: tool.SourceMetadata[metaSum]}, args)
	if x.Over() {
		t.failures[name]++
		delete(t.open, name)
		x.Close()
	}
	return text, err
}

// Close ends all conversations and waits for the servers' programs. A nil Talks has none.
func (t *Talks) Close() {
	if t == nil {
		return
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	var all sync.WaitGroup
	for _, x := range t.open {
		all.Go(x.Close)
	}
	all.Wait()
	clear(t.open)
}
