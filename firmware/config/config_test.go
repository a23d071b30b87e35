package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/runner"
	"phonerack/hal/board"
)

func TestExampleIsValid(t *testing.T) {
	c, err := Load("testdata/example.toml")
	if err != nil {
		t.Fatal(err)
	}
	folder, _ := filepath.Abs("testdata")
	if c.Rack.Board != filepath.Join(folder, "board.toml") || len(c.Board.Slots) != 2 {
		t.Errorf("board %s: %+v", c.Rack.Board, c.Board)
	}
	if c.Control.Socket != "/run/rackd/rackd.sock" || time.Duration(c.Control.MaxHold) != 15*time.Minute {
		t.Errorf("control %+v", c.Control)
	}
	if c.Planner.Pictures != runner.PicturesNeeded {
		t.Errorf("pictures %q", c.Planner.Pictures)
	}
	if Example() == "" {
		t.Error("no example")
	}
}

func TestPathsCountFromTheFile(t *testing.T) {
	c, err := Load("testdata/streams.toml")
	if err != nil {
		t.Fatal(err)
	}
	folder, _ := filepath.Abs("testdata")
	if c.Rack.State != filepath.Join(folder, "state") || c.Control.Socket != filepath.Join(folder, "run/rackd.sock") {
		t.Errorf("state %s, socket %s", c.Rack.State, c.Control.Socket)
	}
	network, address := c.Streams[0].Network()
	if network != "unix" || address != filepath.Join(folder, "phones/1.sock") {
		t.Errorf("stream %s %s", network, address)
	}
	if network, address = c.Streams[1].Network(); network != "tcp" || address != "127.0.0.1:7002" {
		t.Errorf("stream %s %s", network, address)
	}
}

const rules = "name: shop\ngoals: ['.*']\nrules:\n  - name: back\n    do: {press_key: {key: back}}\n"

const good = `[rack]
id = "bench"
state = "state"
runtime = "run"

[planner]
rules = "rules.yaml"

[usb]
enabled = false

[[stream]]
slot = 1
address = "unix:1.sock"
`

