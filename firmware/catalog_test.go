package firmware_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/skill/model"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/sync/catalog"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

// subscription is the platform of a scripted cloud. The skills of "desk" are for the MCP client of that name.
type subscription struct {
	*scriptedCloud
	key ed25519.PrivateKey

	mu      sync.Mutex // guards what follows
	version int64
	skills  map[string][]byte // by id
	kinds   map[string]*model.Skill
	silent  bool
}

func (b *bench) subscribe() *subscription {
	b.t.Helper()
	s := &subscription{
		scriptedCloud: b.join(config.Script), key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32)), version: 1,
		skills: map[string][]byte{}, kinds: map[string]*model.Skill{},
	}
	b.config.Bundle.SkillKeys = wire.FormatSkillKeys(map[string]ed25519.PublicKey{"k1": s.key.Public().(ed25519.PublicKey)})
	s.On(wire.TypeSkillChanges, s.changes)
	s.On(wire.TypeBlobGet, s.blob)
	return s
}

func (s *subscription) publish(t *testing.T, k *model.Skill) {
	t.Helper()
	k.Name, k.Description, k.Version, k.UpdatedAt = "Skill "+k.ID, "How to shop.", "1", time.UnixMilli(1).UTC()
	raw, err := k.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.skills[k.ID], s.kinds[k.ID] = raw, k
}

func (s *subscription) changes(h linktest.Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return
	}
	now := time.Now()
	m := model.Manifest{
		Rack: "r1", Epoch: 1, Version: s.version, Complete: true, Issued: now.UnixMilli(), Expires: now.Add(time.Hour).UnixMilli(),
		Subscriptions: []model.SubscriptionState{{ID: "all", State: model.Active}, {ID: "desk", State: model.Active, Agents: []string{"mcp-desk"}}},
	}
	for _, id := range []string{"a-text", "b-flow", "c-broken"} {
		if raw := s.skills[id]; raw != nil {
			m.Skills = append(m.Skills, model.EntryOf(s.kinds[id], raw))
		}
	}
	raw, err := m.Encode()
	if err != nil {
		panic(err)
	}
	s.Reply(h, wire.TypeSkillManifest, wire.SkillManifest{Manifest: raw, Size: int64(len(raw)), Sig: model.SignManifest(s.key, raw), KeyID: "k1"})
}

func (s *subscription) blob(h linktest.Heard) {
	var ask wire.BlobGet
	if h.Decode(&ask) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.skills {
		if model.Sum(raw) == ask.SHA256 {
			m := s.Message("r1", wire.TypeBlobData, wire.BlobData{SHA256: ask.SHA256, Offset: ask.Offset, Size: int64(len(raw))})
			m.Corr = h.ID
			m.Attach(wire.BlobAttachment, "application/json", raw[ask.Offset:])
			s.Send(h.Topic, wire.KindSkill, m)
		}
	}
}

// rows are the ids that an MCP client is shown.
func rows(t *testing.T, c *sdk.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	got, code := use(t, c, tool, args)
	if code != "" {
		t.Fatalf("%s: %s", tool, code)
	}
	var ids []string
	for _, r := range got["skills"].([]any) {
		ids = append(ids, r.(map[string]any)["id"].(string))
	}
	return strings.Join(ids, " ")
}

func (b *bench) catalog(done func(catalog.Status) bool) catalog.Status {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var s catalog.Status
		if err := b.Call(b.t.Context(), "skill_catalog", struct{}{}, &s); err != nil {
			b.t.Fatal(err)
		}
		if done(s) {
			return s
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%+v", s)
		}
	}
}

