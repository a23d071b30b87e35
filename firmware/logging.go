package firmware

import (
	"io"
	"log/slog"

	"phonerack/firmware/config"
)

// secret names attributes whose values never reach a log.
var secret = map[string]bool{
	"password": true, "pin": true, "secret": true, "token": true, "bearer": true, "private_key": true, "text": true, "params": true,
}

// NewLogger returns rackd's log: level and format from the configuration, secrets redacted by the names of attributes.
func NewLogger(c config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if secret[a.Key] {
			return slog.String(a.Key, "redacted")
		}
		return a
	}}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
