package config

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEachKeyHasAClass(t *testing.T) {
	keys := map[string]any{}
	leaves("", reflect.ValueOf(defaults()), keys)
	have, want := slices.Sorted(maps.Keys(classes)), slices.Sorted(maps.Keys(keys))
	if !slices.Equal(have, want) {
		t.Errorf("classes are for\n%v\nkeys are\n%v", have, want)
	}
	for key, class := range classes {
		if class != live && class != restart {
			t.Errorf("%s has the class %d", key, class)
		}
	}
}

// docs/rackd.md names the keys that count at a reload.
func TestTheDocumentNamesTheLiveKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/rackd.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### Reload")
	section, _, _ = strings.Cut(section, "\n#")
	for key, class := range classes {
		if named := strings.Contains(section, "`"+key+"`"); named != (class == live) {
			t.Errorf("%s is named: %t", key, named)
		}
	}
}

func TestChangesAreToldByClass(t *testing.T) {
	from, to := defaults(), defaults()
	if c := Compare(&from, &to); len(c.Live)+len(c.Restart) != 0 {
		t.Errorf("nothing is changed: %+v", c)
	}
	to.Log.Level, to.Control.MaxHold = slog.LevelDebug, Duration(time.Minute)
	to.Rack.ID, to.Planner.Direct.Options = "b", map[string]any{"max_tokens": int64(1)}
	to.Streams, to.Skills.Servers = []Stream{{Slot: 1}}, []MCPServer{{Name: "files"}}
	c := Compare(&from, &to)
	if want := []string{"control.max_hold", "log.level"}; !slices.Equal(c.Live, want) {
		t.Errorf("live: %v", c.Live)
	}
	if want := []string{"planner.direct.options", "rack.id", "skills.server", "stream"}; !slices.Equal(c.Restart, want) {
		t.Errorf("restart: %v", c.Restart)
	}
}

func TestABadFileIsOneSentence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	for text, want := range map[string]string{
		"[rack]\nid = \"A\"\n[log]\nformat = \"xml\"\n": `c.toml:2:1: rack.id is "A": use 1 to 63 of the characters a-z, 0-9 and -; and 2 more, which rackd config check lists`,
		"[rack": `c.toml:1:5: expected ']' to close table name: correct the TOML here`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file)
		if err == nil {
			t.Fatal("no fault")
		}
		if got := Sentence(err); !strings.HasSuffix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q", got)
		}
	}
}
