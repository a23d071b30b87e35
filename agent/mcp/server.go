package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"phonerack/sync/wire"
)

// Bounds of what callers may do.
const (
	callsPerSecond = 20 // of one caller, in the long run
	callsAtOnce    = 60 // and in a burst
	maxListeners   = 16 // streams of change notices at once
	listTTL        = 5 * time.Minute
)

// Options rule a Server.
type Options struct {
	Version string       // of this rack's programs, for clients to show
	Devices Devices      // nil: no tools of phones
	Logger  *slog.Logger // must be set
}

// A Server answers MCP clients. It is safe for concurrent use.
type Server struct {
	devices Devices
	log     *slog.Logger
	sdk     *mcp.Server
	life    context.Context // ends with Close, and every call with it
	end     context.CancelFunc
	listens chan struct{} // one for each stream of change notices

	mu       sync.Mutex
	skills   Skills                   // guarded by mu, as is what follows; nil: no tools of skills
	limiters map[string]*rate.Limiter // by the caller's name
}

// New returns a server that offers the tools of phones. [Server.SetSkills] adds
// those of skills. Close it when nobody serves it any more.
func New(o Options) *Server {
	s := &Server{
		devices: o.Devices, log: o.Logger, listens: make(chan struct{}, maxListeners), limiters: map[string]*rate.Limiter{},
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "phonerack", Title: "phonerack", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(quiet{o.Logger.Handler()}),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.TTLMs, c.CacheScope = int(listTTL.Milliseconds()), "private"
		},
	})
	s.sdk.AddReceivingMiddleware(s.guarded, s.honest, s.bounded)
	if s.devices != nil {
		s.add(s.deviceTools()...)
	}
	return s
}

// Close ends every call. It does not wait for them.
func (s *Server) Close() { s.end() }

// SetSkills adds the tools of skills, or removes them if there are none. Clients
// that listen are told when that changes the list of tools.
func (s *Server) SetSkills(skills Skills) {
	s.mu.Lock()
	had := s.skills != nil
	s.skills = skills
	s.mu.Unlock()
	switch tools := s.skillTools(); {
	case had == (skills != nil):
	case had:
		var names []string
		for _, t := range tools {
			names = append(names, t.name)
		}
		s.sdk.RemoveTools(names...)
	default:
		s.add(tools...)
	}
}

func (s *Server) skillsNow() Skills {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skills
}

// methods are what this server answers. The library knows more, and would answer
// prompts/list and the like although nobody has declared prompts.
var methods = []string{
	"initialize", "notifications/initialized", "ping",
	"server/discover", "subscriptions/listen",
	"tools/list", "tools/call",
	"notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// honest refuses what the server has not declared.
func (s *Server) honest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !slices.Contains(methods, method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%q is not supported: this server has tools only", method)}
		}
		result, err := next(ctx, method, req)
		// Over HTTP the older era has no stream that notices could come on.
		if r, ok := result.(*mcp.InitializeResult); ok && req.GetExtra() != nil && req.GetExtra().Header != nil && r.Capabilities.Tools != nil {
			r.Capabilities.Tools.ListChanged = false
		}
		return result, err
	}
}

// bounded refuses callers that ask too much, and ends a call with the server.
func (s *Server) bounded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "subscriptions/listen":
			select {
			case s.listens <- struct{}{}:
				defer func() { <-s.listens }()
			default:
				return nil, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("%d clients listen already: end one of them", maxListeners)}
			}
		case "tools/call":
			if !s.limiter(callerOf(ctx).Name).Allow() {
				refusal := wire.Refuse(wire.LimitExceeded, map[string]any{"what": "tool calls a second", "limit": callsPerSecond}).After(time.Second)
				return failed(refusal), nil
			}
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		return next(ctx, method, req)
	}
}

// codeBusy is outside of the range that JSON-RPC and MCP keep for themselves.
const codeBusy = 1

func (s *Server) limiter(caller string) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limiters[caller]
	if l == nil {
		l = rate.NewLimiter(callsPerSecond, callsAtOnce)
		s.limiters[caller] = l
	}
	return l
}

// guarded makes a panic one call's failure and nobody else's: the library would
// let it end the process.
func (s *Server) guarded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("a call of MCP panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: wire.Refuse(wire.Internal, nil).Error()}
			}
		}()
		return next(ctx, method, req)
	}
}

// quiet keeps the library's chat about each session and each mistake of a client
// out of the rack's log, unless that logs everything.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
