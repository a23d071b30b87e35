package firmware_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/firmware"
	"phonerack/firmware/config"
)

// What a rack cannot start with is one sentence, and nothing that was there is changed.
func TestRackThatCannotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, b *bench)
		want  []string
	}{
		{"state folder that cannot be made", func(_ *testing.T, b *bench) {
			b.config.Rack.State = "/proc/rackd"
		}, []string{"/proc/rackd", "let rackd write to the state folder"}},
		{"state folder that is a file", func(t *testing.T, b *bench) {
			b.config.Rack.State = filepath.Join(write(t, b.config.Rack.State+"x", "", 0o600), "state")
		}, []string{"let rackd write to the state folder"}},
		{"garbage key", func(t *testing.T, b *bench) { keyFile(t, b, "garbage", 0o600) }, []string{"adbkey", "not PEM", "move this one away"}},
		{"empty key", func(t *testing.T, b *bench) { keyFile(t, b, "", 0o600) }, []string{"adbkey", "not PEM", "move this one away"}},
		{"huge key", func(t *testing.T, b *bench) { keyFile(t, b, strings.Repeat("k", 1<<20), 0o600) }, []string{"adbkey", "move this one away"}},
		{"key that others may read", func(t *testing.T, b *bench) { keyFile(t, b, "x", 0o644) }, []string{"adbkey", "chmod 600"}},
		{"second rack on the folder", func(t *testing.T, b *bench) {
			first, err := firmware.New(firmware.Options{Config: b.config, Planner: b.config.Scripted, Logger: logger(t)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- first.Run(ctx) }()
			t.Cleanup(func() { cancel(); <-ended })
		}, []string{"in use by another rackd", "stop that one"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			c.spoil(t, b)
			key := filepath.Join(b.config.Rack.State, "adbkey")
			before, _ := os.ReadFile(key)
			_, err := firmware.New(firmware.Options{Config: b.config, Planner: b.config.Scripted, Logger: logger(t)})
			if err == nil {
				t.Fatal("it starts")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if after, _ := os.ReadFile(key); string(after) != string(before) {
				t.Error("the key file was changed")
			}
		})
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func keyFile(t *testing.T, b *bench, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(b.config.Rack.State, 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.config.Rack.State, "adbkey"), text, mode)
}

// Whatever stands in the files that a person writes, the answer is where it is wrong and what to do.
func TestBadFilesOfThePerson(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const good = "[rack]\nid = \"a\"\nstate = \"s\"\nruntime = \"r\"\nboard = \"board.toml\"\n"
	const board = "name = \"b\"\n[[slot]]\nnumber = 1\npath = \"1-1\"\n"
	binary := string([]byte{0, 1, 2, 0xff, 0xfe, '\n', 0x80})
	huge := strings.Repeat("# padding\n", 300_000)
	for name, c := range map[string]struct {
		config, board, rules string
		want                 string
	}{
		"cut config":   {good[:20], board, "", "rackd.toml:"},
		"binary":       {binary, board, "", "rackd.toml:1:"},
		"huge config":  {good + huge, board, "", "is it a configuration?"},
		"cut board":    {good, board[:20], "", "board.toml:2:"},
		"binary board": {good, binary, "", "board.toml:1:"},
		"huge board":   {good, board + huge, "", "is it a board file?"},
		"cut rules":    {good, board, "name: n\ngoals: [x", "rules.yaml:"},
		"binary rules": {good, board, binary, "rules.yaml:"},
		"huge rules":   {good, board, "name: n\n" + huge, "is it a rule file?"},
		"huge pattern": {good, board, "name: n\ngoals: ['\\pL{900}']\nrules: []\n", "too large"},
		"alias bomb":   {good, board, "name: n\ngoals: [x]\nshared: [&a [1,1], &b [*a,*a], &c [*b,*b]]\nrules: *c\n", "rules.yaml:"},
	} {
		text := c.config
		if c.rules != "" {
			text += "[planner]\nrules = \"rules.yaml\"\n"
		}
		file := write(t, filepath.Join(dir, "rackd.toml"), text, 0o600)
		write(t, filepath.Join(dir, "board.toml"), c.board, 0o600)
		write(t, filepath.Join(dir, "rules.yaml"), c.rules, 0o600)
		if _, err := config.Load(file); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	write(t, filepath.Join(dir, "rackd.toml"), good+"[planner]\nrules = \".\"\n", 0o600)
	if err := os.Remove(filepath.Join(dir, "rules.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(filepath.Join(dir, "rackd.toml")); err == nil || !strings.Contains(err.Error(), "no *.yaml file") {
		t.Errorf("folder without rules: %v", err)
	}
	if _, err := config.Load(dir); err == nil {
		t.Error("a folder was read as a configuration")
	}
}
