package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"phonerack/cloud/api"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/store"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// other is a second rack of the cloud, without anything but its link.
type other struct {
	t *testing.T
	l *link.Link
}

func join(t *testing.T, s *site, bundle string) *other {
	t.Helper()
	raw, err := os.ReadFile(bundle)
	s.Must(err)
	b, err := wire.ParseBundle(raw)
	s.Must(err)
	keys, err := b.Keys()
	s.Must(err)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		s.Must(os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	db, err := store.Open(store.Options{Path: filepath.Join(dir, "rack.db")})
	s.Must(err)
	bucket, err := db.Bucket("link")
	s.Must(err)
	l, err := link.New(link.Options{
		Broker: b.Broker, Tenant: b.Tenant, Rack: b.Rack, Keys: func() []wire.Keys { return []wire.Keys{keys} }, Generation: 1, Boot: "1-abc", Bucket: bucket,
		TLS: link.TLS{CAFile: file("ca.pem", b.CA), CertFile: file("rack.pem", b.Certificate), KeyFile: file("rack.key", b.Key)},
	})
	s.Must(err)
	ctx, cancel := context.WithCancel(s.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		db.Close()
	})
	online, stop := context.WithTimeout(s.Ctx, sitetest.Soon)
	defer stop()
	s.Must(l.WaitOnline(online))
	return &other{t, l}
}

// ask gives the answer to a question; a refusal is an error.
func (o *other) ask(what wire.Type, body any) (*wire.Message, error) {
	ctx, cancel := context.WithTimeout(o.t.Context(), 20*time.Second)
	defer cancel()
	return o.l.Request(ctx, link.Call{Kind: wire.KindSkill, Type: what, Body: body})
}

// hashOf is the hash of a skill's body, as its manifest names it.
func (s *site) hashOf(id string) string {
	s.T.Helper()
	var k api.PublishedSkill
	s.Do(&k, "skill", "show", id)
	return k.SHA256
}
