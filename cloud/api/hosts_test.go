package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// transports are the two ways of a rack, as far as a test can tell them apart.
var transports = map[string]func(r *rack, t wire.Type, body any) error{
	"MQTT": func(r *rack, t wire.Type, body any) error { _, err := r.callMQTT(t, body); return err },
	"HTTP": func(r *rack, t wire.Type, body any) error { _, err := r.callHTTP(t, body); return err },
}

func plan(r *rack, id string) wire.PlanRequest {
	return wire.PlanRequest{
		RequestID: id, HostID: r.bundle.Rack, SystemPrompt: "s", UserPrompt: "u",
		Tools: []wire.PlanTool{{Name: "tap", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}},
	}
}

// fiveCalls are a host's calls: planner decision, heartbeat, claim, renewal, result.
func fiveCalls(r *rack, task, suffix string) []struct {
	t    wire.Type
	body any
} {
	return []struct {
		t    wire.Type
		body any
	}{
		{wire.TypeHeartbeat, wire.Heartbeat{Slots: []wire.SlotReport{{Slot: 1, State: "ready"}}, SkillsVersion: "v1"}},
		{wire.TypeClaim, wire.Claim{Slot: 1, Phone: "P", ClaimID: "claim" + suffix, SkillsVersion: "v1"}},
		{wire.TypeRenew, wire.Renew{TaskID: task, Attempt: 1}},
		{wire.TypePlanRequest, plan(r, "req"+suffix)},
		{wire.TypeResult, wire.Result{TaskID: task, Attempt: 1, Outcome: wire.Succeeded, Wrote: true, Steps: 2}},
	}
}

func TestSpec003_AuthenticatedEndpoint(t *testing.T) {
	for name, call := range transports {
		t.Run(name, func(t *testing.T) {
			t.Run("Authenticated host requests a planner decision", func(t *testing.T) {
				s := newSite(t)
				r := s.rack("acme")
				r.hello()
				if err := call(r, wire.TypePlanRequest, plan(r, "r1")); err != nil {
					t.Fatal(err)
				}
				if s.asked.Load() != 1 {
					t.Errorf("the planner was asked %d times", s.asked.Load())
				}
			})
			t.Run("Unauthenticated or foreign-host request is rejected", func(t *testing.T) {
				s := newSite(t)
				r, other := s.rack("acme"), s.rack("acme")
				r.hello()
				if err := call(r, wire.TypePlanRequest, plan(other, "r1")); !wire.Is(err, wire.HostMismatch) {
					t.Errorf("for another host in the body: %v", err)
				}
				foreign := s.with(r.bundle)
				foreign.bundle.Rack, foreign.nonce = other.bundle.Rack, ""
				err := call(foreign, wire.TypePlanRequest, plan(foreign, "r2"))
				if name == "HTTP" && !wire.Is(err, wire.HostMismatch) || name == "MQTT" && err != errSilence {
					t.Errorf("with the credentials of another host: %v", err)
				}
				none := s.with(r.bundle)
				none.bundle.Bearer = ""
				none.keys = must(wire.DeriveKeys(r.bundle.KID, make([]byte, wire.SecretBytes)))(t)
				err = call(none, wire.TypePlanRequest, plan(none, "r3"))
				if name == "HTTP" && !wire.Is(err, wire.Unauthenticated) || name == "MQTT" && err != errSilence {
					t.Errorf("without valid credentials: %v", err)
				}
				if s.asked.Load() != 0 {
					t.Error("a provider was asked")
				}
			})
		})
	}
}

func TestTheFiveHostCallsBeforeAndAfterRevocation(t *testing.T) {
	for name, call := range transports {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			r := s.rack("acme")
			r.hello()
			task, _, err := s.fleet.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range fiveCalls(r, task.TaskID, "1") {
				if err := call(r, c.t, c.body); err != nil {
					t.Errorf("%s: %v", c.t, err)
				}
			}
			if got := must(s.fleet.Task(t.Context(), acme, task.TaskID))(t); got.State != wire.TaskSucceeded {
				t.Errorf("the task is %s", got.State)
			}
			if err := s.office.Revoke(t.Context(), acme.Scope(), r.bundle.Rack); err != nil {
				t.Fatal(err)
			}
			asked := s.asked.Load()
			for _, c := range fiveCalls(r, task.TaskID, "2") {
				err := call(r, c.t, c.body)
				if name == "HTTP" && !wire.Is(err, wire.Unauthenticated) || name == "MQTT" && err != errSilence {
					t.Errorf("%s after the revocation: %v", c.t, err)
				}
			}
			if s.asked.Load() != asked {
				t.Error("a provider was asked for a revoked host")
			}
			if name == "MQTT" && s.refused("unknown_key") != 5 {
				t.Errorf("%d frames were counted", s.refused("unknown_key"))
			}
		})
	}
}

