package main

import (
	"io"
	"log/slog"
	"strings"
)

// secretWords name attributes whose value no log shows.
var secretWords = []string{"bearer", "password", "secret", "token", "authorization", "credential", "prompt", "apikey", "api_key"}

// newLogger logs with redaction: the last net, should a secret ever get into an attribute.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // kong lets only known ones through
	o := &slog.HandlerOptions{Level: l, ReplaceAttr: redact}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func redact(_ []string, a slog.Attr) slog.Attr {
	key := strings.ToLower(a.Key)
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return slog.String(a.Key, "[redacted]")
		}
	}
	if s := a.Value.String(); a.Value.Kind() == slog.KindString && strings.Contains(s, "prb_") {
		return slog.String(a.Key, "[redacted]")
	}
	return a
}
