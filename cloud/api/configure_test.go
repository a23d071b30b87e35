package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

func TestADesiredFrameIsOfNoSessionAndNeverExpires(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme") // it has never said a hello
	status, raw := s.admin(http.MethodPost, "hosts/"+r.bundle.Rack+"/configure", json.RawMessage(`{"set":{"claims.paused":true}}`))
	var v fleet.Configuration
	if err := json.Unmarshal(raw, &v); status != http.StatusOK || err != nil || v.Version == 0 {
		t.Fatalf("%d %s %v", status, raw, err)
	}
	frames := s.bus.take()
	if len(frames) != 1 || frames[0].Topic.Kind != wire.KindDesired || frames[0].Topic.Rack != r.bundle.Rack {
		t.Fatalf("sent %+v", frames)
	}
	m, err := wire.Open(frames[0].Topic, func(kid string) (wire.Keys, bool) { return r.keys, kid == r.keys.KID }, frames[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	var d wire.Desired
	if err := m.Decode(&d); err != nil || m.Exp != 0 || m.Sess != "" || m.Type != wire.TypeDesired || int64(d.Version) != v.Version {
		t.Errorf("sent %+v, %+v, %v", m, d, err)
	}
	if status, raw := s.admin(http.MethodGet, "hosts/"+r.bundle.Rack+"/configure", nil); status != http.StatusOK || string(raw) == "" {
		t.Errorf("shown: %d %s", status, raw)
	}
	if status, raw := s.admin(http.MethodPost, "hosts/"+r.bundle.Rack+"/configure", json.RawMessage(`{"set":{"a":1}}`)); status != http.StatusBadRequest {
		t.Errorf("an unknown setting: %d %s", status, raw)
	}
}

func TestARevokedRackLeavesNoConfigurationInTheBroker(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	path := "hosts/" + r.bundle.Rack
	settled := func() *fleet.Settled {
		t.Helper()
		status, raw := s.admin(http.MethodGet, path, nil)
		var h fleet.Host
		if err := json.Unmarshal(raw, &h); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
		return h.Settings
	}
	if got := settled(); got != nil {
		t.Errorf("a rack for which nothing is set shows %+v", got)
	}
	if status, raw := s.admin(http.MethodPost, path+"/configure", json.RawMessage(`{"set":{"claims.paused":true}}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, raw)
	}
	if got := settled(); got == nil || got.Version == 0 || got.Applied != 0 {
		t.Errorf("shown is %+v", got)
	}
	s.bus.take()
	for again := range 2 { // the second time for a broker that was away
		if status, raw := s.admin(http.MethodPost, path+"/revoke", json.RawMessage(`{}`)); status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
		frames := s.bus.take()
		if len(frames) != 1 || frames[0].Topic.Kind != wire.KindDesired || frames[0].Topic.Rack != r.bundle.Rack || len(frames[0].Data) != 0 {
			t.Errorf("revocation %d sends %+v", again, frames)
		}
	}
	if got := settled(); got != nil {
		t.Errorf("a revoked rack shows %+v", got)
	}
	if status, raw := s.admin(http.MethodPost, path+"/configure", json.RawMessage(`{"set":{"claims.paused":true}}`)); status != http.StatusConflict {
		t.Errorf("%d %s", status, raw)
	}
	if frames := s.bus.take(); len(frames) != 0 {
		t.Errorf("a revoked rack is sent %+v", frames)
	}
}