func TestSpec000_ASubscriptionOnARack(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	s := b.subscribe()
	s.publish(t, &model.Skill{ID: "a-text", Kind: model.Knowledge, Subscription: "all", Content: "Look twice."})
	s.publish(t, &model.Skill{
		ID: "b-flow", Kind: model.FlowTemplate, Subscription: "desk", Parameters: []model.Parameter{{Name: "q", Type: model.String, Required: true}},
		Steps: []model.Step{{Tool: "input_text", ArgsTemplate: []byte(`{"text":"{q}"}`)}},
	})
	s.publish(t, &model.Skill{ID: "c-broken", Kind: model.FlowTemplate, Subscription: "all", Steps: []model.Step{{Tool: "fly", ArgsTemplate: []byte(`{}`)}}})
	url := b.serveMCP()
	b.start()
	if got := b.catalog(func(s catalog.Status) bool { return s.Synced }); got.Skills != 3 || got.Version != 4 || got.Problem != "" || !got.StaleSince.IsZero() {
		t.Errorf("%+v", got)
	}
	desk := b.mcpClient(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{}}, DisableStandaloneSSE: true})
	person, _ := b.talk(t.Context())

	t.Run("MCP clients list, search, get and resolve what they are entitled to", func(t *testing.T) {
		if got := rows(t, desk, "list_skills", nil); got != "a-text b-flow c-broken" {
			t.Errorf("desk lists %s", got)
		}
		if got := rows(t, person, "list_skills", nil); got != "a-text c-broken" {
			t.Errorf("a client without that token lists %s", got)
		}
		if got := rows(t, desk, "search_skills", map[string]any{"query": "b-flow", "limit": 1}); got != "b-flow" {
			t.Errorf("desk finds %s", got)
		}
		got, code := use(t, desk, "resolve_skill_parameters", map[string]any{"id": "b-flow", "values": map[string]any{"q": "tea"}})
		if code != "" || fmt.Sprint(got["calls"]) != "[map[arguments:map[text:tea] tool:input_text]]" {
			t.Errorf("%s %v", code, got)
		}
		for _, tool := range []string{"get_skill", "resolve_skill_parameters"} {
			if _, code := use(t, person, tool, map[string]any{"id": "b-flow"}); code != "not_found" {
				t.Errorf("%s: %q", tool, code)
			}
		}
	})
	t.Run("a flow template that calls an unregistered tool says so", func(t *testing.T) {
		got, code := use(t, desk, "get_skill", map[string]any{"id": "c-broken"})
		if code != "" || got["unavailable"] != `skill unavailable: step 1 calls tool "fly", which is not registered` {
			t.Errorf("%s %v", code, got)
		}
	})
	t.Run("a skill of the registry includes what a person may see", func(t *testing.T) {
		for id, want := range map[string]bool{"a-text": true, "b-flow": false, "c-broken": false} {
			text := "name: local/x-" + id + "\ndescription: d\nitems: [{type: include, name: catalog/" + id + "}]\n"
			if err := b.Call(t.Context(), "skill_add", action.SkillYAML{YAML: text}, nil); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
	t.Run("a hint hides at once, although the platform is silent", func(t *testing.T) {
		s.mu.Lock()
		s.silent, s.version = true, s.version+1
		hint := wire.SkillChanged{Epoch: 1, Version: s.version, Removed: []string{"a-text"}}
		s.mu.Unlock()
		s.Send(s.rack, wire.KindSkill, s.Message("r1", wire.TypeSkillChanged, hint))
		b.catalog(func(s catalog.Status) bool { return s.Hidden == 1 })
		if got := rows(t, desk, "list_skills", nil); got != "b-flow c-broken" {
			t.Errorf("desk lists %s", got)
		}
		if _, code := use(t, desk, "get_skill", map[string]any{"id": "a-text"}); code != "not_found" {
			t.Errorf("%q", code)
		}
	})
	b.stop()
	s.broker.Close()
	t.Run("offline, a restart serves the last catalog, and hides what was hidden", func(t *testing.T) {
		b.start()
		again, _ := b.talk(t.Context())
		if got := rows(t, again, "list_skills", nil); got != "c-broken" {
			t.Errorf("%s", got)
		}
	})
	b.stop()
}

func TestSpec000_SkillsDisabledLeavesDeviceToolsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	s := b.subscribe()
	b.config.Skills.Enabled = false
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	session, _ := b.talk(t.Context())
	count := 0
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; strings.Contains(tool.Name, "skill") {
			t.Errorf("there is %s", tool.Name)
		}
	}
	if count < 10 {
		t.Errorf("%d tools", count)
	}
	if err := b.Call(t.Context(), "skill_catalog", struct{}{}, nil); !wire.Is(err, wire.SkillsDisabled) {
		t.Errorf("%v", err)
	}
	if n := len(s.Heard(wire.TypeSkillChanges)); n != 0 {
		t.Errorf("the platform was asked %d times", n)
	}
	b.stop()
}
