package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second // of a request with its arguments
	writeTimeout  = 30 * time.Second // of an answer that is no stream
	idleTimeout   = 30 * time.Second
	stopTimeout   = time.Second
	maxHeader     = 16 << 10 // bytes
	maxCalls      = 64       // at once
)

// Server runs a registry's actions for whoever connects.
type Server struct {
	registry    *action.Registry
	log         *slog.Logger
	readTimeout time.Duration
	slots       chan struct{} // one for each call that runs
	streams     sync.WaitGroup
}

// NewServer returns a server of the registry.
func NewServer(registry *action.Registry, log *slog.Logger) *Server {
	return &Server{registry: registry, log: log, readTimeout: readTimeout, slots: make(chan struct{}, maxCalls)}
}

// Keys of values in a request's context: who asks, and the context of Serve.
type (
	actorKey   struct{}
	servingKey struct{}
)

// Serve answers until ctx ends; then calls are cancelled and given a moment to answer. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+actionsPath, s.list)
	mux.HandleFunc("POST "+actionsPath+"/{name}", s.action)
	mux.HandleFunc("/", s.unknown)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: s.readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithValue(ctx, servingKey{}, ctx) },
		ConnContext: s.identify,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop(server)
	})
	err := server.Serve(l)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	server.Close()
	return err
}

func (s *Server) stop(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
	}
	done := make(chan struct{})
	go func() {
		s.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.log.Warn("calls did not end in time and were abandoned")
	}
}

func (s *Server) identify(ctx context.Context, conn net.Conn) context.Context {
	actor, err := peer(conn)
	if err != nil {
		s.log.Warn("unknown peer", "err", err)
		return ctx
	}
	return context.WithValue(ctx, actorKey{}, actor)
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, newAnswer(s.registry.Definitions(), nil))
}

// unknown answers what is none of ours in the form that all answers have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, wire.Refuse(wire.UnknownAction, map[string]any{"action": r.Method + " " + r.URL.Path}))
}

func (s *Server) action(w http.ResponseWriter, r *http.Request) {
	actor, ok := r.Context().Value(actorKey{}).(action.Actor)
	if !ok {
		s.refuse(w, wire.Refuse(wire.Unauthenticated, nil))
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.refuse(w, wire.Refuse(wire.LimitExceeded, map[string]any{"what": "calls at once", "limit": maxCalls}))
		return
	}
	definition, err := s.registry.Definition(r.PathValue("name"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	args, err := readArgs(w, r)
	if err != nil {
		s.refuse(w, err)
		return
	}
	// The bound is the request's. Left in place it would end the context of a call that takes longer.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		s.log.Debug("no read deadline", "err", err)
	}
	switch wanted := r.Header.Get("Upgrade") == upgradeName; {
	case definition.Streams == action.NoStream:
		ctx, cancel := called(r)
		defer cancel(nil)
		defer context.AfterFunc(r.Context(), func() { cancel(action.ErrCallerGone) })()
		result, err := s.registry.Call(ctx, actor, definition.Name, args, action.Pipes{})
		s.answer(w, newAnswer(result, stopping(ctx, err)))
	case !wanted:
		s.refuse(w, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the action needs an upgrade to " + upgradeName}))
	default:
		s.streams.Add(1)
		defer s.streams.Done()
		s.stream(w, r, actor, definition, args)
	}
}

// called is the context of a call: it ends when the server stops. A request's own ends too when the client is seen to be
// gone, without saying that this is why.
func called(r *http.Request) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(r.Context().Value(servingKey{}).(context.Context))
}

func readArgs(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	args, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgs))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "arguments", "size": r.ContentLength, "limit": large.Limit})
	}
	if err != nil {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the arguments did not arrive whole"})
	}
	return args, nil
}

// stopping tells a caller that rackd stopped rather than that something failed.
func stopping(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && wire.Is(err, wire.Internal) {
		return wire.Refuse(wire.ShuttingDown, nil)
	}
	return err
}

func (s *Server) refuse(w http.ResponseWriter, err error) { s.answer(w, newAnswer(nil, err)) }

func (s *Server) answer(w http.ResponseWriter, a answer) {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		s.log.Debug("no write deadline", "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if a.Error != nil {
		w.WriteHeader(status(a.Error.Code))
	}
	if err := json.NewEncoder(w).Encode(a); err != nil {
		s.log.Debug("answer not delivered", "err", err)
	}
}

// status is the refusal in the words of HTTP, for programs that read no further.
func status(code wire.Code) int {
	switch code {
	case wire.BadRequest:
		return http.StatusBadRequest
	case wire.Unauthenticated:
		return http.StatusUnauthorized
	case wire.Forbidden:
		return http.StatusForbidden
	case wire.UnknownAction, wire.SlotUnknown, wire.TaskUnknown:
		return http.StatusNotFound
	case wire.SlotBusy:
		return http.StatusConflict
	case wire.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case wire.LimitExceeded:
		return http.StatusTooManyRequests
	case wire.Internal:
		return http.StatusInternalServerError
	case wire.ShuttingDown:
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity
}
