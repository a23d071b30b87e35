package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"
)

// logger gives the server's words to slog. Any client can make the server complain, so its complaints are bounded: a second
// brings linesPerSecond at most.
type logger struct {
	log      *slog.Logger
	oversize atomic.Uint64 // messages that the server has ended a connection for

	mu         sync.Mutex // guards what follows
	fatal      string
	limit      *rate.Limiter
	suppressed int
}

const linesPerSecond = 10

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, limit: rate.NewLimiter(linesPerSecond, 5*linesPerSecond)}
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

func (l *logger) Warnf(format string, v ...any) {
	// The passwords in this process are random and as long as a key: to hash them would only cost time.
	if !strings.HasPrefix(format, "Plaintext passwords") {
		l.say(slog.LevelWarn, format, v...)
	}
}

// Errorf takes what the server calls errors: most are a client's.
func (l *logger) Errorf(format string, v ...any) { l.say(slog.LevelWarn, format, v...) }

func (l *logger) say(level slog.Level, format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.Contains(text, server.ErrMaxPayload.Error()) { // it is told nowhere else
		l.oversize.Add(1)
	}
	if strings.Contains(text, "uth callout service returned an error") || strings.Contains(text, "authentication error") {
		return // the callout has told it with the reason
	}
	l.mu.Lock()
	if !l.limit.Allow() {
		l.suppressed++
		l.mu.Unlock()
		return
	}
	lost := l.suppressed
	l.suppressed = 0
	l.mu.Unlock()
	if lost > 0 {
		l.log.Log(context.Background(), level, text, "lines_left_out", lost)
		return
	}
	l.log.Log(context.Background(), level, text)
}

// Fatalf is the server's last word when it cannot start. The process goes on.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = fmt.Sprintf(format, v...)
	l.log.Error(l.fatal)
}

// dead tells whether the server has given up.
func (l *logger) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal != ""
}

// last is what the server has died of.
func (l *logger) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		return "it was not ready in time"
	}
	return l.fatal
}
