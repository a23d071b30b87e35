package api

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"phonerack/cloud/catalog"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

// scan names the files below dir that hold the bytes.
func scan(t *testing.T, dir string, needle []byte) (hits string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, needle) {
			hits += " " + path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func TestTheAdminAPIWantsItsTokenExceptOnTheLocalAddress(t *testing.T) {
	s := newSite(t)
	r := s.rack("default")
	for path := range map[string]bool{"/v1/admin/hosts": true, "/metrics": true} {
		for name, c := range map[string]struct {
			h      http.Handler
			bearer string
			status int
		}{
			"public, nothing":        {s.server.Public(), "", 401},
			"public, wrong":          {s.server.Public(), "pra_other", 401},
			"public, a rack's":       {s.server.Public(), r.bundle.Bearer, 401},
			"public, the token":      {s.server.Public(), s.token, 200},
			"local, nothing":         {s.server.Local(), "", 200},
			"local, but wrong token": {s.server.Local(), "pra_other", 401},
		} {
			q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
			if c.bearer != "" {
				q.Header.Set("Authorization", "Bearer "+c.bearer)
			}
			w := httptest.NewRecorder()
			c.h.ServeHTTP(w, q)
			if w.Code != c.status {
				t.Errorf("%s, %s: %d", path, name, w.Code)
			}
		}
	}
	q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://evil.example/v1/admin/hosts", nil)
	w := httptest.NewRecorder()
	s.server.Local().ServeHTTP(w, q)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("by a foreign name: %d", w.Code)
	}
	q = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/admin/tasks", strings.NewReader(`{"task":{"goal":"g"}}`))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", "http://evil.example")
	w = httptest.NewRecorder()
	s.server.Local().ServeHTTP(w, q)
	if w.Code != http.StatusForbidden {
		t.Errorf("from a foreign page: %d", w.Code)
	}
	s.server.admin.token = [32]byte{}
	if answer, _, _ := s.http(http.MethodGet, "/v1/admin/hosts", "", nil); answer.StatusCode != 401 {
		t.Errorf("without a token: %d", answer.StatusCode)
	}
}

// admin asks the local API in the tenant acme.
func (s *site) admin(method, path string, body any) (int, json.RawMessage) {
	s.t.Helper()
	glue := "?"
	if strings.Contains(path, "?") {
		glue = "&"
	}
	answer, raw, _ := s.send(s.server.Local(), method, "/v1/admin/"+path+glue+"tenant=acme", "", body)
	return answer.StatusCode, raw
}

