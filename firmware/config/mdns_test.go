package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheNameOnTheLAN: it is the rack's, it is checked where it is used, and a page for this machine alone has none.
func TestTheNameOnTheLAN(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	const open = "[page]\nlisten = [\"127.0.0.1:8080\", \":80\", \"[fe80::1%eth0]:81\", \"192.168.1.20:82\"]\n"
	for _, c := range []struct{ name, text, want, reachable, fault string }{
		{"that of the rack", open, "bench", "[[::]:80 [fe80::1%eth0]:81 192.168.1.20:82]", ""},
		{"another", open + "[mdns]\nname = \"rack-7\"\n", "rack-7", "[[::]:80 [fe80::1%eth0]:81 192.168.1.20:82]", ""},
		{"one that is none", open + "[mdns]\nname = \"Rack 7\"\n", "", "", `mdns.name, which is rack.id if it is left out, is "Rack 7": use`},
		{"one that is too long", open + "[mdns]\nname = \"" + strings.Repeat("a", 61) + "\"\n", "", "", "use 1 to 60 of"},
		{"one that nobody is told", open + "[mdns]\nname = \"Rack 7\"\nenabled = false\n", "Rack 7", "[[::]:80 [fe80::1%eth0]:81 192.168.1.20:82]", ""},
		{"no page", "[mdns]\nname = \"Rack 7\"\n", "Rack 7", "[]", ""},
		{"a page for this machine", "[page]\nlisten = [\"127.0.0.1:80\", \"[::1]:80\"]\n[mdns]\nname = \"Rack 7\"\n", "Rack 7", "[]", ""},
	} {
		file := filepath.Join(dir, "c.toml")
		if err := os.WriteFile(file, []byte(good+c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(file)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || loaded.MDNS.Name != c.want || fmt.Sprint(loaded.Page.Reachable()) != c.reachable {
			t.Errorf("%s: %v, %+v", c.name, err, loaded)
		}
	}
}
