package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"phonerack/sync/wire"
)

// Metrics count what goes through both transports, for all tenants together.
type Metrics struct {
	refused  *prometheus.CounterVec
	repeated prometheus.Counter
	unsent   prometheus.Counter
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// NewMetrics makes the figures and registers them with reg, if that is not nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const space, sub = "phonerack", "api"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name, Help: help}
	}
	m := &Metrics{
		refused:  prometheus.NewCounterVec(counter("frames_refused_total", "Frames that were not taken, by reason."), []string{"reason"}),
		repeated: prometheus.NewCounter(counter("frames_repeated_total", "Frames whose id had come before.")),
		unsent:   prometheus.NewCounter(counter("answers_unsent_total", "Answers that the broker did not take.")),
		calls:    prometheus.NewCounterVec(counter("calls_total", "Calls of racks by transport, type and answer."), []string{"transport", "type", "answer"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: space, Subsystem: sub, Name: "call_seconds", Help: "Time of calls of racks, by transport and type.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 120},
		}, []string{"transport", "type"}),
	}
	for _, reason := range []string{"malformed", "too_large", "unknown_key", "mac", "content", "retained", "expired", "early", "session", "unsupported", "internal"} {
		m.refused.WithLabelValues(reason)
	}
	if reg != nil {
		reg.MustRegister(m.refused, m.repeated, m.unsent, m.calls, m.seconds)
	}
	return m
}

// call counts one call. A type that this version does not know is "other": labels are bounded.
func (m *Metrics) call(transport string, t, answer wire.Type, took time.Duration) {
	if !t.Known() {
		t = "other"
	}
	m.calls.WithLabelValues(transport, string(t), string(answer)).Inc()
	m.seconds.WithLabelValues(transport, string(t)).Observe(took.Seconds())
}
