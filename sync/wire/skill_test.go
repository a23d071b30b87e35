package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestLargestPageFitsInAFrame: a manifest's page is base64 within the JSON.
func TestLargestPageFitsInAFrame(t *testing.T) {
	page := bytes.Repeat([]byte{0xff}, MaxPage)
	body, err := json.Marshal(SkillManifest{Manifest: page, Offset: 1 << 40, Size: 1 << 41, Sig: make([]byte, 64), KeyID: "k", NextPage: string(bytes.Repeat([]byte("p"), 200))})
	if err != nil {
		t.Fatal(err)
	}
	if room := MaxJSON - len(body); room < 4<<10 {
		t.Errorf("%d bytes are left for the rest of the JSON", room)
	}
	var again SkillManifest
	if err := Unmarshal(body, &again); err != nil || !bytes.Equal(again.Manifest, page) {
		t.Error(err)
	}
}