func TestARotatedSetTakesOverWithItsFirstProof(t *testing.T) {
	for name, call := range transports {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			old := s.rack("acme")
			old.hello()
			next := s.with(must(s.office.Rotate(t.Context(), acme.Scope(), old.bundle.Rack))(t))
			if err := call(old, wire.TypeHeartbeat, wire.Heartbeat{}); err != nil {
				t.Errorf("the old set before the new one is used: %v", err)
			}
			next.session = old.session
			next.hello()
			old.nonce = next.nonce
			if err := call(next, wire.TypeHeartbeat, wire.Heartbeat{}); err != nil {
				t.Errorf("the new set: %v", err)
			}
			if err := call(old, wire.TypeHeartbeat, wire.Heartbeat{}); err == nil {
				t.Error("the old set lives on beside the new one")
			}
		})
	}
}

func TestTwoTenantsNeverSeeEachOther(t *testing.T) {
	for name, call := range transports {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			mine, theirs := s.rack("acme"), s.rack("other")
			mine.hello()
			theirs.hello()
			task, _, err := s.fleet.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g"}})
			if err != nil {
				t.Fatal(err)
			}
			if name == "HTTP" {
				answer, _, _ := s.http(http.MethodPost, "/v1/hosts/"+theirs.bundle.Rack+"/claim", theirs.bundle.Bearer, wire.Claim{Slot: 1, ClaimID: "c"})
				if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Retry-After") == "" {
					t.Errorf("a foreign task was offered: %d", answer.StatusCode)
				}
			} else if m, err := theirs.callMQTT(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil || m.Type != wire.TypeNone {
				t.Errorf("a foreign task was offered: %v, %v", m, err)
			}
			if err := call(mine, wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				t    wire.Type
				body any
			}{
				{wire.TypeRenew, wire.Renew{TaskID: task.TaskID, Attempt: 1}},
				{wire.TypeRelease, wire.Release{TaskID: task.TaskID, Attempt: 1}},
				{wire.TypeQuestion, wire.Question{TaskID: task.TaskID, Attempt: 1, QuestionID: "q", Text: "?"}},
				{wire.TypeResult, wire.Result{TaskID: task.TaskID, Attempt: 1, Outcome: wire.Failed}},
			} {
				if err := call(theirs, c.t, c.body); !wire.Is(err, wire.NotYourTask) {
					t.Errorf("%s of a foreign task: %v", c.t, err)
				}
			}
			command := must(s.fleet.Send(t.Context(), acme, fleet.NewCommand{Rack: mine.bundle.Rack, Name: fleet.Ping}))(t)
			mine.heard()
			if err := call(theirs, wire.TypeCommandStatus, wire.CommandStatus{CommandID: command.CommandID, Version: 1, Status: wire.CommandSucceeded}); !wire.Is(err, wire.NotFound) {
				t.Errorf("the status of a foreign command: %v", err)
			}
			for _, path := range []string{"tasks/" + task.TaskID, "tasks/" + task.TaskID + "/decisions", "hosts/" + mine.bundle.Rack, "commands/" + command.CommandID} {
				if answer, _, _ := s.http(http.MethodGet, "/v1/admin/"+path+"?tenant=other", s.token, nil); answer.StatusCode != http.StatusNotFound {
					t.Errorf("%s for another tenant: %d", path, answer.StatusCode)
				}
			}
		})
	}
}