func TestFaultsSayWhereWhatAndWhatToDo(t *testing.T) {
	cases := []struct{ name, old, new, want string }{
		{"unknown key", `id = "bench"`, "id = \"bench\"\nname = \"x\"", `c.toml:3:1: unknown key "rack.name": remove it or correct its spelling`},
		{"unknown table", "[usb]", "[gpio]\nx = 1\n[usb]", `c.toml:9:2: unknown key "gpio": remove it or correct its spelling`},
		{"syntax", "[usb]", "[usb", `c.toml:9:5: expected ']' to close table name: correct the TOML here`},
		{"MCP without a token", "[usb]", "[mcp]\nlisten = \"127.0.0.1:8472\"\n[usb]", `c.toml:10:1: mcp.listen is there, but mcp.token_file is missing: name a file of mode 0600 with a token, or leave both out`},
		{"MCP without an address", "[usb]", "[mcp]\ntoken_file = \"rules.yaml\"\n[usb]", `c.toml:10:1: mcp.token_file is there, but mcp.listen is missing: write it as "127.0.0.1:8472", or leave both out`},
		{"MCP for everybody", "[usb]", "[mcp]\nlisten = \"0.0.0.0:8472\"\ntoken_file = \"none\"\n[usb]", `c.toml:10:1: mcp.listen is "0.0.0.0:8472": write a loopback address and a port, such as "127.0.0.1:8472"; for other machines use ssh -L`},
		{"MCP that may install", "[usb]", "[mcp]\npermissions = [\"install\"]\n[usb]", `c.toml:10:1: mcp.permissions has "install": choose from stop, clipboard, files`},
		{"wrong type", "enabled = false", `enabled = "no"`, `c.toml:10:11: usb.enabled has a wrong value: give it true or false`},
		{"slot as text", "slot = 1", `slot = "1"`, `c.toml:13:8: stream.slot has a wrong value: give it a number from 1 to 999`},
		{"no id", `id = "bench"`, "", `c.toml:1:2: rack.id is missing: give this rack a name, such as id = "rack-1"`},
		{"mode of Agent Skills", "[usb]", "[skills]\nagent_skills_mode = \"lax\"\n[usb]", `c.toml:10:1: skills.agent_skills_mode is "lax": write "lenient" or "strict"`},
		{"conflicts of Agent Skills", "[usb]", "[skills]\nagent_skills_conflicts = \"ask\"\n[usb]", `c.toml:10:1: skills.agent_skills_conflicts is "ask": write "skip", "error" or "replace"`},
		{"interval", "[usb]", "[skills]\npoll_interval = \"1s\"\n[usb]", `c.toml:10:1: skills.poll_interval is 1s: write 10s to 24h0m0s`},
		{"platform without address", "[usb]", "[skills.platform]\nsince = true\n[usb]", `c.toml:9:2: skills.platform.url is missing: write the platform's address, or leave the table out`},
		{"MCP server with a query", "[usb]", "[[skills.server]]\nname = \"files\"\nurl = \"https://s.example/mcp?key=sk-1\"\n[usb]", `c.toml:11:1: the MCP server files has a url with a query, which would be in logs and in what planners read: write it as "https://host/path", and a secret into token_file`},
		{"threshold that does harm", "[usb]", "[health.ladder]\noff_time = \"500ms\"\n[usb]", `c.toml:10:1: health.ladder.off_time: 500ms is out of range: write 2s to 5m0s`},
		{"watchdog that is too quick", "[usb]", "[watchdog]\ntimeout = \"1s\"\n[usb]", `c.toml:10:1: watchdog.timeout is 1s: write 5s to 10m0s`},
		{"platform over plain HTTP", "[usb]", "[skills.platform]\nurl = \"http://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:10:1: skills.platform.url is "http://s.example/v1": plain http would show the credential to everybody on the way; write it as https://host/path`},
		{"platform with a user", "[usb]", "[skills.platform]\nurl = \"https://u:p@s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:10:1: skills.platform.url is "…@s.example/v1": write it as https://host/path, without user and query`},
		{"platform that is a file", "[usb]", "[skills.platform]\nurl = \"file:/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:10:1: skills.platform.url is "file:/v1": write it as`},
		{"platform without credential", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:10:1: skills.platform.url is there, but skills.platform.credential_file is missing: name a file of mode 0600`},
		{"credential for all to read", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"rules.yaml\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:11:1: skills.platform.credential_file: DIR/rules.yaml can be read by others: make it private with chmod 600`},
		{"credential with lines", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"lines\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:11:1: skills.platform.credential_file: DIR/lines is no credential: write it as one line of printable ASCII without blanks`},
		{"platform without keys", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\n[usb]", `c.toml:9:2: skills.platform.keys are not the keys that sign manifests: write each as "id:base64"`},
		{"platform with a short key", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[usb]", `c.toml:12:1: skills.platform.keys are not the keys that sign manifests`},
		{"authority that is none", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\nca_file = \"rules.yaml\"\n[usb]", `c.toml:13:1: skills.platform.ca_file is DIR/rules.yaml, which holds no certificate: name the PEM file`},
		{"authority absent", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\nca_file = \"none.pem\"\n[usb]", `c.toml:13:1: skills.platform.ca_file: open DIR/none.pem: no such file or directory`},
		{"rack of the platform", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\nrack = \"Rack 1\"\n[usb]", `c.toml:13:1: skills.platform.rack is "Rack 1": use 1 to 63`},
		{"subscription of the platform", "[usb]", "[skills.platform]\nurl = \"https://s.example/v1\"\ncredential_file = \"private\"\nkeys = \"k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\nsubscription = \"a b\"\n[usb]", `c.toml:13:1: skills.platform.subscription is "a b": use 1 to 63`},
		{"bad id", `"bench"`, `"Bench 1"`, `c.toml:2:1: rack.id is "Bench 1": use 1 to 63 of the characters a-z, 0-9 and -`},
		{"root as state", `"state"`, `"/"`, `c.toml:3:1: rack.state is "/": name a folder of its own, rackd writes into it`},
		{"file as state", `"state"`, `"rules.yaml"`, `c.toml:3:1: rack.state is DIR/rules.yaml, which is no folder: name a folder, rackd makes it if it is missing`},
		{"same folders", `"run"`, `"state"`, `c.toml:4:1: rack.runtime is the same folder as rack.state: use two, because the runtime folder is lost at a restart`},
		{"no board", "enabled = false", "enabled = true", "c.toml:1:2: rack.board is missing: name the board file that says which USB port is which slot, or set usb.enabled = false"},
		{"no slot at all", "[[stream]]\nslot = 1\naddress = \"unix:1.sock\"\n", "", "c.toml:10:1: usb.enabled is false and there is no [[stream]]: the rack has no slot; enable USB or add a stream"},
		{"transport", `rules = "rules.yaml"`, `transport = "telepathy"`, `c.toml:7:1: planner.transport is "telepathy": write "script", "cloud" or "direct"`},
		{"cloud without identity", `rules = "rules.yaml"`, `transport = "cloud"`, `c.toml:7:1: planner.transport is "cloud", but cloud.identity is missing: name the identity that rackcloud host add gave`},
		{"broker without identity", "[usb]", "[cloud]\nbroker = \"tcp://127.0.0.1:1883\"\n[usb]", `c.toml:10:1: cloud.broker is there, but cloud.identity is missing: name the identity that rackcloud host add gave`},
		{"identity absent", "[usb]", "[cloud]\nidentity = \"none.json\"\n[usb]", `c.toml:10:1: cloud.identity is DIR/none.json, which does not exist: put the file there that rackcloud host add wrote, or correct the path`},
		{"identity for all to read", "[usb]", "[cloud]\nidentity = \"c.toml\"\n[usb]", `c.toml:10:1: cloud.identity: c.toml can be read by others: make it private with chmod 600: use the file`},
		{"identity is none", "[usb]", "[cloud]\nidentity = \"private\"\n[usb]", `c.toml:10:1: cloud.identity: version 0 of the bundle is not known: use the file`},
		{"identity is empty", "[usb]", "[cloud]\nidentity = \"empty\"\n[usb]", `c.toml:10:1: cloud.identity: DIR/empty is empty: use the file`},
		{"identity is a folder", "[usb]", "[cloud]\nidentity = \".\"\n[usb]", `c.toml:10:1: cloud.identity: DIR is no file: use the file`},
		{"direct without model", `rules = "rules.yaml"`, "transport = \"direct\"\n[planner.direct]\nprovider = \"anthropic\"", `c.toml:8:2: planner.direct: provider and model are needed`},
		{"direct, unknown provider", `rules = "rules.yaml"`, "transport = \"direct\"\n[planner.direct]\nprovider = \"oracle\"\nmodel = \"m\"", `c.toml:8:2: planner.direct: `},
		{"direct, bad option", `rules = "rules.yaml"`, "transport = \"direct\"\n[planner.direct]\nprovider = \"anthropic\"\nmodel = \"m\"\noptions = {max_token = 1}", `c.toml:8:2: planner.direct: options: `},
		{"direct, key for all to read", `rules = "rules.yaml"`, "transport = \"direct\"\n[planner.direct]\nprovider = \"anthropic\"\nmodel = \"m\"\nkey_file = \"rules.yaml\"", `c.toml:11:1: planner.direct.key_file: DIR/rules.yaml can be read by others: make it private with chmod 600`},
		{"pictures", `rules = "rules.yaml"`, `pictures = "never"`, `c.toml:7:1: planner.pictures is "never": write "needed", "always" or "marked"`},
		{"bad rules", `"rules.yaml"`, `"bad-rules.yaml"`, "DIR/bad-rules.yaml:1:1: "},
		{"a text in place of a list", "[usb]", "[page]\nlisten = \":80\"\n[usb]", `c.toml:10:10: page.listen has a wrong value: give it a list of texts such as ["one", "two"]`},
		{"a number in place of a text", "[usb]", "[page]\npin_file = 482913\n[usb]", "c.toml:10:12: page.pin_file has a wrong value: give it a text between quotes"},
		{"a table in place of tables", "[usb]", "[mcp]\nenabled = \"yes\"\n[usb]", "c.toml:10:11: mcp.enabled has a wrong value: give it true or false"},
		{"a length that is none, deep down", "[usb]", "[health.probe]\ninterval = \"30\"\n[usb]", `c.toml:10:12: health.probe.interval has a wrong value: give it a duration such as "90s", "15m" or "1h30m"`},
		{"a fraction in place of a number", "[usb]", "[health.ladder.reopen]\ntries = 1.5\n[usb]", "c.toml:10:9: health.ladder.reopen.tries has a wrong value: give it a whole number"},
		{"rules absent", `"rules.yaml"`, `"none.yaml"`, "c.toml:7:1: planner.rules is DIR/none.yaml, which cannot be read (no such file or directory): correct the path"},
		{"slot zero", "slot = 1", "slot = 0", "c.toml:13:1: the stream has slot 0: give it a number from 1 to 999"},
		{"same slot", "[[stream]]", "[[stream]]\nslot = 1\naddress = \"unix:2.sock\"\n[[stream]]", "c.toml:16:1: slot 1 is given to two streams: a slot holds one phone"},
		{"address", `"unix:1.sock"`, `"usb:1"`, `c.toml:14:1: the stream of slot 1 has the address "usb:1": write "unix:/path/to/socket" or "tcp:127.0.0.1:port"`},
		{"far address", `"unix:1.sock"`, `"tcp:10.0.0.1:5555"`, `c.toml:14:1: the stream of slot 1 has the address "tcp:10.0.0.1:5555": only loopback addresses are allowed; write "unix:/path/to/socket" or "tcp:127.0.0.1:port"`},
		{"port", `"unix:1.sock"`, `"tcp:127.0.0.1:70000"`, `c.toml:14:1: the stream of slot 1 has the address "tcp:127.0.0.1:70000": the port must be from 1 to 65535`},
		{"level", "[usb]", "[log]\nlevel = \"loud\"\n[usb]", `c.toml:10:9: log.level has a wrong value: give it one of "debug", "info", "warn" and "error"`},
		{"format", "[usb]", "[log]\nformat = \"xml\"\n[usb]", `c.toml:10:1: log.format is "xml": write "text" or "json"`},
		{"socket outside", "[usb]", "[control]\nsocket = \"/tmp/s\"\n[usb]", "c.toml:10:1: control.socket is /tmp/s, outside of rack.runtime DIR/run: rackd writes nowhere else"},
		{"group", "[usb]", "[control]\ngroup = \"no-such-group\"\n[usb]", `c.toml:10:1: control.group is "no-such-group", which is no group on this machine: create it, or leave the key out`},
		{"hold", "[usb]", "[control]\nmax_hold = \"fortnight\"\n[usb]", `c.toml:10:12: control.max_hold has a wrong value: give it a duration such as "90s", "15m" or "1h30m"`},
		{"long hold", "[usb]", "[control]\nmax_hold = \"25h\"\n[usb]", "c.toml:10:1: control.max_hold is 25h0m0s: choose from 1s to 24h0m0s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(good, c.old) {
				t.Fatalf("the text has no %q", c.old)
			}
			_, dir, err := load(t, strings.Replace(good, c.old, c.new, 1))
			if err == nil {
				t.Fatal("no fault")
			}
			got := strings.ReplaceAll(err.Error(), dir+"/c.toml", "c.toml")
			if got = strings.ReplaceAll(got, dir, "DIR"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func load(t *testing.T, text string) (c *Config, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("rules.yaml", rules)
	write("bad-rules.yaml", "colour: red\n")
	write("board.toml", "name = \"b\"\n[[slot]]\nnumber = 1\npath = \"1-1\"\n")
	write("bad-board.toml", "name = \"b\"\n[[slot]]\nnumber = 0\npath = \"1-1\"\n")
	write("c.toml", text)
	for name, text := range map[string]string{"private": `{"v":0}`, "empty": "", "lines": "one\ntwo\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err = Load(filepath.Join(dir, "c.toml"))
	return c, dir, err
}

func TestAllFaultsComeAtOnce(t *testing.T) {
	_, _, err := load(t, "[rack]\nid = \"A\"\nboard = \"bad-board.toml\"\n[[stream]]\nslot = 0\naddress = \"x\"\n")
	for _, want := range []string{"rack.id", "bad-board.toml:3:1: slot number 0", "the stream has slot 0", `the address "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestStreamMayNotTakeASlotOfTheBoard(t *testing.T) {
	_, _, err := load(t, "[rack]\nid = \"a\"\nboard = \"board.toml\"\n[planner]\nrules = \"rules.yaml\"\n[[stream]]\nslot = 1\naddress = \"unix:x\"\n")
	if err == nil || !strings.Contains(err.Error(), "c.toml:7:1: slot 1 is USB port 1-1 on the board file: give the stream another number") {
		t.Error(err)
	}
	_, _, err = load(t, "[rack]\nid = \"a\"\nboard = \"none.toml\"\n[planner]\nrules = \"rules.yaml\"\n")
	if err == nil || !strings.Contains(err.Error(), "none.toml, which does not exist: correct the path") {
		t.Error(err)
	}
}

func TestPicturesOfThePlannerAreChosen(t *testing.T) {
	for text, want := range map[string]runner.Pictures{
		"":                    runner.PicturesNeeded,
		`pictures = "needed"`: runner.PicturesNeeded,
		`pictures = "always"`: runner.PicturesAlways,
		`pictures = "marked"`: runner.PicturesMarked,
	} {
		c, _, err := load(t, strings.Replace(good, `rules = "rules.yaml"`, text, 1))
		if err != nil || c.Planner.Pictures != want {
			t.Errorf("%s: %v, %+v", text, err, c)
		}
	}
}

// TestAFileOfAnEditorOfWindows has a byte order mark, or is no UTF-8 at all.
func TestAFileOfAnEditorOfWindows(t *testing.T) {
	for text, want := range map[string]string{
		"\ufeff[rack]\r\nname = 1\r\n": `c.toml:2:1: unknown key "rack.name"`,
		"\xff\xfe[\x00":                "the file is in UTF-16: save it as UTF-8",
	} {
		path := filepath.Join(t.TempDir(), "c.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestUnreadableFileIsSaid(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestMCPTokensAreASecretFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("rules.yaml", rules, 0o644)
	token := strings.Repeat("k", 40)
	file := write("c.toml", good+"[mcp]\nlisten = \"127.0.0.1:8472\"\ntoken_file = \"mcp.token\"\n", 0o644)
	for _, c := range []struct {
		text string
		mode fs.FileMode
		want string
	}{
		{"desk " + token, 0o600, ""},
		{"desk " + token, 0o640, "mcp.token_file: " + filepath.Join(dir, "mcp.token") + " can be read by others: make it private with chmod 600"},
		{"short", 0o600, "mcp.token_file: line 1 has a token of 5 characters: use 32 to 512 random ones"},
		{"", 0o600, "mcp.token_file: " + filepath.Join(dir, "mcp.token") + " is empty"},
	} {
		write("mcp.token", c.text, c.mode)
		loaded, err := Load(file)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)):
			t.Errorf("%q with mode %o: %v", c.text, c.mode, err)
		case err == nil && (!loaded.MCP.Enabled || loaded.MCP.TokenFile != filepath.Join(dir, "mcp.token")):
			t.Errorf("%+v", loaded.MCP)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(good)
	f.Add("[[stream]]\n[stream.slot]\n")
	f.Fuzz(func(t *testing.T, text string) {
		board.Positions([]byte(text))
	})
}

func skillsOf(t *testing.T, text string) Skills {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"c.toml": good + text, "rules.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(filepath.Join(dir, "c.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Skills
}

func TestSpec004_Configuration(t *testing.T) {
	t.Setenv("HOME", "/home/op")
	t.Run("The skills.agent_skills_paths config key controls which directories are scanned. Multiple paths are separated by commas", func(t *testing.T) {
		s := skillsOf(t, "[skills]\nagent_skills_paths = \"~/skills, /opt/skills\"\n")
		if want := []string{"/home/op/skills", "/opt/skills"}; !s.Enabled || !slices.Equal(s.Paths.Folders, want) || s.Paths.Default {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("The default path is ~/.cleveragents/agent_skills (decision 14: ~/.phonerack/agent_skills)", func(t *testing.T) {
		s := skillsOf(t, "")
		if want := []string{"/home/op/.phonerack/agent_skills"}; !s.Enabled || !slices.Equal(s.Paths.Folders, want) || !s.Paths.Default {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("Environment variable override: CLEVERAGENTS_SKILLS_AGENT_SKILLS_PATHS (decision 14: PHONERACK_SKILLS_AGENT_SKILLS_PATHS)", func(t *testing.T) {
		t.Setenv("PHONERACK_SKILLS_AGENT_SKILLS_PATHS", "/env/a,/env/b")
		t.Setenv("CLEVERAGENTS_SKILLS_AGENT_SKILLS_PATHS", "/another/product")
		s := skillsOf(t, "[skills]\nagent_skills_paths = \"/opt/skills\"\n")
		if want := []string{"/env/a", "/env/b"}; !slices.Equal(s.Paths.Folders, want) {
			t.Errorf("got %+v", s)
		}
		t.Setenv("PHONERACK_SKILLS_AGENT_SKILLS_PATHS", "")
		if s := skillsOf(t, "[skills]\nagent_skills_paths = \"/opt/skills\"\n"); !s.Paths.Default {
			t.Errorf("an empty variable means the default: %+v", s)
		}
	})
}

func TestSkillsWithoutAHome(t *testing.T) {
	t.Setenv("HOME", "")
	if s := skillsOf(t, ""); len(s.Paths.Folders)+len(s.Paths.Skipped) != 0 {
		t.Errorf("the default: %+v", s)
	}
	if s := skillsOf(t, "[skills]\nagent_skills_paths = \"~/skills\"\n"); len(s.Paths.Skipped) != 1 {
		t.Errorf("a path that needs it: %+v", s)
	}
}

func TestAPlatformOfSkillsIsReadWithWhatProvesIt(t *testing.T) {
	const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	c, dir, err := load(t, good+"[skills.platform]\nurl = \"http://127.0.0.1:8080/v1\"\ncredential_file = \"private\"\nkeys = \"k1:"+key+" k2:"+key+"\"\nsince = true\n")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Skills.Platform
	if p.Rack != "bench" || len(p.Trusted) != 2 || !p.Since || p.Authorities != nil || p.CredentialFile != filepath.Join(dir, "private") {
		t.Errorf("%+v", p)
	}
	if word, err := p.Credential(); word != `{"v":0}` || err != nil {
		t.Errorf("%q, %v", word, err)
	}
	if err := os.WriteFile(p.CredentialFile, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if word, err := p.Credential(); word != "another" || err != nil {
		t.Errorf("after a change %q, %v", word, err)
	}
}
