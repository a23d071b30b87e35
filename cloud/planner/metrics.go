package planner

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the proxy's figures, for all tenants together: a label for each rack or task would have no bound.
type Metrics struct {
	requests *prometheus.CounterVec
	answered prometheus.Counter
	latency  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	inFlight prometheus.Gauge
	panics   prometheus.Counter
	pruned   *prometheus.CounterVec
	left     prometheus.Gauge
}

// NewMetrics makes the figures and registers them with reg, if that is not nil. It panics if they are registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const space, sub = "phonerack", "planner"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: name, Help: help})
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(counter("requests_total", "Requests by outcome: decision, or the code of the refusal."), []string{"code"}),
		answered: prometheus.NewCounter(counter("answered_total", "Requests that were answered from the store.")),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: space, Subsystem: sub, Name: "provider_seconds", Help: "Time of provider calls, retries included.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300},
		}, []string{"provider", "outcome"}),
		tokens:   prometheus.NewCounterVec(counter("tokens_total", "Tokens as providers count them, by direction: in, out."), []string{"direction"}),
		inFlight: gauge("in_flight", "Requests that are worked on."),
		panics:   prometheus.NewCounter(counter("panics_total", "Panics that were contained.")),
		pruned:   prometheus.NewCounterVec(counter("pruned_total", "Rows that retention removed, by kind."), []string{"kind"}),
		left:     gauge("retention_left", "Decisions that were due and still there after the last run of retention, counted up to 100000."),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.answered, m.latency, m.tokens, m.inFlight, m.panics, m.pruned, m.left)
	}
	return m
}
