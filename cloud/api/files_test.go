package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

// TestARackFetchesTheFilesOfItsTask: by their hashes, as bodies of skills; a rack without the lease learns nothing.
func TestARackFetchesTheFilesOfItsTask(t *testing.T) {
	s := newSite(t)
	r, idle := s.rack("acme"), s.rack("acme")
	r.hello()
	idle.hello()
	var f fleet.File
	status, raw := s.admin(http.MethodPost, "files", octets("the file"))
	if err := json.Unmarshal(raw, &f); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s %v", status, raw, err)
	}
	task := fleet.NewTask{Task: wire.Task{Goal: "g", Inputs: []wire.Input{{Name: "a.txt", SHA256: f.SHA256}}}}
	if status, raw := s.admin(http.MethodPost, "tasks", task); status != http.StatusCreated {
		t.Fatalf("%d %s", status, raw)
	}
	if _, err := r.callMQTT(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil {
		t.Fatal(err)
	}
	a := r.skill(wire.TypeBlobGet, wire.BlobGet{SHA256: f.SHA256})
	var d wire.BlobData
	if err := a.Decode(&d); err != nil || a.Type != wire.TypeBlobData || d.Size != 8 || string(a.Attachment(wire.BlobAttachment)) != "the file" {
		t.Errorf("got %s %s %q", a.Type, a.Body, a.Attachment(wire.BlobAttachment))
	}
	var refusal wire.Refusal
	if a := idle.skill(wire.TypeBlobGet, wire.BlobGet{SHA256: f.SHA256}); a.Type != wire.TypeError || a.Decode(&refusal) != nil || refusal.Code != wire.NotFound {
		t.Errorf("a rack without the lease got %s %s", a.Type, a.Body)
	}
}
