package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// Path is where the server answers over HTTP.
const Path = "/mcp"

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second // of a request with its body
	answerTime    = 5 * time.Minute  // of a request, with the longest tool and a slow reader
	idleTimeout   = time.Minute
	stopTimeout   = time.Second
	maxHeader     = 16 << 10  // bytes
	maxMessage    = 256 << 10 // bytes of a message from a client, at every door
	maxRequests   = 64        // at once
)

// Serve answers over HTTP until ctx ends, and closes the listener, which must be
// of a loopback address. Callers show one of the tokens.
func (s *Server) Serve(ctx context.Context, l net.Listener, tokens Tokens) error {
	server := &http.Server{
		Handler: s.handler(tokens), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		inTime, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if server.Shutdown(inTime) != nil {
			server.Close()
		}
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

// handler checks who asks from where, and hands over to the protocol. Each request
// stands alone, so that clients that come and go leave nothing behind.
func (s *Server) handler(tokens Tokens) http.Handler {
	protocol := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true,
		Logger: slog.New(quiet{s.log.Handler()}),
	})
	mux := http.NewServeMux()
	mux.Handle(Path, protocol)
	return &door{next: mux, tokens: tokens, log: s.log, running: make(chan struct{}, maxRequests), words: rate.NewLimiter(rate.Every(10*time.Second), 5)}
}

// door lets in who has a token and comes from this machine, not from a page that a
// browser on it has open.
type door struct {
	next    http.Handler
	tokens  Tokens
	log     *slog.Logger
	running chan struct{}
	words   *rate.Limiter // of what is logged about those who are turned away
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if reason := foreign(r); reason != "" {
		d.refuse(w, r, http.StatusForbidden, reason)
		return
	}
	name, ok := d.tokens.owner(r.Header.Get("Authorization"))
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer realm="phonerack"`)
		d.refuse(w, r, http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN")
		return
	}
	select {
	case d.running <- struct{}{}:
		defer func() { <-d.running }()
	default:
		w.Header().Set("Retry-After", "1")
		d.refuse(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d requests run already: wait and try again", maxRequests))
		return
	}
	if !listens(r) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
			d.log.Debug("no write deadline", "err", err)
		}
	}
	d.next.ServeHTTP(w, r.WithContext(withCaller(r.Context(), Caller{Name: name, Via: ViaHTTP})))
}

// firstListenable is the first version of the protocol that has subscriptions/listen and holds the header to the message.
const firstListenable = "2026-07-28"

// listens tells whether a request lasts as long as its client wants. In older versions of the protocol nobody compares the
// header with the message, so that any call could be said to be such a one.
func listens(r *http.Request) bool {
	return r.Header.Get("Mcp-Method") == "subscriptions/listen" && r.Header.Get("MCP-Protocol-Version") >= firstListenable
}

func (d *door) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	if d.words.Allow() {
		d.log.Warn("MCP client turned away", "status", status, "reason", reason, "from", r.RemoteAddr)
	}
	http.Error(w, reason, status)
}

// foreign says why a request is not one of a program on this machine; "" if it is.
// A page of another site that a browser shows can send requests here: it betrays
// itself by its Origin, or, if its name was made to point here, by its Host.
func foreign(r *http.Request) string {
	if !loopback(r.Host) {
		return fmt.Sprintf("the Host %.100q is not this machine: use 127.0.0.1 or localhost", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host != r.Host {
			return fmt.Sprintf("the Origin %.100q is another site: pages may not use this server", origin)
		}
	}
	return ""
}

// loopback tells whether a Host, with or without a port, names this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.EqualFold(host, "localhost") || host == "127.0.0.1" || host == "::1"
}
