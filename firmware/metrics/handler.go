package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	scrapes       = 2 // at once
	scrapeTimeout = 5 * time.Second
	minToken      = 16 // bytes
)

// Options are what a Handler is made of.
type Options struct {
	Source Source
	// Token reads what a scrape from elsewhere must show; nil: only this machine is answered. It is called with each such
	// scrape, so that a file may be changed, and reads a file of mode 0600 (config.Secret).
	Token  func() (string, error)
	Logger *slog.Logger
}

// Handler answers a GET of /metrics, with the source's metrics and those of the process. Who is on this machine, by the
// address of the connection, is answered without token, unless a proxy on this machine says that it asks for another.
// There is a registry of its own behind each Handler.
func Handler(o Options) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newCollector(o.Source))
	show := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: scrapes, Timeout: scrapeTimeout,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "metrics can only be read", http.StatusMethodNotAllowed)
		case local(r) || o.allowed(r):
			show.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="metrics"`)
			http.Error(w, "metrics are for programs of this rack, and for others with the token of metrics.token_file", http.StatusUnauthorized)
		}
	})
}

// local tells whether the request comes from this machine and for itself.
func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() && r.Header.Get("Forwarded") == "" && r.Header.Get("X-Forwarded-For") == ""
}

// allowed compares tokens in a time that says nothing about them.
func (o Options) allowed(r *http.Request) bool {
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || o.Token == nil {
		return false
	}
	token, err := o.Token()
	if token = strings.TrimSpace(token); err == nil && len(token) < minToken {
		err = fmt.Errorf("it is shorter than %d characters", minToken)
	}
	if err != nil {
		o.Logger.Warn("the token of /metrics cannot be used", "err", err)
		return false
	}
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
