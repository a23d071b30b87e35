package embedded

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// logger gives the server's warnings to slog. Notices tell of nothing but its start.
type logger struct {
	log *slog.Logger

	mu    sync.Mutex // guards fatal
	fatal string
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

func (l *logger) Warnf(format string, v ...any) {
	// The passwords in this process are random and as long as a key: to hash them would only cost time.
	if !strings.HasPrefix(format, "Plaintext passwords") {
		l.log.Warn(fmt.Sprintf(format, v...))
	}
}

// Fatalf is the server's last word when it cannot start. The process goes on.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = fmt.Sprintf(format, v...)
	l.log.Error(l.fatal)
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
