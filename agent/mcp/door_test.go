package mcp

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// timed notes whether an answer has got a last moment.
type timed struct {
	http.ResponseWriter
	bounded bool
}

func (t *timed) SetWriteDeadline(time.Time) error {
	t.bounded = true
	return nil
}

// TestOnlyAListenerMayTakeItsTime: nobody else's answer may wait for ever for a client that does not read.
func TestOnlyAListenerMayTakeItsTime(t *testing.T) {
	d := &door{
		next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), log: slog.New(slog.DiscardHandler),
		tokens:  Tokens{all: []token{{name: "desk", hash: sha256.Sum256([]byte("secret"))}}},
		running: make(chan struct{}, 1), words: rate.NewLimiter(1, 1),
	}
	for _, c := range []struct {
		about, method, version string
		bounded                bool
	}{
		{"a listener", "subscriptions/listen", "2026-07-28", false},
		{"a call", "tools/call", "2026-07-28", true},
		{"a call of the older era", "", "2025-11-25", true},
		{"a call of the older era that says it listens", "subscriptions/listen", "2025-11-25", true},
		{"a call without a version that says it listens", "subscriptions/listen", "", true},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", nil)
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Mcp-Method", c.method)
		r.Header.Set("MCP-Protocol-Version", c.version)
		w := &timed{ResponseWriter: httptest.NewRecorder()}
		d.ServeHTTP(w, r)
		if w.bounded != c.bounded {
			t.Errorf("%s: bounded %t", c.about, w.bounded)
		}
	}
}
