package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"phonerack/cloud/fleet"
	"phonerack/cmd/internal/table"
)

type hostConfigure struct {
	Rack  string            `arg:"" help:"Id of the rack."`
	Set   map[string]string `mapsep:"none" help:"A setting: claims.paused (true, false), heartbeat.seconds (5 to 18), log.level (debug, info, warn, error); may be repeated." placeholder:"KEY=VALUE"`
	Unset []string          `help:"A setting that the rack's own file decides again; may be repeated." placeholder:"KEY"`
}

func (c hostConfigure) Run(s *session) error {
	var v fleet.Configuration
	method, body := http.MethodGet, any(nil)
	if len(c.Set)+len(c.Unset) > 0 {
		method, body = http.MethodPost, fleet.NewSettings{Set: values(c.Set), Unset: c.Unset}
	}
	err := s.client.call(s.ctx, method, "/v1/admin/hosts/"+url.PathEscape(c.Rack)+"/configure", nil, body, &v)
	return show(s, v, err, s.showConfiguration)
}

// values reads each value as JSON, or as the text that it is.
func values(set map[string]string) map[string]json.RawMessage {
	if len(set) == 0 {
		return nil
	}
	all := map[string]json.RawMessage{}
	for key, value := range set {
		all[key] = json.RawMessage(value)
		if !json.Valid(all[key]) {
			all[key], _ = json.Marshal(value) // a string always can be
		}
	}
	return all
}

func (s *session) showConfiguration(v fleet.Configuration) error {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(v.Config, &config); err != nil {
		return fmt.Errorf("the configuration cannot be read: %w", err)
	}
	if v.Version == 0 {
		fmt.Fprintf(s.stdout, "%s: nothing is set here, its own file decides\n", v.Rack)
		return nil
	}
	fmt.Fprintf(s.stdout, "%s: version %d of %s, %s\n", v.Rack, v.Version, when(v.Changed), applied(v.Version, v.Applied))
	t := table.New(s.stdout, "SETTING", "VALUE")
	for _, key := range slices.Sorted(maps.Keys(config)) {
		t.Row(key, string(config[key]))
	}
	return t.Flush()
}

func applied(version, by int64) string {
	if by == version {
		return "applied"
	}
	return "the rack has not applied it yet"
}
