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
// The level may be changed later.
func NewLogger(c config.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if secret[a.Key] {
			return slog.String(a.Key, "redacted")
		}
		return a
	}}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}
