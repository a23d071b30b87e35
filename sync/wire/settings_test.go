package wire_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"phonerack/sync/wire"
)

func TestSettingsThatAreKnownAreRead(t *testing.T) {
	s, unusable, err := wire.ReadSettings(json.RawMessage(`{"claims.paused":true,"heartbeat.seconds":7,"log.level":"debug"}`))
	if err != nil || len(unusable) > 0 {
		t.Fatal(unusable, err)
	}
	if s.Paused == nil || !*s.Paused || s.Heartbeat == nil || *s.Heartbeat != 7*time.Second || s.LogLevel == nil || *s.LogLevel != slog.LevelDebug {
		t.Errorf("got %+v", s)
	}
	if s, unusable, err = wire.ReadSettings(json.RawMessage(`{}`)); s != (wire.Settings{}) || unusable != nil || err != nil {
		t.Errorf("nothing gives %+v, %v, %v", s, unusable, err)
	}
}

func TestSettingsThatCannotBeUsedAreNamedAndTheRestIsRead(t *testing.T) {
	for config, want := range map[string]string{
		`{"claims.paused":1}`:             `"claims.paused" is not true or false`,
		`{"claims.paused":null}`:          `"claims.paused" is not true or false`,
		`{"heartbeat.seconds":4}`:         `"heartbeat.seconds" is not 5 to 18 whole seconds`,
		`{"heartbeat.seconds":19}`:        `"heartbeat.seconds" is not 5 to 18 whole seconds`,
		`{"heartbeat.seconds":5.5}`:       `"heartbeat.seconds" is not 5 to 18 whole seconds`,
		`{"heartbeat.seconds":null}`:      `"heartbeat.seconds" is not 5 to 18 whole seconds`,
		`{"log.level":"loud"}`:            `"log.level" is not debug, info, warn or error`,
		`{"log.level":""}`:                `"log.level" is not debug, info, warn or error`,
		`{"Log.Level":"info"}`:            `"Log.Level" is not one of claims.paused, heartbeat.seconds, log.level`,
		`{"b":1,"a":{"deep":[]}}`:         `"a" is not one of claims.paused, heartbeat.seconds, log.level; "b" is not one of claims.paused, heartbeat.seconds, log.level`,
		`{"claims.paused":{"a":1,"a":2}}`: ``,
	} {
		t.Run(config, func(t *testing.T) {
			_, unusable, err := wire.ReadSettings(json.RawMessage(config))
			if want == "" {
				if err == nil {
					t.Error("a key that is there twice was taken")
				}
				return
			}
			var said []string
			for _, u := range unusable {
				said = append(said, u.Error())
			}
			if err != nil || strings.Join(said, "; ") != want {
				t.Errorf("got %v, %v", said, err)
			}
			with := fmt.Sprintf(`{"claims.paused":true,"log.level":"warn",%s`, config[1:])
			s, _, err := wire.ReadSettings(json.RawMessage(with))
			if err != nil { // the same key twice
				return
			}
			if s.Paused == nil || s.LogLevel == nil {
				t.Errorf("with it the others are lost: %+v", s)
			}
		})
	}
	for _, none := range []string{``, `null`, `[]`, `1`, `{"a":1}{}`} {
		if _, _, err := wire.ReadSettings(json.RawMessage(none)); err == nil {
			t.Errorf("%q is a configuration", none)
		}
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"claims.paused":true}`, `{"heartbeat.seconds":5}`, `{"heartbeat.seconds":1e1}`, `{"log.level":"warn"}`, `{"a":[{}]}`, `{"log.level":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		s, unusable, err := wire.ReadSettings(config)
		if err != nil && (s != wire.Settings{} || unusable != nil) {
			t.Errorf("with an error it gives %+v, %v", s, unusable)
		}
		if s.Heartbeat != nil && (*s.Heartbeat < wire.MinHeartbeat || *s.Heartbeat > wire.MaxHeartbeat) {
			t.Errorf("a heartbeat each %s", *s.Heartbeat)
		}
		var all map[string]json.RawMessage
		if err == nil && json.Unmarshal(config, &all) != nil {
			t.Error("what is no object is a configuration")
		}
		if known := len(all) - len(unusable); err == nil && (known < 0 || known > len(wire.SettingKeys())) {
			t.Errorf("%d of %d settings are unusable", len(unusable), len(all))
		}
	})
}
