package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/firmware/config"
)

func TestConfigCheckSaysOkOrEveryFault(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.toml")
	if err := os.WriteFile(bad, []byte("[rack]\nid = \"A\"\n[log]\nformat = \"xml\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           []string
		stdout, stderr string // a part of it
		code           int
	}{
		{[]string{"config", "check", "../../firmware/config/testdata/example.toml"}, "ok\n", "", 0},
		{[]string{"config", "check", bad}, "", bad + ":2:1: rack.id is \"A\"", 1},
		{[]string{"config", "check", bad}, "", bad + ":4:1: log.format", 1},
		{[]string{"config", "check", filepath.Join(dir, "none.toml")}, "", "none.toml does not exist; correct the path, or begin one with rackd config example", 2},
		{[]string{"config", "example"}, config.Example(), "", 0},
		{[]string{"run", "--config", bad}, "", "rack.id", 1},
		{[]string{"run"}, "", "missing flags: --config=FILE", 2},
		{[]string{"render-document"}, "", "rackd starts this for each document, nobody else does", 1},
		{[]string{"fly"}, "", "unexpected argument fly", 2},
	} {
		var stdout, stderr bytes.Buffer
		code := run(c.args, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("rackd %v: %d %q %q", c.args, code, &stdout, &stderr)
		}
	}
}
