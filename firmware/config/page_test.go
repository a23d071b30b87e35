package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageAndMetrics: what is served where, and who may see it.
func TestPageAndMetrics(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("rules.yaml", rules, 0o644)
	write("pin", " 482913 \n", 0o600)
	write("short", "4829\n", 0o600)
	write("words", "482913 kim\n", 0o600)
	write("open", "482913\n", 0o644)
	write("token", strings.Repeat("a", 16)+"\n", 0o600)
	for _, c := range []struct{ name, text, want string }{ // want is a part of the fault; "" for none
		{"neither", "", ""},
		{"both", "[page]\nlisten = [\":80\", \"192.168.1.20:8080\", \"[fe80::1%eth0]:80\"]\npin_file = \"pin\"\nhosts = [\"rack7.lan\", \"192.0.2.1\", \"rack7\"]\n[metrics]\nlisten = \":9477\"\ntoken_file = \"token\"\n", ""},
		{"metrics for this machine", "[metrics]\nlisten = \"127.0.0.1:9477\"\n", ""},
		{"a name to listen on", "[page]\nlisten = [\"rack7:80\"]\n", `c.toml:16:1: page.listen has "rack7:80": write an address of this machine`},
		{"no port", "[page]\nlisten = [\"127.0.0.1\"]\n", `page.listen has "127.0.0.1": write an address`},
		{"port 0", "[page]\nlisten = [\":0\"]\n", `page.listen has ":0": the port must be from 1 to 65535`},
		{"an address twice", "[page]\nlisten = [\":80\", \":80\"]\n", `page.listen has ":80" twice`},
		{"a PIN without a page", "[page]\npin_file = \"pin\"\n", "page.pin_file is there, but page.listen is missing"},
		{"a PIN that is open", "[page]\nlisten = [\":80\"]\npin_file = \"open\"\n", "can be read by others: make it private with chmod 600"},
		{"a short PIN", "[page]\nlisten = [\":80\"]\npin_file = \"short\"\n", "is no PIN: write 6 to 64 printable ASCII characters"},
		{"a PIN of words", "[page]\nlisten = [\":80\"]\npin_file = \"words\"\n", "is no PIN"},
		{"no PIN file", "[page]\nlisten = [\":80\"]\npin_file = \"none\"\n", "does not exist: write it with mode 0600, or correct the path"},
		{"a host with a port", "[page]\nlisten = [\":80\"]\nhosts = [\"rack7:80\"]\n", `page.hosts has "rack7:80"`},
		{"metrics for everybody", "[metrics]\nlisten = \":9477\"\n", "metrics.token_file is missing"},
		{"a short token", "[metrics]\nlisten = \":9477\"\ntoken_file = \"short\"\n", "has fewer than 16 characters"},
		{"a token without metrics", "[metrics]\ntoken_file = \"token\"\n", "metrics.token_file is there, but metrics.listen is missing"},
	} {
		file := write("c.toml", good+c.text, 0o644)
		loaded, err := Load(file)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if loaded.Page.PINFile != "" && loaded.Page.PIN != "482913" {
				t.Errorf("%s: the PIN is %q", c.name, loaded.Page.PIN)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "4829") {
			t.Errorf("%s: the fault tells the PIN: %v", c.name, err)
		}
	}
}

func TestARedactedConfigurationHasEachKeyAndNoSecret(t *testing.T) {
	c := defaults()
	c.Rack.ID, c.Page.PINFile, c.Page.PIN = "bench", "/etc/rackd/page.pin", "482913"
	c.Cloud.Proxy = "http://kim:hunter2@proxy.example:3128"
	c.Planner.Direct.Options = map[string]any{"secret_option": "sk-option"}
	c.Skills.Servers = []MCPServer{{Name: "files", Command: []string{"/usr/bin/files", "--password=sk-argument"}, Env: map[string]string{"WORD": "sk-environment"}}}
	c.Streams = []Stream{{Slot: 3, Address: "unix:/tmp/3"}}
	text := string(c.Redacted())
	for _, secret := range []string{"482913", "hunter2", "sk-option", "sk-argument", "sk-environment", "kim"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in it", secret)
		}
	}
	for _, line := range []string{
		`rack.id = "bench"`, `page.pin_file = "/etc/rackd/page.pin"`, `cloud.proxy = "http://…@proxy.example:3128"`, `usb.enabled = true`, `health.probe.interval = "30s"`,
		`planner.direct.options = ["secret_option"]`, `skills.server[0] = "files: files with 1 arguments, environment [WORD]"`, `stream[0] = "slot 3 at unix:/tmp/3"`,
		`log.level = "INFO"`, `page.listen = []`, `health.battery.low = 30`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