func TestAFailedDecisionIsAFailureOnBothTransports(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	s.decide = func(context.Context, enroll.Caller, wire.PlanRequest, []byte, func(time.Duration)) (wire.PlanDecision, error) {
		return wire.PlanDecision{}, wire.Refuse(wire.ProviderRateLimited, nil).After(90500 * time.Millisecond)
	}
	m, err := r.callMQTT(wire.TypePlanRequest, plan(r, "r1"))
	if m == nil || m.Type != wire.TypePlanFailure || !wire.Is(err, wire.ProviderRateLimited) {
		t.Errorf("got %+v, %v", m, err)
	}
	answer, raw, _ := s.http(http.MethodPost, "/v1/hosts/"+r.bundle.Rack+"/planner-decisions", r.bundle.Bearer, plan(r, "r2"))
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "91" || !strings.Contains(string(raw), `"request_id":"r2"`) {
		t.Errorf("got %d %q %s", answer.StatusCode, answer.Header.Get("Retry-After"), raw)
	}
	s.decide = func(context.Context, enroll.Caller, wire.PlanRequest, []byte, func(time.Duration)) (wire.PlanDecision, error) {
		return wire.PlanDecision{}, wire.Refuse(wire.Internal, nil).After(30 * time.Second)
	}
	answer, raw, _ = s.http(http.MethodPost, "/v1/hosts/"+r.bundle.Rack+"/planner-decisions", r.bundle.Bearer, plan(r, "r5"))
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "30" {
		t.Errorf("a fault that passes: got %d %q %s", answer.StatusCode, answer.Header.Get("Retry-After"), raw)
	}
	s.decide = func(context.Context, enroll.Caller, wire.PlanRequest, []byte, func(time.Duration)) (wire.PlanDecision, error) {
		panic("a fault")
	}
	if _, err := r.callMQTT(wire.TypePlanRequest, plan(r, "r3")); !wire.Is(err, wire.Internal) {
		t.Errorf("over MQTT a panic became %v", err)
	}
	if _, err := r.callHTTP(wire.TypePlanRequest, plan(r, "r4")); !wire.Is(err, wire.Internal) {
		t.Errorf("over HTTP a panic became %v", err)
	}
}

func TestTheScreenReachesThePlannerOnBothTransports(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	screen := []byte{0xff, 0xd8, 1, 2, 3, 0, 0xff, 0xd9}
	m := r.message(wire.TypePlanRequest, plan(r, "r1"))
	m.Attach(wire.ScreenAttachment, "image/jpeg", screen)
	answers := r.deliver(wire.KindPlan, r.seal(wire.KindPlan, m))
	if len(answers) != 2 || answers[0].Type != wire.TypePlanAccepted || answers[1].Type != wire.TypePlanDecision {
		t.Fatalf("got %+v", answers)
	}
	if got := *s.screen.Load(); !bytes.Equal(got, screen) {
		t.Errorf("over MQTT: %x", got)
	}
	if _, err := r.callHTTP(wire.TypePlanRequest, planRequest{PlanRequest: plan(r, "r2"), Screen: screen}); err != nil {
		t.Fatal(err)
	}
	if got := *s.screen.Load(); !bytes.Equal(got, screen) {
		t.Errorf("over HTTP: %x", got)
	}
}

