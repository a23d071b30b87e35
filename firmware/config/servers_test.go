package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/agent/skill/folder"
)

// TestMCPServersAreAllowedByName: none without a table, and only what can be told apart and reached safely.
func TestMCPServersAreAllowedByName(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret-word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte("secret-word\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	load := func(servers string) (*Config, error) {
		path := filepath.Join(dir, "rackd.toml")
		text := "[rack]\nid = \"r\"\nstate = \"s\"\nruntime = \"r\"\n[usb]\nenabled = false\n[[stream]]\nslot = 1\naddress = \"unix:a\"\n" + servers
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path)
	}
	if c, err := load(""); err != nil || len(c.Skills.Allowed) != 0 {
		t.Errorf("%v, %v", c, err)
	}
	c, err := load("[[skills.server]]\nname = \"files\"\ncommand = [\"/bin/files\", \"--root\", \"$HOME; ls\"]\nenv = {B = \"2\", A = \"x=y\"}\n" +
		"[[skills.server]]\nname = \"ledger\"\nurl = \"https://ledger.example/mcp\"\ntoken_file = \"token\"\n")
	if err != nil || len(c.Skills.Allowed) != 2 {
		t.Fatalf("%v", err)
	}
	if s := c.Skills.Allowed[0]; s.Name != "files" || strings.Join(s.Command, "|") != "/bin/files|--root|$HOME; ls" || strings.Join(s.Env, " ") != "A=x=y B=2" {
		t.Errorf("%+v", s)
	}
	if s := c.Skills.Allowed[1]; s.URL != "https://ledger.example/mcp" || s.Token != "secret-word" {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		"name = \"a b\"\ncommand = [\"/x\"]": "use 1 to 40 letters",
		"name = \"a\"":                       "needs either command or url",
		"name = \"a\"\ncommand = [\"/x\"]\nurl = \"https://a.example\"":                         "needs either command or url",
		"name = \"a\"\ncommand = [\"files\"]":                                                   "write the program's whole path",
		"name = \"a\"\ncommand = [\"/x\"]\nenv = {\"A B\" = \"1\"}":                             "use letters, digits and '_'",
		"name = \"a\"\ncommand = [\"/x\"]\ntoken_file = \"token\"":                              "is for servers with a url",
		"name = \"a\"\nurl = \"http://a.example/mcp\"":                                          "only this machine is allowed",
		"name = \"a\"\nurl = \"https://u:p@a.example/mcp\"":                                     "a secret into token_file",
		"name = \"a\"\nurl = \"file:///etc/passwd\"":                                            "write it as",
		"name = \"a\"\nurl = \"https://a.example\"\nenv = {A = \"1\"}":                          "is for servers with a command",
		"name = \"a\"\nurl = \"https://a.example\"\ntoken_file = \"open\"":                      "can be read by others",
		"name = \"a\"\ncommand = [\"/x\"]\n[[skills.server]]\nname = \"a\"\ncommand = [\"/y\"]": "have the name a",
		"name = \"a\"\ncommand = [\"/x\"]\nshell = true":                                        "shell",
	} {
		if _, err := load("[[skills.server]]\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s\n%v", text, err)
		}
	}
	if _, err := load(strings.Repeat("[[skills.server]]\nname = \"a\"\ncommand = [\"/x\"]\n", maxServers+1)); err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Errorf("%v", err)
	}
}

// TestFilesAreAllThatRackdOnlyReads: a factory reset keeps these, and a token that is gone would be a fault of the configuration
// at the next start.
func TestFilesAreAllThatRackdOnlyReads(t *testing.T) {
	c := &Config{Skills: Skills{
		Servers: []MCPServer{{Name: "a", TokenFile: "/state/token"}, {Name: "b", Command: []string{"/bin/b"}}},
		Paths:   folder.Paths{Folders: []string{"/state/agent-skills"}},
	}}
	if got := strings.Join(c.Files(), " "); got != "/state/token /state/agent-skills" {
		t.Errorf("files %s", got)
	}
	c.Skills.Paths.Default = true // nobody has named it
	if got := strings.Join(c.Files(), " "); got != "/state/token" {
		t.Errorf("files %s", got)
	}
}
