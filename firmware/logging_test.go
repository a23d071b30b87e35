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
		log, _ := firmware.NewLogger(config.Log{Level: slog.LevelInfo, Format: format}, &out)
		log.With("token", "hunter2").WithGroup("g").Info("hello", "text", "hunter2", "slot", 7)
		if got := out.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "redacted") || !strings.Contains(got, "7") {
			t.Errorf("%s: %s", format, got)
		}
	}
}