func TestOddRequestsOverHTTPAreRefused(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	heartbeat := "/v1/hosts/" + r.bundle.Rack + "/heartbeat"
	planner := "/v1/hosts/" + r.bundle.Rack + "/planner-decisions"
	for _, c := range []struct {
		name, path, kind string
		body             string
		status           int
		code             wire.Code
	}{
		{"no JSON", heartbeat, "application/json", "{", 400, wire.BadRequest},
		{"a key twice", heartbeat, "application/json", `{"slots":[],"slots":[]}`, 400, wire.BadRequest},
		{"a key in another case", heartbeat, "application/json", `{"Slots":[]}`, 400, wire.BadRequest},
		{"no slots", heartbeat, "application/json", `{"running":[],"skills_version":""}`, 400, wire.BadRequest},
		{"nothing of what runs", heartbeat, "application/json", `{"slots":[],"skills_version":""}`, 400, wire.BadRequest},
		{"no version of the skills", heartbeat, "application/json", `{"slots":[],"running":[]}`, 400, wire.BadRequest},
		{"nothing at all", heartbeat, "application/json", `{}`, 400, wire.BadRequest},
		{"something behind it", heartbeat, "application/json", `{} {}`, 400, wire.BadRequest},
		{"another kind", heartbeat, "text/plain", `{}`, 415, wire.BadRequest},
		{"too large", heartbeat, "application/json", `{"skills_version":"` + strings.Repeat("x", maxBody) + `"}`, 413, wire.PayloadTooLarge},
		{"a screen too large", planner, "application/json", `{"screen":"` + strings.Repeat("A", maxPlanBody) + `"}`, 413, wire.PayloadTooLarge},
		{"a screen that is no base64", planner, "application/json", `{"screen":"?"}`, 400, wire.BadRequest},
		{"a short nonce", "/v1/hosts/" + r.bundle.Rack + "/hello", "application/json", `{"nonce":"x","generation":1,"boot":"b","session":1}`, 400, wire.BadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
			q.Header.Set("Content-Type", c.kind)
			q.Header.Set("Authorization", "Bearer "+r.bundle.Bearer)
			w := httptest.NewRecorder()
			s.server.Public().ServeHTTP(w, q)
			var f failure
			if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != c.status || f.Error == nil || f.Error.Code != c.code {
				t.Errorf("got %d %s", w.Code, w.Body.String())
			}
		})
	}
	for _, body := range []string{`{"slots":[],"running":[],"skills_version":""}`, `{"slots":null,"running":null,"skills_version":"v1"}`} {
		if _, err := r.callHTTP(wire.TypeHeartbeat, []byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	r.hello()
	if _, err := r.callMQTT(wire.TypeHeartbeat, json.RawMessage(`{"running":[],"skills_version":""}`)); !wire.Is(err, wire.BadRequest) {
		t.Errorf("over MQTT: %v", err)
	}
}

func TestAHostReadsItsOwnDecisionsOnly(t *testing.T) {
	s := newSite(t)
	r, other := s.rack("acme"), s.rack("acme")
	task, _, err := s.fleet.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.callHTTP(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		id := fmt.Sprintf("r%d", i)
		_, err := s.store.Begin(t.Context(), enroll.Caller{Tenant: "acme", Rack: r.bundle.Rack}.Scope(), store.PlanRequest{
			Host: r.bundle.Rack, ID: id, Ref: store.Ref{Task: task.TaskID, Attempt: 1}, Owner: "o", Lease: time.Minute,
		})
		if err == nil {
			_, err = s.store.Finish(t.Context(), acme.Scope(), store.Finish{
				Host: r.bundle.Rack, RequestID: id, Owner: "o", SystemPrompt: "s", UserPrompt: "u", Tool: "tap", Arguments: json.RawMessage(`{"element":1}`), Profile: "p",
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := "/v1/tasks/" + task.TaskID + "/decisions?attempt=1&limit=2"
	_, raw, err := s.http(http.MethodGet, path, r.bundle.Bearer, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p page[Decision]
	if err := json.Unmarshal(raw, &p); err != nil || len(p.Items) != 2 || p.Next == "" || p.Items[1].StepIndex != 1 {
		t.Fatalf("got %s, %v", raw, err)
	}
	_, raw, err = s.http(http.MethodGet, path+"&after="+p.Next, r.bundle.Bearer, nil)
	if json.Unmarshal(raw, &p) != nil || err != nil || p.Items[0].StepIndex != 2 {
		t.Errorf("the rest: %s, %v", raw, err)
	}
	if answer, _, _ := s.http(http.MethodGet, path, other.bundle.Bearer, nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("another host sees it: %d", answer.StatusCode)
	}
	if answer, _, _ := s.http(http.MethodGet, path, "", nil); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody sees it: %d", answer.StatusCode)
	}
}

func FuzzHostBodies(f *testing.F) {
	for _, seed := range []string{`{"slots":[],"running":[]}`, `{"slot":1,"claim_id":"c"}`, `{"task_id":"x","attempt":1,"outcome":"failed"}`, `[]`, `{"screen":"AA=="}`} {
		for i := range 4 {
			f.Add(i, seed)
		}
	}
	types := []wire.Type{wire.TypeHeartbeat, wire.TypeClaim, wire.TypeResult, wire.TypePlanRequest}
	s := newSite(f)
	r := s.rack("acme")
	f.Fuzz(func(t *testing.T, which int, body string) {
		typ := types[uint(which)%uint(len(types))]
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/hosts/"+r.bundle.Rack+"/"+paths[typ], strings.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+r.bundle.Bearer)
		w := httptest.NewRecorder()
		s.server.Public().ServeHTTP(w, q)
		if w.Code >= 500 {
			t.Errorf("got %d %s", w.Code, w.Body.String())
		}
	})
}
