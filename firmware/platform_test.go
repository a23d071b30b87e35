package firmware_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/sync/catalog"
)

// platform is a platform of skills over HTTPS with one skill, for a rack of the configuration's name.
type platform struct {
	*httptest.Server
	key     ed25519.PrivateKey
	skill   *model.Skill
	version atomic.Int64
	asked   atomic.Int32 // manifests that were asked for with the credential
	bearer  atomic.Value // string
}

func newPlatform(t *testing.T) *platform {
	p := &platform{key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)), skill: &model.Skill{
		ID: "tips", Name: "Tips", Description: "How to look.", Kind: model.Knowledge, Version: "1", Subscription: "all", UpdatedAt: time.UnixMilli(1).UTC(), Content: "Look twice.",
	}}
	p.version.Store(1)
	p.bearer.Store("s3cret")
	body, err := p.skill.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+p.bearer.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v1/blobs/") {
			_, _ = w.Write(body)
			return
		}
		p.asked.Add(1)
		now := time.Now()
		m := model.Manifest{
			Rack: "bench", Epoch: 1, Version: p.version.Load(), Complete: true, Issued: now.UnixMilli(), Expires: now.Add(time.Hour).UnixMilli(),
			Subscriptions: []model.SubscriptionState{{ID: "all", State: model.Active}}, Skills: []model.Entry{model.EntryOf(p.skill, body)},
		}
		raw, err := m.Encode()
		if err != nil {
			t.Error(err)
		}
		w.Header().Set(catalog.HeaderSignature, base64.StdEncoding.EncodeToString(model.SignManifest(p.key, raw)))
		w.Header().Set(catalog.HeaderKeyID, "k1")
		_, _ = w.Write(raw)
	}))
	t.Cleanup(p.Close)
	return p
}

// subscribe makes a bench's rack follow the platform; pinned says whether it knows its authority.
func (p *platform) subscribe(t *testing.T, b *bench, pinned bool) (credential string) {
	credential = filepath.Join(t.TempDir(), "credential")
	if err := os.WriteFile(credential, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Platform{
		URL: p.URL + "/v1", CredentialFile: credential, Rack: "bench", Trusted: map[string]ed25519.PublicKey{"k1": p.key.Public().(ed25519.PublicKey)},
		Authorities: x509.NewCertPool(),
	}
	if pinned {
		c.Authorities.AddCert(p.Certificate())
	}
	b.config.Skills.Platform, b.config.Skills.PollInterval = c, config.Duration(time.Second)
	return credential
}

// TestSkillsComeFromThePlatformOfTheConfiguration: with no cloud at all, and from nobody else if there is one.
func TestSkillsComeFromThePlatformOfTheConfiguration(t *testing.T) {
	t.Parallel()
	b, p := newBench(t, 1), newPlatform(t)
	credential := p.subscribe(t, b, true)
	b.start()
	if got := b.catalog(func(s catalog.Status) bool { return s.Synced }); got.Skills != 1 || got.Problem != "" {
		t.Errorf("%+v", got)
	}
	var d action.SkillDetail
	if err := b.Call(t.Context(), "skill_show", action.SkillArgs{Name: "catalog/tips"}, &d); err != nil || d.Content != "Look twice." {
		t.Errorf("%+v, %v", d, err)
	}
	t.Run("it is asked at each interval, with the credential of that moment", func(t *testing.T) {
		p.bearer.Store("anew")
		b.catalog(func(s catalog.Status) bool { return strings.Contains(s.Problem, "does not accept the credential") })
		if err := os.WriteFile(credential, []byte("anew\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.version.Store(2)
		b.catalog(func(s catalog.Status) bool { return s.Version == 2 && s.Problem == "" })
	})
	b.stop()
	t.Run("offline the copy of a restart serves, and the copy of another platform does not", func(t *testing.T) {
		p.Close()
		b.start()
		if got := b.catalog(func(s catalog.Status) bool { return s.Problem != "" }); got.Version != 2 || got.Skills != 1 {
			t.Errorf("%+v", got)
		}
		b.stop()
		b.config.Skills.Platform.Subscription = "other"
		b.start()
		if got := b.catalog(func(s catalog.Status) bool { return true }); got.Synced || got.Skills != 0 {
			t.Errorf("%+v", got)
		}
		b.stop()
	})
}

func TestACloudIsNotAskedForSkillsBesideAPlatform(t *testing.T) {
	t.Parallel()
	b, p := newBench(t, 1), newPlatform(t)
	s := b.subscribe()
	p.subscribe(t, b, true)
	b.start()
	if got := b.catalog(func(s catalog.Status) bool { return s.Synced }); got.Skills != 1 {
		t.Errorf("%+v", got)
	}
	if n := len(s.Heard("skill.changes")); n != 0 {
		t.Errorf("the cloud was asked %d times", n)
	}
	b.stop()
}

// TestAPlatformOfAnotherAuthorityHearsNoCredential: the pin of the configuration is the only authority.
func TestAPlatformOfAnotherAuthorityHearsNoCredential(t *testing.T) {
	b, p := newBench(t, 1), newPlatform(t)
	p.subscribe(t, b, false)
	b.start()
	if got := b.catalog(func(s catalog.Status) bool { return s.Problem != "" }); got.Synced || !strings.Contains(got.Problem, "certificate") {
		t.Errorf("%+v", got)
	}
	if n := p.asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
	b.stop()
}