// TestTheDescriptionHasEachCommand: a client that is made from the description could send no other one.
func TestTheDescriptionHasEachCommand(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas struct {
				NewCommand struct {
					Properties struct{ Name struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(must(openAPI())(t), &doc); err != nil {
		t.Fatal(err)
	}
	if names := doc.Components.Schemas.NewCommand.Properties.Name.Enum; !slices.Equal(names, fleet.Orders()) {
		t.Errorf("the description has %q, the commands are %q", names, fleet.Orders())
	}
}

// TestEachOperationKeepsToItsDescription goes once through all that operators can do; site.send compares.
func TestEachOperationKeepsToItsDescription(t *testing.T) {
	s := newSite(t)
	none := struct{}{}
	field := func(raw json.RawMessage, name string) string {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		v, _ := m[name].(string)
		return v
	}
	did := map[string]bool{}
	do := func(want int, operation, path string, body any) json.RawMessage {
		t.Helper()
		method, _, _ := strings.Cut(operation, " ")
		did[operation] = true
		status, raw := s.admin(method, path, body)
		if status != want {
			t.Errorf("%s: %d %s", operation, status, raw)
		}
		return raw
	}
	raw := do(201, "POST /v1/admin/hosts", "hosts", label{Name: "bench", Tags: []string{"lab"}})
	b, err := wire.ParseBundle(raw)
	if err != nil {
		t.Fatal(err)
	}
	r := s.with(b)
	r.hello()
	do(200, "GET /v1/admin/hosts", "hosts", nil)
	do(200, "GET /v1/admin/hosts/{host}", "hosts/"+b.Rack, nil)
	if got := do(200, "PATCH /v1/admin/hosts/{host}", "hosts/"+b.Rack, label{Name: "other"}); field(got, "name") != "other" {
		t.Errorf("got %s", got)
	}
	do(200, "GET /v1/admin/hosts/{host}/configure", "hosts/"+b.Rack+"/configure", nil)
	do(404, "GET /v1/admin/hosts/{host}/configure", "hosts/nobody/configure", nil)
	do(400, "POST /v1/admin/hosts/{host}/configure", "hosts/"+b.Rack+"/configure", json.RawMessage(`{"set":{"log.level":"loud"}}`))
	do(200, "POST /v1/admin/hosts/{host}/configure", "hosts/"+b.Rack+"/configure", json.RawMessage(`{"set":{"log.level":"debug","heartbeat.seconds":5,"claims.paused":false}}`))
	s.bus.take() // of no session
	file := do(201, "POST /v1/admin/files", "files", octets("the file"))
	do(400, "POST /v1/admin/files", "files", octets(""))
	do(400, "POST /v1/admin/files", "files", struct{}{})
	do(413, "POST /v1/admin/files", "files", make(octets, wire.MaxInput+1))
	withFile := fleet.NewTask{Task: wire.Task{Goal: "g", Deadline: 1, Inputs: []wire.Input{{Name: "a.txt", SHA256: field(file, "sha256")}}}}
	if got := do(201, "POST /v1/admin/tasks", "tasks", withFile); !strings.Contains(string(got), `"size":8`) {
		t.Errorf("got %s", got)
	}
	task := fleet.NewTask{Key: "k", Task: wire.Task{Goal: "g", Params: map[string]string{"a": "b"}, Budget: wire.Budget{Steps: 3}}}
	id := field(do(201, "POST /v1/admin/tasks", "tasks", task), "task_id")
	if again := do(200, "POST /v1/admin/tasks", "tasks", task); field(again, "task_id") != id {
		t.Errorf("the same key gave %s", again)
	}
	task.Task.Goal = "h"
	do(409, "POST /v1/admin/tasks", "tasks", task)
	do(400, "POST /v1/admin/tasks", "tasks", fleet.NewTask{})
	if _, err := r.callMQTT(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil {
		t.Fatal(err)
	}
	do(409, "POST /v1/admin/tasks/{task}/answer", "tasks/"+id+"/answer", map[string]string{"text": "a"})
	if _, err := r.callMQTT(wire.TypeQuestion, wire.Question{TaskID: id, Attempt: 1, QuestionID: "q", Text: "?"}); err != nil {
		t.Fatal(err)
	}
	do(200, "GET /v1/admin/tasks/{task}", "tasks/"+id, nil)
	do(200, "POST /v1/admin/tasks/{task}/answer", "tasks/"+id+"/answer", map[string]string{"text": "a"})
	do(200, "POST /v1/admin/tasks/{task}/cancel", "tasks/"+id+"/cancel", none)
	do(409, "POST /v1/admin/tasks/{task}/requeue", "tasks/"+id+"/requeue", none)
	r.heard()
	if _, err := r.callMQTT(wire.TypeResult, wire.Result{TaskID: id, Attempt: 1, Outcome: wire.Failed, Error: wire.Refuse(wire.TaskCancelled, nil), Message: "m"}); err != nil {
		t.Fatal(err)
	}
	do(200, "POST /v1/admin/tasks/{task}/requeue", "tasks/"+id+"/requeue", none)
	do(200, "GET /v1/admin/tasks", "tasks?state=queued&state=lost&rack="+b.Rack+"&limit=1", nil)
	do(200, "GET /v1/admin/tasks/{task}/decisions", "tasks/"+id+"/decisions", nil)
	do(404, "GET /v1/admin/tasks/{task}", "tasks/nothing", nil)

	command := field(do(201, "POST /v1/admin/commands", "commands", fleet.NewCommand{Rack: b.Rack, Name: "identify", Args: json.RawMessage(`{"seconds":5}`)}), "command_id")
	r.heard()
	for _, odd := range []fleet.NewCommand{
		{Rack: b.Rack, Name: "reboot"},
		{Rack: b.Rack, Name: "screenshot"},
		{Rack: b.Rack, Name: "ping", Args: json.RawMessage(`{"x":1}`)},
		{Rack: b.Rack, Name: "identify", Args: json.RawMessage(`{"seconds":601}`)},
		{Rack: b.Rack, Name: "ping", Expires: 1},
	} {
		do(400, "POST /v1/admin/commands", "commands", odd)
	}
	do(404, "POST /v1/admin/commands", "commands", fleet.NewCommand{Rack: "nobody", Name: "ping"})
	do(200, "GET /v1/admin/commands", "commands?rack="+b.Rack, nil)
	do(200, "GET /v1/admin/commands/{command}", "commands/"+command, nil)
	do(404, "GET /v1/admin/commands/{command}/picture", "commands/"+command+"/picture", nil)

	provider := do(201, "POST /v1/admin/providers", "providers", NewProvider{Name: "main", Provider: "anthropic", Model: "m", Key: "sk-secret", TimeoutMS: 1000})
	if strings.Contains(string(provider), "sk-secret") || field(provider, "key_state") != "ok" {
		t.Errorf("got %s", provider)
	}
	do(409, "POST /v1/admin/providers", "providers", NewProvider{Name: "main", Provider: "scripted"})
	do(400, "POST /v1/admin/providers", "providers", NewProvider{Name: "odd", Provider: "nobody"})
	do(400, "POST /v1/admin/providers", "providers", NewProvider{Name: "odd", Provider: "scripted", TimeoutMS: 18446744078710}) // 5 s, if it overflows
	do(200, "POST /v1/admin/providers/{name}/activate", "providers/main/activate", none)
	do(404, "POST /v1/admin/providers/{name}/activate", "providers/other/activate", none)
	do(200, "POST /v1/admin/providers/{name}/rotate", "providers/main/rotate", map[string]string{"key": "sk-other"})
	if list := do(200, "GET /v1/admin/providers", "providers", nil); strings.Contains(string(list), "sk-") || !strings.Contains(string(list), `"key_version":2`) {
		t.Errorf("got %s", list)
	}
	do(201, "POST /v1/admin/subscriptions", "subscriptions", NewSubscription{ID: "social", Name: "Social"})
	do(409, "POST /v1/admin/subscriptions", "subscriptions", NewSubscription{ID: "social"})
	do(200, "POST /v1/admin/subscriptions/{subscription}/grants", "subscriptions/social/grants", catalog.Grant{Rack: b.Rack, Agent: "task"})
	do(404, "POST /v1/admin/subscriptions/{subscription}/grants", "subscriptions/none/grants", catalog.Grant{})
	do(200, "GET /v1/admin/subscriptions", "subscriptions?limit=1", nil)
	if got := do(200, "GET /v1/admin/subscriptions/{subscription}", "subscriptions/social", nil); !strings.Contains(string(got), `"agent":"task"`) {
		t.Errorf("got %s", got)
	}
	tips := catalog.NewSkill{Subscription: "social", File: "SKILL.md", Content: "---\nid: tips\nname: Tips\ndescription: d\nversion: 1\n---\n" + strings.Repeat("text \"\n", 36_000)}
	do(201, "POST /v1/admin/skills", "skills", tips)
	do(200, "POST /v1/admin/skills", "skills", tips)
	do(400, "POST /v1/admin/skills", "skills", catalog.NewSkill{Subscription: "social", File: "x.yaml", Content: "id: x"})
	do(200, "GET /v1/admin/skills", "skills?subscription=social", nil)
	if got := do(200, "GET /v1/admin/skills/{skill}", "skills/tips", nil); !strings.Contains(string(got), `"body":{"id":"tips"`) {
		t.Errorf("got %.200s", got)
	}
	if got := do(200, "GET /v1/admin/hosts/{host}/skills", "hosts/"+b.Rack+"/skills", nil); !strings.Contains(string(got), `"agents":["task"]`) || !strings.Contains(string(got), `"id":"tips"`) {
		t.Errorf("got %s", got)
	}
	do(200, "PATCH /v1/admin/subscriptions/{subscription}", "subscriptions/social", SubscriptionState{})
	do(200, "POST /v1/admin/subscriptions/{subscription}/revokes", "subscriptions/social/revokes", catalog.Grant{Rack: b.Rack, Agent: "task"})
	do(404, "POST /v1/admin/subscriptions/{subscription}/revokes", "subscriptions/social/revokes", catalog.Grant{Rack: b.Rack, Agent: "task"})
	do(200, "POST /v1/admin/skills/{skill}/remove", "skills/tips/remove", none)
	do(404, "POST /v1/admin/skills/{skill}/remove", "skills/tips/remove", none)
	key := field(do(201, "POST /v1/admin/skill-keys", "skill-keys", none), "id")
	do(200, "POST /v1/admin/skill-keys/{key}/activate", "skill-keys/"+key+"/activate", none)
	var keys page[catalog.Key]
	if err := json.Unmarshal(do(200, "GET /v1/admin/skill-keys", "skill-keys", nil), &keys); err != nil || len(keys.Items) != 2 || keys.Items[1].ID != key {
		t.Fatalf("%+v, %v", keys, err)
	}
	do(200, "POST /v1/admin/skill-keys/{key}/drop", "skill-keys/"+keys.Items[0].ID+"/drop", none)

	if _, err := r.callMQTT(wire.TypeEvent, wire.Event{Kind: "hub", At: 5, Slot: 1}); err != nil {
		t.Fatal(err)
	}
	do(200, "GET /v1/admin/events", "events", nil)
	do(200, "GET /v1/admin/audits", "audits?limit=5", nil)
	do(200, "GET /v1/admin/usage", "usage?from=2026-11-01", nil)
	do(400, "GET /v1/admin/audits", "audits?limit=5000", nil)
	copied := filepath.Join(t.TempDir(), "copy.db")
	do(201, "POST /v1/admin/backup", "backup", backupFile{copied})
	do(400, "POST /v1/admin/backup", "backup", backupFile{copied})
	do(400, "POST /v1/admin/backup", "backup", backupFile{"copy.db"})
	do(201, "POST /v1/admin/hosts/{host}/rotate", "hosts/"+b.Rack+"/rotate", none)
	do(201, "POST /v1/admin/hosts/{host}/issue", "hosts/"+b.Rack+"/issue", none)
	do(200, "POST /v1/admin/hosts/{host}/revoke", "hosts/"+b.Rack+"/revoke", none)
	do(409, "POST /v1/admin/hosts/{host}/rotate", "hosts/"+b.Rack+"/rotate", none)

	for operation := range s.server.admin.operations() {
		if !did[operation] {
			t.Errorf("%s is not tested", operation)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/openapi.json"} {
		if answer, _, err := s.http(http.MethodGet, path, "", nil); err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}
