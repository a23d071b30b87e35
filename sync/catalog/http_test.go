package catalog_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// server is the platform over HTTP.
type server struct {
	*world
	bearer, sub string
	since       bool // it tells changes
	seen        []string
	answer      int // a status for everything; 0 for none
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.platform.mu.Lock()
	defer s.platform.mu.Unlock()
	tag := fmt.Sprintf(`"%s-%d-%d"`, s.bearer, s.epoch, s.version)
	s.seen = append(s.seen, r.URL.Path+" "+r.Header.Get("If-None-Match")+" "+r.URL.Query().Get("since_version"))
	hash, isBlob := strings.CutPrefix(r.URL.Path, "/v1/blobs/")
	switch {
	case s.answer != 0:
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(s.answer)
	case r.Header.Get("Authorization") != "Bearer "+s.bearer || !isBlob && r.URL.Query().Get("subscription") != s.sub:
		w.WriteHeader(http.StatusUnauthorized)
	case isBlob:
		for _, skill := range s.entitled() {
			if raw, err := skill.Encode(); err == nil && model.Sum(raw) == hash {
				w.Write(raw)
				return
			}
		}
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
	default:
		since, _ := strconv.ParseInt(r.URL.Query().Get("since_version"), 10, 64)
		if !s.since {
			since = 0
		}
		if since > 0 && r.URL.Query().Get("epoch") != strconv.FormatInt(s.epoch, 10) {
			w.WriteHeader(http.StatusGone)
			return
		}
		m := s.sign(s.manifest(since))
		w.Header().Set("ETag", tag)
		w.Header().Set(catalog.HeaderSignature, base64.StdEncoding.EncodeToString(m.sig))
		w.Header().Set(catalog.HeaderKeyID, m.key)
		w.Write(m.raw)
	}
}

func newServer(t *testing.T, since bool) *server {
	t.Helper()
	s := &server{world: newWorld(t), bearer: "one", sub: "social", since: since}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	p, err := catalog.NewHTTP(catalog.HTTPOptions{
		Base: h.URL + "/v1", Bearer: func() (string, error) { return s.bearer, nil }, Subscription: s.sub, Since: since, Client: h.Client(),
		Now: func() time.Time { return s.at },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.options.Platform = p
	s.restart()
	return s
}

func (s *server) last() string { return s.seen[len(s.seen)-1] }

func TestSpec000_AnotherPlatformAPI(t *testing.T) {
	t.Run("only full-catalog fetch", func(t *testing.T) {
		s := newServer(t, false)
		s.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		s.sync()
		s.want("a=1 b=1")
		s.sync()
		if want := fmt.Sprintf(`/v1/manifest "one-3-%d" `, s.version); s.last() != want {
			t.Errorf("asked %q, want %q", s.last(), want)
		}
		s.remove("a")
		s.publish(tips("b", "2", "social"))
		s.sync()
		s.want("b=2")
	})
	t.Run("since_version incremental sync", func(t *testing.T) {
		s := newServer(t, true)
		s.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		s.sync()
		at := s.c.Copy().Version
		s.remove("a")
		s.sync()
		if s.want("b=1"); !strings.HasSuffix(s.last(), fmt.Sprint(" ", at)) {
			t.Errorf("asked %q", s.last())
		}
		s.epoch, s.version = s.epoch+1, 1
		s.sync() // 410, and then the whole list
		if s.want("b=1"); s.c.Copy().Epoch != 4 {
			t.Errorf("%+v", s.c.Copy())
		}
	})
	t.Run("an ETag is that of one credential and one subscription", func(t *testing.T) {
		s := newServer(t, false)
		s.publish(tips("a", "1", "social"))
		s.sync()
		s.bearer = "two"
		s.sync()
		if s.last() != "/v1/manifest  " {
			t.Errorf("asked %q with another credential", s.last())
		}
	})
	t.Run("an ETag is not believed for ever, nor that of a manifest that was not applied", func(t *testing.T) {
		s := newServer(t, false)
		s.publish(tips("a", "1", "social"))
		s.sync()
		s.publish(tips("a", "2", "social"))
		good := s.keys["k1"]
		s.keys["k1"] = key("other")
		s.refused(model.ErrBadSignature)
		s.keys["k1"] = good
		s.sync()
		s.want("a=2")
		s.at = s.at.Add(23 * time.Hour)
		s.sync()
		if st := s.c.Status(); !st.Issued.Equal(s.at) {
			t.Errorf("issued %v, now %v", st.Issued, s.at)
		}
	})
}

// TestADamagedBodyIsFetchedAnewAlthoughNothingHasChanged: not modified is no answer then.
func TestADamagedBodyIsFetchedAnewAlthoughNothingHasChanged(t *testing.T) {
	s := newServer(t, false)
	s.publish(tips("a", "1", "social"))
	s.sync()
	r, _ := s.c.Copy().Row("a")
	err := s.bucket.Update(func(b *bolt.Bucket) error { return b.Bucket([]byte("bodies")).Delete([]byte(r.SHA256)) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.Skill(r.Entry); err == nil {
		t.Error("it is there")
	}
	s.sync()
	s.want("a=1")
}

func TestStatusesOfAnHTTPPlatform(t *testing.T) {
	for status, want := range map[int]wire.Code{
		404: wire.NotFound, 410: wire.ResyncRequired, 429: wire.LimitExceeded, 503: wire.LimitExceeded,
		302: "", 304: "", 401: "", 403: "", 500: "",
	} {
		s := newServer(t, false)
		s.publish(tips("a", "1", "social"))
		s.sync()
		s.publish(tips("a", "2", "social"))
		s.c.Hint(wire.SkillChanged{Epoch: 3, Version: 99, Removed: []string{"x"}})
		s.answer = status
		asked := len(s.seen)
		err := s.c.Sync(t.Context())
		if err == nil || want != "" && !wire.Is(err, want) || want == "" && !strings.Contains(err.Error(), strconv.Itoa(status)) {
			t.Errorf("%d: %v", status, err)
		}
		if credential := status == 401 || status == 403; credential != errors.Is(err, catalog.ErrCredential) {
			t.Errorf("%d: %v", status, err)
		}
		if want == wire.LimitExceeded && wire.From(err).RetryAfter() != 2*time.Minute {
			t.Errorf("%d: again after %v", status, wire.From(err).RetryAfter())
		}
		if n := len(s.seen) - asked; n > 3 {
			t.Errorf("%d: asked %d times", status, n)
		}
		s.want("a=1")
	}
}

func TestAnHTTPPlatformHasAnAddressAndNothingElse(t *testing.T) {
	for _, base := range []string{"", "ftp://x/", "https://", "https://u:p@x/", "https://x/?q=1"} {
		if _, err := catalog.NewHTTP(catalog.HTTPOptions{Base: base, Bearer: func() (string, error) { return "", nil }}); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
}
