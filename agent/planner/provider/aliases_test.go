package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"phonerack/agent/planner"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

// TestToolsOfSkillsGoThroughEachProviderByTheirNames: what is offered as mcp:s/t goes out in the provider's pattern, which
// its double holds it to, and a call of that comes back as mcp:s/t.
func TestToolsOfSkillsGoThroughEachProviderByTheirNames(t *testing.T) {
	long := "mcp:" + strings.Repeat("server", 6) + "/" + strings.Repeat("tool", 8)
	object := json.RawMessage(`{"type":"object","additionalProperties":true}`)
	var offered []planner.Tool
	for _, name := range []string{"tap", "mcp:files/read", "x/_anon_0", "mcp:files/read-2", long} {
		offered = append(offered, planner.Tool{Name: name, Description: "d", InputSchema: object})
	}
	eachKind(t, func(t *testing.T, r *rig) {
		c := r.client(t)
		ask := func() (planner.Decision, error) {
			return c.Decide(t.Context(), planner.Request{RequestID: "r", SystemPrompt: "s", UserPrompt: "u", Tools: offered})
		}
		if _, err := ask(); err != nil { // which shows the names that go out
			t.Fatal(err)
		}
		seen := r.Seen()[0]
		if seen.Problem != "" || len(seen.Tools) != len(offered) {
			t.Fatalf("%s, %d tools", seen.Problem, len(seen.Tools))
		}
		for i, out := range seen.Tools {
			r.Script(pt.Call(out.Name, `{"a":1}`))
			d, err := ask()
			if err != nil || d.Tool != offered[i].Name || string(d.Arguments) != `{"a":1}` {
				t.Errorf("%s went out as %s and came back as %+v, %v", offered[i].Name, out.Name, d, err)
			}
			if offered[i].Name == out.Name {
				continue
			}
			r.Script(pt.Call(offered[i].Name, `{}`)) // no provider was told of it by that name
			if d, err := ask(); !wire.Is(err, wire.UnknownTool) {
				t.Errorf("%s is taken for a tool: %+v, %v", offered[i].Name, d, err)
			}
		}
	})
}
