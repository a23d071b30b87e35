package skills

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"phonerack/agent/mcp/client"
	"phonerack/agent/skill/registry"
)

// servers are the MCP servers that the configuration allows, with what they were
// found to have. The table of tools has the tools of those that answer, and of no
// others.
type servers struct {
	s *Skills

	mu    sync.Mutex
	tools map[string][]registry.Tool // by server; guarded by mu
	told  map[string]string          // the newest fault of each, so that it is logged once; likewise
}

// Pauses between two looks at a server that does not answer.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// watch looks at a server now and then until ctx ends: often while it does not answer.
func (v *servers) watch(ctx context.Context, server client.Server) {
	retry := firstRetry
	for {
		wait := v.s.o.Every
		if v.look(ctx, server) == nil {
			retry = firstRetry
		} else {
			wait = retry
			retry = min(2*retry, lastRetry)
		}
		if wait <= 0 {
			return
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// lookAll looks at all servers at once, and returns when that is over.
func (v *servers) lookAll(ctx context.Context) {
	var all sync.WaitGroup
	for _, server := range v.s.o.Servers {
		all.Go(func() { _ = v.look(ctx, server) })
	}
	all.Wait()
}

// look asks a server for its tools. It takes half a minute at most.
func (v *servers) look(ctx context.Context, server client.Server) error {
	l, err := v.ask(ctx, server)
	if ctx.Err() != nil {
		return ctx.Err() // which says nothing of the server
	}
	log := v.s.o.Logger.With("server", server.Name)
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	var tools []registry.Tool
	for _, t := range l.Tools {
		tools = append(tools, toolOf(&server, t))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.told[server.Name] != fault {
		v.told[server.Name] = fault
		if err != nil {
			log.Warn("an MCP server cannot be used; skills do without its tools", "reason", fault)
		}
	}
	if slices.EqualFunc(v.tools[server.Name], tools, sameTool) {
		return err
	}
	v.tools[server.Name] = tools
	var all []registry.Tool
	for _, name := range slices.Sorted(maps.Keys(v.tools)) {
		all = append(all, v.tools[name]...)
	}
	if taken := v.s.known.Replace(registry.MCP, all); taken != nil {
		log.Error("tools of MCP servers were not taken", "err", taken)
		return taken
	}
	log.Info("an MCP server's tools have changed", "tools", len(tools), "left_out", len(l.LeftOut))
	for _, out := range l.LeftOut {
		log.Warn("a tool of an MCP server cannot be offered", "tool", out.Name, "reason", out.Reason)
	}
	v.s.toolsChanged()
	return err
}

func (v *servers) ask(ctx context.Context, server client.Server) (client.Listing, error) {
	x, err := client.Open(ctx, server, v.s.o.Version, v.s.o.Logger)
	if err != nil {
		return client.Listing{}, err
	}
	defer x.Close()
	return x.Tools(ctx)
}

const (
	mcpPrefix = "mcp:"
	metaSum   = "sha256" // of all that the server says of the tool
)

// toolOf describes a tool of a server as registries know tools.
func toolOf(server *client.Server, t client.Tool) registry.Tool {
	return registry.Tool{
		Name: mcpPrefix + server.Name + "/" + t.Name, Description: t.Description, InputSchema: t.Schema, Source: registry.MCP,
		Capability: registry.Capability{ReadOnly: t.ReadOnly, Writes: !t.ReadOnly, SideEffects: !t.ReadOnly},
		SourceMetadata: map[string]string{
			registry.MetaServer: server.Name, registry.MetaTransport: string(server.Transport()), registry.MetaURL: server.URL, registry.MetaTool: t.Name, metaSum: t.Sum,
		},
	}
}

func sameTool(a, b registry.Tool) bool {
	return a.Name == b.Name && a.SourceMetadata[metaSum] == b.SourceMetadata[metaSum]
}

// server finds one that is allowed.
func (v *servers) server(name string) (client.Server, bool) {
	i := slices.IndexFunc(v.s.o.Servers, func(s client.Server) bool { return s.Name == name })
	if i < 0 {
		return client.Server{}, false
	}
	return v.s.o.Servers[i], true
}
