package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/cloud/api"
)

func TestNoLogShowsASecret(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log := newLogger(&out, format, "info")
		log.Info("m", "bearer", "AAAA", "admin_token", "BBBB", slog.Group("g", "api_key", "CCCC"), "text", "x prb_DDDD y", "user_prompt", "EEEE", "tokens_in", 7)
		for _, secret := range []string{"AAAA", "BBBB", "CCCC", "DDDD", "EEEE"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s: %s", format, out.String())
			}
		}
		if !strings.Contains(out.String(), "7") {
			t.Errorf("figures are gone too: %s", out.String())
		}
	}
}

func TestSecretFilesAreClosedAndNeverOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := writeSecretFile(path, []byte("s3cret\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := readSecretFile(path); err != nil || got != "s3cret" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := writeSecretFile(path, []byte("other")); err == nil {
		t.Error("it was overwritten")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecretFile(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("an open file was read: %v", err)
	}
}

func TestAnAdminTokenIsKnownByItsHashAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"token", "--state", dir, "--out", file}, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("%d: %s", code, out.String())
	}
	token, err := readSecretFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := readTokenHash(filepath.Join(dir, tokenFile))
	if err != nil || hash != api.TokenHash(token) {
		t.Errorf("got %x, %v", hash, err)
	}
	if none, err := readTokenHash(filepath.Join(dir, "nothing")); err != nil || none != [32]byte{} {
		t.Errorf("got %x, %v", none, err)
	}
}

func TestWrongUseIsSaidInOneSentence(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"an admin address for everybody", []string{"serve", "--state", dir, "--admin-listen", "0.0.0.0:1"}, exitUsage, "loopback"},
		{"a password for all to see", []string{"serve", "--state", dir, "--dsn", "postgres://u:p@h/d"}, exitUsage, "--dsn-file"},
		{"a key of the configuration that nothing reads", []string{"serve", "--config", file("a.toml", "sate = '/x'")}, exitUsage, `"sate"`},
		{"a value of the configuration", []string{"serve", "--config", file("b.toml", "state = '"+dir+"'\nadmin_listen = '0.0.0.0:1'")}, exitUsage, "0.0.0.0:1"},
		{"no goal", []string{"task", "submit"}, exitUsage, "--goal"},
		{"nobody there", []string{"--admin", "http://127.0.0.1:1", "host", "list"}, exitUnreachable, "cannot be reached"},
		{"no address", []string{"--admin", "127.0.0.1", "host", "list"}, exitUsage, "--admin"},
		{"a database without its keys", []string{"serve", "--state", dir, "--dsn", "sqlite:" + file("old.db", "x")}, exitRefused, "restore it from a backup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), c.args, strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
				t.Errorf("got %d: %s", code, out.String())
			}
		})
	}
}
