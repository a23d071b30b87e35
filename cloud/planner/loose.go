package planner

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// looseLimit bounds the requests outside of a task, for each rack. Racks that have been still for a minute are
// forgotten: their bucket is full again.
type looseLimit struct {
	perMinute int

	mu    sync.Mutex // guards what follows
	racks map[Caller]*rate.Limiter
	swept time.Time
}

func (l *looseLimit) allow(c Caller, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.racks == nil {
		l.racks = map[Caller]*rate.Limiter{}
	}
	if now.Sub(l.swept) > time.Minute {
		l.swept = now
		for c, r := range l.racks {
			if r.TokensAt(now) >= float64(l.perMinute) {
				delete(l.racks, c)
			}
		}
	}
	r := l.racks[c]
	if r == nil {
		r = rate.NewLimiter(rate.Limit(float64(l.perMinute)/time.Minute.Seconds()), l.perMinute)
		l.racks[c] = r
	}
	return r.AllowN(now, 1)
}
