package api

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
)

const (
	readyTime = 6 * time.Second
	drainTime = 15 * time.Second
)

// Options of [New].
type Options struct {
	Calls     *Calls
	Office    *enroll.Office
	Fleet     *fleet.Fleet
	Store     *store.Store
	Providers Providers
	Skills    *catalog.Catalog
	Metrics   *Metrics
	Gatherer  prometheus.Gatherer
	// Ready says what is wrong now; nil if racks can be served.
	Ready func(ctx context.Context) error
	// Backup writes a copy of the database to a path on this machine.
	Backup func(ctx context.Context, path string) error
	Token  [32]byte // SHA-256 of the admin token; zero: there is none
	Clock  func() time.Time
	Log    *slog.Logger
}

// Server serves HTTP: racks and the admin API on public listeners, the admin API without a token on local ones.
type Server struct {
	o     Options
	hosts *Hosts
	admin *Admin
}

// New makes a server.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Server{
		o:     o,
		hosts: &Hosts{calls: o.Calls, office: o.Office, store: o.Store, metrics: o.Metrics, clock: o.Clock, log: o.Log},
		admin: &Admin{office: o.Office, fleet: o.Fleet, store: o.Store, providers: o.Providers, skills: o.Skills, token: o.Token, backup: o.Backup, log: o.Log},
	}
}

// TokenHash is how an admin token is kept.
func TokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// Public serves racks, and operators with the token.
func (s *Server) Public() http.Handler { return s.handler(false) }

// Local serves operators without a token too. Its listener must be reachable from this machine alone.
func (s *Server) Local() http.Handler { return localOnly(s.handler(true)) }

func (s *Server) handler(free bool) http.Handler {
	mux := http.NewServeMux()
	s.hosts.routes(mux)
	s.admin.routes(mux, free)
	mux.HandleFunc("GET /v1/openapi.json", serveOpenAPI)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, health{OK: true}) })
	mux.HandleFunc("GET /readyz", s.ready)
	if s.o.Gatherer != nil {
		metrics := promhttp.HandlerFor(s.o.Gatherer, promhttp.HandlerOpts{})
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			if _, err := s.admin.operator(r, free); err != nil {
				s.admin.fail(w, r, err)
				return
			}
			metrics.ServeHTTP(w, r)
		})
	}
	// A page in a browser must not act through whoever looks at it.
	return http.NewCrossOriginProtection().Handler(mux)
}

// health is the answer of /healthz and /readyz. What is wrong stays in the log: it may name hosts and paths.
type health struct {
	OK bool `json:"ok"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if s.o.Ready != nil {
		if err := s.o.Ready(ctx); err != nil {
			s.o.Log.Warn("not ready", "error", err)
			writeJSON(w, http.StatusServiceUnavailable, health{})
			return
		}
	}
	writeJSON(w, http.StatusOK, health{OK: true})
}

// localOnly refuses names that lead here by a DNS trick: a local page is asked for by a local name.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "ask for localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve serves a listener until ctx ends, then lets what runs finish for a while. tlsConfig may be nil.
func Serve(ctx context.Context, l net.Listener, h http.Handler, tlsConfig *tls.Config, log *slog.Logger) error {
	srv := &http.Server{
		Handler: h, TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		if tlsConfig != nil {
			l = tls.NewListener(l, tlsConfig)
		}
		ended <- srv.Serve(l)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err := srv.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	<-ended
	return err
}

// serveOpenAPI serves the description, which is written as YAML.
func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	raw, err := openAPI()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, json.RawMessage(raw))
}
