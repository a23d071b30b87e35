package firmware

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"phonerack/firmware/logbook"
	"phonerack/firmware/metrics"
	"phonerack/firmware/status"
)

// addPage adds what people and Prometheus see of the rack from elsewhere, as far as the configuration wants it.
func (r *Rack) addPage() {
	r.source = newPageSource(r)
	r.page = status.New(status.Options{
		Source: r.source, Actor: r.actions, Log: r.logOf("page"), PIN: r.config.Page.PIN, Hosts: r.pageHosts,
	})
	for _, address := range r.config.Page.Listen {
		r.watch.Add(r.tree, service{"page on " + address, func(ctx context.Context) error { return r.servePage(ctx, address) }}, stopPart)
	}
	if len(r.config.Page.Listen) > 0 {
		r.watch.Add(r.tree, service{"changes for the page", r.source.changes.Run}, stopPart)
	}
	if r.config.Metrics.Listen != "" {
		r.watch.Add(r.tree, service{"metrics", r.serveMetrics}, stopPart)
	}
}

// pageHosts are the names that the page may be asked for by.
func (r *Rack) pageHosts() []string {
	if name := r.way.host(); name != "" {
		return append([]string{name}, r.config.Page.Hosts...)
	}
	return r.config.Page.Hosts
}

// logOf is the log of a part, by the name that it has in the tree: the page shows its last line.
func (r *Rack) logOf(part string) *slog.Logger { return r.log.With(logbook.PartKey, part) }

func (r *Rack) servePage(ctx context.Context, address string) error {
	l, err := r.absent.listen(ctx, r.logOf("page on "+address), "the page", address)
	if err != nil {
		return err
	}
	r.logOf("page on "+address).Info("page", "address", "http://"+l.Addr().String()+"/", "can_sign_in", r.config.Page.PIN != "")
	if err := r.page.Serve(ctx, l); ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}

// Bounds of the connections for metrics.
const (
	maxScrapers   = 16
	scrapeHeader  = 5 * time.Second
	scrapeAnswer  = 30 * time.Second
	scraperIdle   = 2 * time.Minute
	scrapeGoodbye = time.Second
)

func (r *Rack) serveMetrics(ctx context.Context) error {
	log := r.logOf("metrics")
	l, err := r.absent.listen(ctx, log, "metrics", r.config.Metrics.Listen)
	if err != nil {
		return err
	}
	log.Info("metrics", "address", "http://"+l.Addr().String()+"/metrics", "others", r.config.Metrics.TokenFile != "")
	o := metrics.Options{Source: metricSource{r, r.source.version}, Logger: log}
	if r.config.Metrics.TokenFile != "" {
		o.Token = r.config.Metrics.Token
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics.Handler(o))
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: scrapeHeader, ReadTimeout: scrapeHeader, WriteTimeout: scrapeAnswer, IdleTimeout: scraperIdle,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(l, maxScrapers)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve metrics: %w", err)
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), scrapeGoodbye)
	defer stop()
	if err := server.Shutdown(grace); err != nil {
		server.Close()
	}
	<-ended
	return ctx.Err()
}
