package firmware_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"phonerack/firmware"
	"phonerack/firmware/config"
)

func TestSecretsDoNotReachTheLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		logs := firmware.NewLogs(config.Log{Level: slog.LevelInfo, Format: format}, &out, nil)
		logs.Logger.With("token", "hunter2").WithGroup("g").Info("hello", "text", "hunter2", "slot", 7)
		if got := out.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "redacted") || !strings.Contains(got, "7") {
			t.Errorf("%s: %s", format, got)
		}
		if records, _, _, _ := logs.Book.Since(0, slog.LevelInfo, 0); len(records) != 1 || strings.Contains(records[0].Line, "hunter2") {
			t.Errorf("%s: the book has %+v", format, records)
		}
	}
}

// lockedText is a log, or what a process says, that a test reads while it grows.
type lockedText struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// take gives what was written since it was called last.
func (l *lockedText) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// orders are the actions that the log tells of, with who asked.
func (l *lockedText) orders() (all []string) {
	for line := range strings.Lines(l.String()) {
		if _, act, ok := strings.Cut(line, " action="); ok && strings.Contains(line, `msg="action done"`) {
			all = append(all, strings.Join(strings.Fields(act)[:3], " "))
		}
	}
	return all
}
