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
