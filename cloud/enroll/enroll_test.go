package enroll

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/cloud/bus"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type desk struct {
	*Office
	store *store.Store
	vault *vault.Vault
	dir   string
	now   atomic.Int64
	ended []string
}

var acme = store.Scope{Tenant: "acme", Actor: "admin:test"}

func (d *desk) clock() time.Time { return time.UnixMilli(d.now.Load()) }

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{dir: t.TempDir()}
	d.now.Store(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).UnixMilli())
	kek := filepath.Join(d.dir, "kek")
	_, err := vault.Generate(kek)
	if err == nil {
		d.vault, err = vault.Open(kek)
	}
	if err == nil {
		d.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(d.dir, "cloud.db"), store.Options{Clock: d.clock})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.store.Close() })
	ca, err := OpenAuthority(d.dir, d.vault, d.clock)
	if err != nil {
		t.Fatal(err)
	}
	d.Office = New(Options{
		Store: d.store, Vault: d.vault, Authority: ca, Clock: d.clock, Broker: func() string { return "ssl://b:1" },
		Ended: func(_ context.Context, rack string) { d.ended = append(d.ended, rack) },
	})
	return d
}

func (d *desk) enrol(t *testing.T) wire.Bundle {
	t.Helper()
	b, err := d.Enrol(t.Context(), acme, "bench", nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func certificate(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOneSetIsIssuedThatBelongsTogether(t *testing.T) {
	d := newDesk(t)
	b := d.enrol(t)
	raw, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := wire.ParseBundle(raw); err != nil || again != b {
		t.Fatalf("the bundle is not one: %v", err)
	}
	pair, err := tls.X509KeyPair([]byte(b.Certificate), []byte(b.Key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(b.CA))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: d.clock(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || pair.Leaf.Subject.CommonName != b.Rack {
		t.Errorf("the certificate of %s: %v", pair.Leaf.Subject, err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: d.clock(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a rack's certificate can be a server's")
	}
	secret := []byte(b.BrokerPassword)
	for _, other := range []string{b.Bearer, b.MACSecret} {
		if string(secret) == other {
			t.Error("the broker learns another credential")
		}
	}
	c, err := d.Bearer(t.Context(), b.Bearer)
	if err != nil || c != (Caller{"acme", b.Rack}) {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, odd := range []string{"", "prb_", b.Bearer + "x", b.MACSecret, b.BrokerPassword} {
		if _, err := d.Bearer(t.Context(), odd); !wire.Is(err, wire.Unauthenticated) {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

func TestTheBrokerLetsARackInAsItselfOnly(t *testing.T) {
	d := newDesk(t)
	b, other := d.enrol(t), d.enrol(t)
	mine := certificate(t, b.Certificate)
	for _, c := range []struct {
		name  string
		login bus.Login
		in    bool
	}{
		{"certificate", bus.Login{ClientID: b.Rack, Certificate: mine}, true},
		{"certificate and user", bus.Login{ClientID: b.Rack, Username: b.Rack, Certificate: mine}, true},
		{"password", bus.Login{ClientID: b.Rack, Username: b.Rack, Password: b.BrokerPassword}, true},
		{"certificate under another id", bus.Login{ClientID: other.Rack, Certificate: mine}, false},
		{"password under another id", bus.Login{ClientID: other.Rack, Username: other.Rack, Password: b.BrokerPassword}, false},
		{"another user", bus.Login{ClientID: b.Rack, Username: other.Rack, Password: b.BrokerPassword}, false},
		{"certificate of another and right password", bus.Login{ClientID: b.Rack, Password: b.BrokerPassword, Certificate: certificate(t, other.Certificate)}, false},
		{"bearer for a password", bus.Login{ClientID: b.Rack, Username: b.Rack, Password: b.Bearer}, false},
		{"no password", bus.Login{ClientID: b.Rack, Username: b.Rack}, false},
		{"nobody", bus.Login{ClientID: "nobody", Password: b.BrokerPassword}, false},
		{"no id", bus.Login{ClientID: "a/b", Password: b.BrokerPassword}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := d.Authenticate(t.Context(), c.login)
			if c.in && (err != nil || id != (bus.Identity{Tenant: "acme", Rack: b.Rack})) || !c.in && err == nil {
				t.Errorf("got %+v, %v", id, err)
			}
		})
	}
	if err := d.Revoke(t.Context(), acme, b.Rack); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authenticate(t.Context(), bus.Login{ClientID: b.Rack, Certificate: mine}); err == nil {
		t.Error("a revoked certificate opens")
	}
	if len(d.ended) != 1 || d.ended[0] != b.Rack {
		t.Errorf("ended: %v", d.ended)
	}
}

func TestSetsComeAndGoAsAWhole(t *testing.T) {
	d := newDesk(t)
	first := d.enrol(t)
	c := Caller{"acme", first.Rack}
	live := func(want ...wire.Bundle) {
		t.Helper()
		ring, err := d.Keys(t.Context(), c)
		if err != nil || len(ring.KIDs()) != len(want) {
			t.Fatalf("%d sets are alive where %d should: %v", len(ring.KIDs()), len(want), err)
		}
		for i, b := range want {
			if ring.KIDs()[i] != b.KID {
				t.Errorf("set %d is %s", i, ring.KIDs()[i])
			}
		}
	}
	second, err := d.Rotate(t.Context(), acme, first.Rack)
	if err != nil {
		t.Fatal(err)
	}
	live(second, first)
	ring, _ := d.Keys(t.Context(), c)
	if k, _ := ring.Newest(); k.KID != first.KID {
		t.Errorf("pushes are signed with %s, which the rack may not have yet", k.KID)
	}
	if err := d.Proved(t.Context(), c, ring, second.KID); err != nil {
		t.Fatal(err)
	}
	live(second)
	if _, err := d.Bearer(t.Context(), first.Bearer); !wire.Is(err, wire.Unauthenticated) {
		t.Errorf("the bearer of the set that ended: %v", err)
	}
	third, err := d.Issue(t.Context(), acme, first.Rack)
	if err != nil {
		t.Fatal(err)
	}
	live(third)
	d.now.Add((6 * 365 * 24 * time.Hour).Milliseconds()) // all sets have run out
	live()
	fourth, err := d.Rotate(t.Context(), acme, first.Rack) // its number cannot be guessed any more
	if err != nil {
		t.Fatal(err)
	}
	live(fourth)
	if err := d.Revoke(t.Context(), acme, first.Rack); err != nil {
		t.Fatal(err)
	}
	live()
}

func TestTheAuthorityIsMadeOnceAndItsKeyIsSealed(t *testing.T) {
	d := newDesk(t)
	again, err := OpenAuthority(d.dir, d.vault, d.clock)
	if err != nil || string(again.PEM()) != string(d.o.Authority.PEM()) {
		t.Fatalf("it was made anew: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(d.dir, caKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseKey(before); err == nil {
		t.Error("the key lies open")
	}
	b := d.enrol(t)
	if _, err := vault.Add(filepath.Join(d.dir, "kek")); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(d.dir, "kek"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(d.dir, v, d.clock); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(filepath.Join(d.dir, caKeyFile))
	if vault.KeyID(after) != v.Writing() {
		t.Error("the key is not sealed anew")
	}
	if err := SealAnew(t.Context(), d.store, v, d.o.Log); err != nil {
		t.Fatal(err)
	}
	if left, err := d.store.System().SealedUnder(t.Context(), v.Writing(), 10); err != nil || len(left) != 0 {
		t.Errorf("%d values are left: %v", len(left), err)
	}
	office := New(Options{Store: d.store, Vault: v, Authority: d.o.Authority, Clock: d.clock})
	if ring, err := office.Keys(t.Context(), Caller{"acme", b.Rack}); err != nil || len(ring.KIDs()) != 1 {
		t.Errorf("the secret does not open any more: %v", err)
	}
	if err := os.Remove(filepath.Join(d.dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(d.dir, v, d.clock); err == nil {
		t.Error("a lost key was replaced without a word")
	}
}

func TestAListenersCertificateIsRenewedWhileItRuns(t *testing.T) {
	d := newDesk(t)
	config := d.o.Authority.Server([]string{"cloud.example", "127.0.0.1"})
	first, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cloud.example", "127.0.0.1"} {
		if _, err := first.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: d.o.Authority.Pool(), CurrentTime: d.clock()}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if same, _ := config.GetCertificate(nil); same != first {
		t.Error("each connection gets a certificate of its own")
	}
	d.now.Add((61 * 24 * time.Hour).Milliseconds())
	if next, _ := config.GetCertificate(nil); next == first {
		t.Error("it was not renewed")
	}
}

// TestAPowerCutWhileTheAuthorityIsMade leaves it made, or makes it anew: no cut leaves half of it in the way.
func TestAPowerCutWhileTheAuthorityIsMade(t *testing.T) {
	d := newDesk(t)
	file := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	key, certificate := file(caKeyFile), file(caFile)
	for name, left := range map[string]map[string][]byte{
		"before the key":                   {caNewFile: certificate},
		"before the certificate's name":    {caNewFile: certificate, caKeyFile: key},
		"after it, in a folder used twice": {caNewFile: []byte("of an older try"), caKeyFile: key, caFile: certificate},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range left {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			first, err := OpenAuthority(dir, d.vault, d.clock)
			if err != nil {
				t.Fatal(err)
			}
			if left[caKeyFile] != nil && string(first.PEM()) != string(certificate) {
				t.Error("the certificate was not taken up")
			}
			again, err := OpenAuthority(dir, d.vault, d.clock)
			if err != nil || string(again.PEM()) != string(first.PEM()) {
				t.Errorf("it was made anew: %v", err)
			}
		})
	}
}
