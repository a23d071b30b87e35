package wire

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func exampleBundle() Bundle {
	return Bundle{
		V: 1, Rack: "r1", Tenant: "default", Bearer: "the-bearer", KID: "k1",
		SkillKeys: FormatSkillKeys(map[string]ed25519.PublicKey{"k2": bytes.Repeat([]byte{2}, 32), "k1": bytes.Repeat([]byte{1}, 32)}),
		MACSecret: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, SecretBytes)), Key: "the-key", BrokerPassword: "the-password",
	}
}

func TestABundleIsReadAsItWasWritten(t *testing.T) {
	want := exampleBundle()
	raw, err := want.File()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseBundle(raw)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if keys, err := got.ManifestKeys(); err != nil || len(keys) != 2 || keys["k1"][0] != 1 || keys["k2"][31] != 2 {
		t.Errorf("keys are %v, %v", keys, err)
	}
	for _, odd := range []string{
		`{}`,
		strings.Replace(string(raw), `"v": 1`, `"v": 2`, 1),
		strings.Replace(string(raw), `"r1"`, `"r/1"`, 1),
		strings.Replace(string(raw), `"the-bearer"`, `""`, 1),
		strings.Replace(string(raw), `"kid"`, `"KID"`, 1),
		strings.Replace(string(raw), want.MACSecret, "YWJj", 1),
		strings.Replace(string(raw), `"k1:`, `"k1:A`, 1),
		strings.Replace(string(raw), `"k1:`, `"k2:`, 1),
		strings.Replace(string(raw), `"k1:`, `"K1:`, 1),
		string(raw) + "{}",
	} {
		if _, err := ParseBundle([]byte(odd)); err == nil {
			t.Errorf("accepted: %s", odd)
		}
	}
}

func TestABundleNeverPrintsItsSecrets(t *testing.T) {
	b := exampleBundle()
	for _, s := range []string{fmt.Sprint(b), fmt.Sprintf("%+v", b), fmt.Sprintf("%#v", b), b.LogValue().String()} {
		for _, secret := range []string{b.Bearer, b.MACSecret, b.Key, b.BrokerPassword} {
			if strings.Contains(s, secret) {
				t.Errorf("%q shows %q", s, secret)
			}
		}
	}
}

func TestTheBrokersPasswordTellsNothingElse(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, SecretBytes)
	a, err := BrokerPassword(secret)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := DeriveKeys("k1", secret)
	for _, other := range [][]byte{secret, k.k.up, k.k.down} {
		if strings.Contains(a, base64.RawURLEncoding.EncodeToString(other)) {
			t.Error("the password is one of the keys")
		}
	}
	if _, err := BrokerPassword(secret[1:]); err == nil {
		t.Error("a short secret was taken")
	}
}
