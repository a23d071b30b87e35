package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// credentials are user and password of an address.
var credentials = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@]*@`)

// Redacted is the configuration as it counts, one key a line and those that were left out too, for somebody who is to
// find a fault. Secrets are in files of their own, of which it has the names; where a secret may stand in it all the same
// only names are shown: of an MCP server's environment and arguments, of a provider's options, of users in addresses.
func (c *Config) Redacted() []byte {
	values := map[string]any{}
	leaves("", reflect.ValueOf(*c), values)
	for key, v := range values {
		switch list := v.(type) {
		case []Stream:
			for i, s := range list {
				values[fmt.Sprintf("%s[%d]", key, i)] = fmt.Sprintf("slot %d at %s", s.Slot, s.Address)
			}
			delete(values, key)
		case []MCPServer:
			for i, s := range list {
				values[fmt.Sprintf("%s[%d]", key, i)] = s.redacted()
			}
			delete(values, key)
		case map[string]any:
			values[key] = slices.Sorted(maps.Keys(list))
		}
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text := fmt.Sprintf("%q", fmt.Sprint(values[key]))
		switch v := values[key].(type) {
		case bool, int, int64, float64:
			text = fmt.Sprint(v)
		case []string:
			text = fmt.Sprintf("%q", v)
		}
		fmt.Fprintf(&b, "%s = %s\n", key, credentials.ReplaceAllString(text, "${1}…@"))
	}
	return []byte(b.String())
}

func (s MCPServer) redacted() string {
	text := s.Name
	if len(s.Command) > 0 {
		text += fmt.Sprintf(": %s with %d arguments", filepath.Base(s.Command[0]), len(s.Command)-1)
	}
	if s.URL != "" {
		text += ": " + s.URL
	}
	if len(s.Env) > 0 {
		text += fmt.Sprintf(", environment %v", slices.Sorted(maps.Keys(s.Env)))
	}
	return text
}
