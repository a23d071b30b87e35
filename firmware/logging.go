package firmware

import (
	"io"
	"log/slog"
	"time"

	"phonerack/firmware/config"
	"phonerack/firmware/logbook"
)

// secret names attributes whose values never reach a log.
var secret = map[string]bool{
	"password": true, "pin": true, "secret": true, "token": true, "bearer": true, "private_key": true, "text": true, "params": true, "passphrase": true,
}

// again is how often a line is said that says nothing new.
const again = time.Hour

// Logs are where rackd's log goes.
type Logs struct {
	Logger *slog.Logger
	Level  *slog.LevelVar
	Book   *logbook.Book // the newest records
}

// NewLogs returns rackd's log: level and format from the configuration, secrets redacted by the names of attributes, lines
// that say what was said last left out. The level may be changed later. kept gets what matters, to keep it over restarts;
// nil keeps nothing.
func NewLogs(c config.Log, w io.Writer, kept *logbook.Folder) Logs {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if secret[a.Key] {
			return slog.String(a.Key, "redacted")
		}
		return a
	}}
	var shown slog.Handler = slog.NewTextHandler(w, options)
	if c.Format == "json" {
		shown = slog.NewJSONHandler(w, options)
	}
	logs := Logs{Level: level, Book: logbook.New(logbook.Bounds{})}
	all := []slog.Handler{shown, logs.Book.Handler(options)}
	if kept != nil {
		all = append(all, kept.Handler(options))
	}
	logs.Logger = slog.New(logbook.Once(slog.NewMultiHandler(all...), again))
	return logs
}
