package firmware_test

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/firmware"
	"phonerack/firmware/config"
)

func TestNotifyTellsSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := firmware.Notify("READY=1"); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := firmware.Notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("systemd heard %q, %v", buf[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", path+".gone")
	if err := firmware.Notify("READY=1"); err == nil {
		t.Error("a missing socket was not reported")
	}
}

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
