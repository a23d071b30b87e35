package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"phonerack/agent/mcp"
	"phonerack/agent/mcp/mcptest"
	"phonerack/agent/skill/model"
)

// TestReport12 holds what a review found in another server of skills over MCP
// (archestra-ai/archestra#7063).
func TestReport12_AServerOfSkillsOnTheWire(t *testing.T) {
	t.Run("every result of the new era has its type", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow))
		b.skills.Entitle("shop", "desk")
		for method, params := range map[string]map[string]any{
			"server/discover": nil,
			"tools/list":      nil,
			"tools/call":      {"name": "list_skills", "arguments": map[string]any{}},
		} {
			if r := b.ask(modern, method, params, nil); r.Error != nil || r.Result["resultType"] != "complete" {
				t.Errorf("%s: %+v", method, r)
			}
		}
		if r := b.ask(modern, "tools/call", map[string]any{"name": "get_skill", "arguments": map[string]any{"id": "none"}}, nil); r.Result["resultType"] != "complete" {
			t.Errorf("a failed call: %+v", r)
		}
	})
	t.Run("a notification is not answered", func(t *testing.T) {
		b := newBench(t)
		for _, era := range []string{legacy, modern} {
			body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`
			if status, answer := b.send(b.request(era, body, nil)); status != http.StatusAccepted || len(answer) != 0 {
				t.Errorf("%s: status %d, %q", era, status, answer)
			}
		}
	})
	t.Run("codes that were given up are not sent", func(t *testing.T) {
		b := newBench(t)
		for _, era := range []string{legacy, modern} {
			for _, method := range []string{"resources/read", "resources/list", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel"} {
				params := map[string]any{"name": "none", "level": "info", "ref": map[string]any{"type": "ref/prompt", "name": "x"}, "argument": map[string]any{"name": "a", "value": "b"}}
				if method == "resources/read" {
					params["uri"] = "skill://none"
				}
				if r := b.ask(era, method, params, nil); r.Error == nil || r.Error.Code != -32601 {
					t.Errorf("%s %s: %+v", era, method, r)
				} else if era == modern && r.status != http.StatusNotFound {
					t.Errorf("%s %s: status %d", era, method, r.status)
				}
			}
		}
	})
	t.Run("a malformed cursor never starts the list anew", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow))
		b.skills.Entitle("shop", "desk")
		for _, cursor := range []string{"x", "shop-search", "c2hvcA", "czE6", "czE6YQ==", "czE6/w", strings.Repeat("A", 600)} {
			if r := b.call("list_skills", map[string]any{"cursor": cursor}, nil); r.code() != "bad_arguments" || r.Object != nil {
				t.Errorf("%q: %+v", cursor, r)
			}
			for _, era := range []string{legacy, modern} {
				if r := b.ask(era, "tools/list", map[string]any{"cursor": cursor}, nil); r.Error == nil || r.Error.Code != -32602 {
					t.Errorf("%s tools/list with %q: %+v", era, cursor, r)
				}
			}
		}
		if r := b.call("list_skills", map[string]any{"cursor": ""}, nil); r.IsError || len(r.Object["skills"].([]any)) != 1 {
			t.Errorf("the empty cursor is a cursor: %+v", r)
		}
		if r := b.ask(modern, "tools/list", map[string]any{"cursor": ""}, nil); r.Error != nil {
			t.Errorf("the empty cursor of tools/list: %+v", r)
		}
	})
	t.Run("a description longer than its bound is not published", func(t *testing.T) {
		long := draft(t, "shop", noteKnowledge)
		long.Description = strings.Repeat("长", 1025)
		b := newBench(t, long)
		b.skills.Entitle("shop", "desk")
		row := b.call("list_skills", nil, nil).Object["skills"].([]any)[0].(map[string]any)
		got := b.call("get_skill", map[string]any{"id": long.ID}, nil).Object
		for _, description := range []any{row["description"], got["description"]} {
			if runes := []rune(description.(string)); len(runes) != model.MaxDescription || runes[len(runes)-1] != '…' {
				t.Errorf("%d characters", len(runes))
			}
		}
	})
	t.Run("one orphan does not take the list with it", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow), draft(t, "shop", noteKnowledge), &model.Skill{ID: "orphan", Name: "Orphan", Subscription: "shop"})
		b.skills.Entitle("shop", "desk")
		b.skills.Break("shop-search", `skill unavailable: step 3 calls tool "x", which is not registered`)
		r := b.call("list_skills", nil, nil)
		rows, _ := r.Object["skills"].([]any)
		if r.IsError || len(rows) != 2 {
			t.Fatalf("%+v", r)
		}
		if why := rows[1].(map[string]any)["unavailable"]; why != `skill unavailable: step 3 calls tool "x", which is not registered` {
			t.Errorf("the broken one says %v", why)
		}
	})
}

func TestBothErasAreSpokenAtOneAddress(t *testing.T) {
	b := newBench(t)
	r := b.ask("", "initialize", map[string]any{"protocolVersion": legacy, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}, nil)
	if r.Error != nil || r.Result["protocolVersion"] != legacy {
		t.Fatalf("initialize: %+v", r)
	}
	want := map[string]any{"tools": map[string]any{}} // over HTTP the older era has no stream for notices
	if got := r.Result["capabilities"]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("capabilities of the older era: %v", got)
	}
	if text, _ := r.Result["instructions"].(string); !strings.Contains(text, "search_skills") {
		t.Errorf("instructions: %q", text)
	}
	d := b.ask(modern, "server/discover", nil, nil)
	if d.Error != nil {
		t.Fatalf("discover: %+v", d)
	}
	versions := fmt.Sprint(d.Result["supportedVersions"])
	if !strings.Contains(versions, legacy) || !strings.Contains(versions, modern) {
		t.Errorf("versions: %s", versions)
	}
	if got := fmt.Sprint(d.Result["capabilities"]); got != "map[tools:map[listChanged:true]]" {
		t.Errorf("capabilities of the new era: %s", got)
	}
	if text, _ := d.Result["instructions"].(string); !strings.Contains(text, "search_skills") {
		t.Errorf("instructions: %q", text)
	}
	for _, era := range []string{legacy, modern} {
		list := b.ask(era, "tools/list", nil, nil)
		if list.Error != nil || len(list.Result["tools"].([]any)) < 20 {
			t.Errorf("%s: %+v", era, list)
		}
		if got := b.callIn(era, "list_phones", nil, nil); got.IsError {
			t.Errorf("%s: %+v", era, got)
		}
	}
	for _, era := range []string{legacy, modern} {
		r := b.ask(era, "tools/call", map[string]any{"name": "run_skill", "arguments": map[string]any{}}, nil)
		if r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s, unknown tool: %+v", era, r)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"another method in the header": func(r *http.Request) { r.Header.Set("Mcp-Method", "tools/call") },
		"no method in the header":      func(r *http.Request) { r.Header.Del("Mcp-Method") },
		"another era in the header":    func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", legacy) },
	} {
		if r := b.ask(modern, "tools/list", nil, change); r.Error == nil || r.Error.Code != -32020 || r.status != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, r)
		}
	}
	strange := strings.ReplaceAll(b.message(modern, "tools/list", nil), modern, "2099-01-01")
	if status, body := b.send(b.request(modern, strange, func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2099-01-01") })); status != http.StatusBadRequest || !strings.Contains(string(body), "-32022") {
		t.Errorf("an era to come: %d %s", status, body)
	}
}

func TestListsSayHowLongTheyHoldAndForWhom(t *testing.T) {
	b := newBench(t)
	for _, method := range []string{"tools/list", "server/discover"} {
		r := b.ask(modern, method, nil, nil)
		if ttl, _ := r.Result["ttlMs"].(float64); ttl <= 0 || r.Result["cacheScope"] != "private" {
			t.Errorf("%s: %v, %v", method, r.Result["ttlMs"], r.Result["cacheScope"])
		}
	}
	one, err := json.Marshal(b.ask(modern, "tools/list", nil, nil).Result["tools"])
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := json.Marshal(b.ask(modern, "tools/list", nil, guest).Result["tools"])
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(one) {
			t.Fatal("the list changes from connection to connection")
		}
	}
}

func TestTheDoorLetsInProgramsOfThisMachineWithAToken(t *testing.T) {
	b := newBench(t)
	list := b.message(modern, "tools/list", nil)
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"a token":                      {nil, 200},
		"no token":                     {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":                {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.ToUpper(deskToken)) }, 401},
		"a part of the token":          {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+deskToken[:20]) }, 401},
		"the token as a password":      {func(r *http.Request) { r.SetBasicAuth("desk", deskToken) }, 401},
		"the token in the address":     {func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + deskToken }, 401},
		"localhost":                    {func(r *http.Request) { r.Host = "localhost:1" }, 200},
		"IPv6's name":                  {func(r *http.Request) { r.Host = "[::1]:80" }, 200},
		"the name of a site":           {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"a site without a token":       {func(r *http.Request) { r.Header.Del("Authorization"); r.Host = "evil.example" }, 403},
		"a name that begins well":      {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403},
		"a name that ends well":        {func(r *http.Request) { r.Host = "evil-localhost" }, 403},
		"an origin alone":              {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"an origin without a name":     {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"another page of this machine": {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		"an empty origin":              {func(r *http.Request) { r.Header["Origin"] = []string{""} }, 403},
		"two origins":                  {func(r *http.Request) { r.Header["Origin"] = []string{"http://" + r.URL.Host, "http://evil.example"} }, 403},
		"the server's own origin":      {func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }, 200},
		"a site with the right token": {func(r *http.Request) {
			r.Host = "rack.evil.example"
			r.Header.Set("Origin", "http://rack.evil.example")
		}, 403},
		"GET":                            {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"DELETE":                         {func(r *http.Request) { r.Method = http.MethodDelete }, 405},
		"another path":                   {func(r *http.Request) { r.URL.Path = "/" }, 404},
		"a form":                         {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415},
		"an answer that cannot be taken": {func(r *http.Request) { r.Header.Set("Accept", "text/html") }, 400},
	} {
		if status, body := b.send(b.request(modern, list, c.change)); status != c.status {
			t.Errorf("%s: status %d, want %d: %.200s", name, status, c.status, body)
		}
	}
	large := b.message(modern, "tools/call", map[string]any{"name": "search_skills", "arguments": map[string]any{"query": strings.Repeat("x", 300<<10)}})
	if status, _ := b.send(b.request(modern, large, nil)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a message of 300 KiB: status %d", status)
	}
}

func TestPreflightOfAPageIsRefused(t *testing.T) {
	b := newBench(t)
	r := b.request(modern, "", func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Del("Authorization")
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
	})
	answer, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("status %d, headers %v", answer.StatusCode, answer.Header)
	}
}

func TestTokensAreReadStrictly(t *testing.T) {
	long := strings.Repeat("k", 32)
	for text, want := range map[string]string{
		long:                              "",
		"# mine\n\ndesk " + long + "\r\n": "",
		"":                                "it has no token",
		"# only\n":                        "it has no token",
		"short":                           "line 1 has a token of 5 characters: use 32 to 512 random ones",
		"desk short":                      "line 1 has a token of 5 characters: use 32 to 512 random ones",
		"Desk " + long:                    "line 1 has a name that is not 1 to 63 of a-z, 0-9 and -",
		"a b " + long:                     "line 1 has more than a name and a token",
		long + "\n" + long:                "line 2 has the name default for a second time",
		"a " + long + "\na " + long:       "line 2 has the name a for a second time",
		strings.Repeat("k", 513):          "line 1 has a token of 513 characters: use 32 to 512 random ones",
	} {
		_, err := mcp.ParseTokens([]byte(text))
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "kkkk") {
			t.Errorf("%q tells the token", err)
		}
	}
}

func TestACallerWhoAsksTooMuchIsRefused(t *testing.T) {
	b := newBench(t)
	refused := 0
	for range 100 {
		if r := b.call("list_phones", nil, nil); r.code() == "limit_exceeded" {
			refused++
		}
	}
	if refused == 0 || refused > 60 {
		t.Errorf("%d of 100 calls at once were refused", refused)
	}
	if r := b.call("list_phones", nil, guest); r.IsError {
		t.Errorf("another caller pays for it: %+v", r)
	}
	if r := b.ask(modern, "tools/list", nil, nil); r.Error != nil {
		t.Errorf("looking at the list: %+v", r)
	}
}

func TestAPanicEndsOneCallAndNothingElse(t *testing.T) {
	b := newBench(t)
	b.devices.Phone.Refuse = func(string) error { panic("boom") }
	b.call("observe", map[string]any{"slot": mcptest.Slot}, nil)
	r := b.ask(modern, "tools/call", map[string]any{"name": "press_key", "arguments": map[string]any{"slot": mcptest.Slot, "key": "home"}}, nil)
	if r.Error == nil || r.Error.Code != -32603 || strings.Contains(r.Error.Message, "boom") {
		t.Errorf("%+v", r)
	}
	if r := b.ask(modern, "tools/list", nil, nil); r.Error != nil {
		t.Errorf("afterwards: %+v", r)
	}
}
