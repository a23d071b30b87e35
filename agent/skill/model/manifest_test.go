package model_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/skill/model"
)

// signer is a key made of a seed, so that signatures are the same in every run.
func signer(seed byte) (ed25519.PrivateKey, ed25519.PublicKey) {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(seed), ed25519.SeedSize)))
	return key, key.Public().(ed25519.PublicKey)
}

func TestManifestIsProvedBeforeItIsRead(t *testing.T) {
	raw, err := os.ReadFile("testdata/manifest/valid/complete.json")
	if err != nil {
		t.Fatal(err)
	}
	old, oldPublic := signer('o')
	now, nowPublic := signer('n')
	keys := model.Keys{"k1": nowPublic}
	sig := model.SignManifest(now, raw)
	m, err := model.OpenManifest(raw, sig, "k1", keys)
	if err != nil || m.Version != 17 || !m.Complete || len(m.Skills) != 2 || m.IssuedAt().UnixMilli() != m.Issued || !m.ExpiresAt().After(m.IssuedAt()) {
		t.Fatalf("%+v, %v", m, err)
	}
	encoded, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.OpenManifest(encoded, sig, "k1", keys); !errors.Is(err, model.ErrBadSignature) {
		t.Errorf("the same manifest in other bytes: %v", err)
	}
	for name, c := range map[string]struct {
		raw, sig []byte
		key      string
		keys     model.Keys
		want     error
	}{
		"one bit":                   {flip(raw, 9), sig, "k1", keys, model.ErrBadSignature},
		"garbage that is not JSON":  {[]byte("{"), sig, "k1", keys, model.ErrBadSignature},
		"signature cut":             {raw, sig[:63], "k1", keys, model.ErrBadSignature},
		"no signature":              {raw, nil, "k1", keys, model.ErrBadSignature},
		"signed with an old key":    {raw, model.SignManifest(old, raw), "k1", keys, model.ErrBadSignature},
		"a key that is gone":        {raw, model.SignManifest(old, raw), "k0", keys, model.ErrUnknownKey},
		"an old key, still taken":   {raw, model.SignManifest(old, raw), "k0", model.Keys{"k0": oldPublic, "k1": nowPublic}, nil},
		"a key of the wrong length": {raw, sig, "k1", model.Keys{"k1": nowPublic[:31]}, model.ErrUnknownKey},
		"no keys":                   {raw, sig, "k1", nil, model.ErrUnknownKey},
	} {
		if _, err := model.OpenManifest(c.raw, c.sig, c.key, c.keys); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := make([]byte, model.MaxManifestBytes+1)
	if _, err := model.OpenManifest(long, model.SignManifest(now, long), "k1", keys); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too long: %v", err)
	}
}

func flip(raw []byte, at int) []byte {
	c := []byte(string(raw))
	c[at] ^= 1
	return c
}

// TestLargestManifestFits holds the bounds together.
func TestLargestManifestFits(t *testing.T) {
	m := &model.Manifest{Rack: strings.Repeat("r", 63), Epoch: 1 << 62, Version: 1 << 62, Complete: true, Issued: 1, Expires: 2}
	for i := range model.MaxCatalog {
		m.Skills = append(m.Skills, model.Entry{
			ID: fmt.Sprintf("%063d", i), Version: strings.Repeat("語", 50), Kind: model.FlowTemplate, SHA256: model.Sum(nil), Size: model.MaxSkillBytes,
		})
	}
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := model.ParseManifest(raw); err != nil || len(again.Skills) != model.MaxCatalog {
		t.Error(err)
	}
}

func TestSkillIsOpenedByItsEntry(t *testing.T) {
	s := published(t, "search.yaml", search)
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := model.EntryOf(s, raw)
	if got, err := model.OpenSkill(e, raw); err != nil || !cmp.Equal(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(*model.Entry, *[]byte){
		"size":    func(e *model.Entry, _ *[]byte) { e.Size++ },
		"hash":    func(e *model.Entry, _ *[]byte) { e.SHA256 = model.Sum(nil) },
		"bytes":   func(_ *model.Entry, raw *[]byte) { *raw = flip(*raw, 40) },
		"id":      func(e *model.Entry, _ *[]byte) { e.ID = "other" },
		"version": func(e *model.Entry, _ *[]byte) { e.Version = "2" },
		"kind":    func(e *model.Entry, _ *[]byte) { e.Kind = model.Knowledge },
		"content": func(e *model.Entry, raw *[]byte) {
			*raw = []byte("{}")
			e.Size, e.SHA256 = 2, model.Sum(*raw)
		},
	} {
		e, raw := e, raw
		change(&e, &raw)
		if _, err := model.OpenSkill(e, raw); err == nil || !strings.HasPrefix(err.Error(), `skill "`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
