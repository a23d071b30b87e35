package main

import (
	"io"
	"log/slog"
	"strings"
)

// secretWords are parts of the names of attributes whose value no log shows; a "token" is only so by itself, because
// models count tokens too.
var secretWords = []string{"bearer", "password", "secret", "authorization", "credential", "prompt", "apikey", "api_key"}

const redacted = "[redacted]"

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
	if key == "token" || strings.HasSuffix(key, "_token") {
		return slog.String(a.Key, redacted)
	}
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return slog.String(a.Key, redacted)
		}
	}
	if s := a.Value.String(); a.Value.Kind() == slog.KindString && (strings.Contains(s, "prb_") || strings.Contains(s, "pra_")) {
		return slog.String(a.Key, redacted)
	}
	return a
}
