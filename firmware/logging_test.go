package firmware_test

import (
	"bytes"
	"log/slog"
	"strings"
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
