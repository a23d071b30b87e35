package provider_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/sync/wire"
)

// poison is what an environment may hold for the SDKs and for net/http.
var poison = []string{
	"ANTHROPIC_API_KEY=poison-1", "ANTHROPIC_AUTH_TOKEN=poison-2", "ANTHROPIC_BASE_URL=http://poison-3.test", "ANTHROPIC_CUSTOM_HEADERS=X-Poison: poison-4",
	"ANTHROPIC_PROFILE=poison-5", "ANTHROPIC_WEBHOOK_SIGNING_KEY=poison-6", "ANTHROPIC_FEDERATION_RULE_ID=fdrl_poison-7", "ANTHROPIC_ORGANIZATION_ID=poison-8",
	"ANTHROPIC_IDENTITY_TOKEN=poison-9", "ANTHROPIC_OPEN_TELEMETRY=true", "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
	"OPENAI_API_KEY=poison-10", "OPENAI_ADMIN_KEY=poison-11", "OPENAI_BASE_URL=http://poison-12.test/v1", "OPENAI_ORG_ID=poison-13", "OPENAI_PROJECT_ID=poison-14",
	"OPENAI_CUSTOM_HEADERS=X-Poison: poison-15", "OPENAI_WEBHOOK_SECRET=poison-16",
	"HTTP_PROXY=http://u:poison-17@poison-17.test:1", "HTTPS_PROXY=http://poison-18.test:1", "ALL_PROXY=socks5://poison-19.test:1", "http_proxy=http://poison-20.test:1",
	"https_proxy=http://poison-21.test:1", "NO_PROXY=", "no_proxy=",
}

// poisoned tells the test below that it is the one with the environment.
const poisoned = "PHONERACK_TEST_POISONED"

// TestSpec003_NoProviderEnvironment is "Database profile is the only planner
// configuration source": a process that starts with every provider variable set
// sends no byte of them, and asks whom its profile says.
func TestSpec003_NoProviderEnvironment(t *testing.T) {
	if os.Getenv(poisoned) != "" {
		askPoisoned(t)
		return
	}
	home := t.TempDir() // the SDK's profile files are a source too
	dir := filepath.Join(home, ".config", "anthropic", "configs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default.json", "poison-5.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"base_url":"http://poison-22.test","api_key":"poison-23"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSpec003_NoProviderEnvironment$", "-test.v")
	cmd.Env = append(append(os.Environ(), poison...), "HOME="+home, "XDG_CONFIG_HOME=", poisoned+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte("asked with the profile's key")) != len(provider.Kinds()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func askPoisoned(t *testing.T) {
	if os.Getenv("OPENAI_ORG_ID") != "poison-13" {
		t.Fatal("the environment is not poisoned")
	}
	for _, kind := range provider.Kinds() {
		s := pt.StartInMemory(pt.Config{RecordWire: true, Default: func(*pt.Seen) pt.Reply { return good }})
		r := newRig(s, kind)
		r.cfg.BaseURL = strings.Replace(r.cfg.BaseURL, "localhost", "provider.test", 1) // proxies are for others than localhost
		r.cfg.Options.PlainHTTP = true
		if _, err := r.client(t).Call(t.Context(), request()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		sent := s.Wire()
		if bytes.Contains(bytes.ToLower(sent), []byte("poison")) {
			t.Errorf("%s: the environment is on the wire: %s", kind, shown(sent))
		}
		if len(r.dials) != 1 || r.dials[0] != "provider.test:80" {
			t.Errorf("%s: connections to %v", kind, r.dials)
		}
		if bytes.Contains(sent, []byte(pt.Key)) {
			fmt.Println("asked with the profile's key")
		}
		r.close()
	}
}

// overTCP is a rig on a loopback port.
func overTCP(t testing.TB, kind provider.Kind, cfg pt.Config) *rig {
	t.Helper()
	s, err := pt.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(s, kind)
	t.Cleanup(r.close)
	return r
}

// TestRealConnections shows on TCP what the others show in memory: resets,
// refusals, and that nothing stays behind.
func TestRealConnections(t *testing.T) {
	for _, kind := range provider.Kinds() {
		r := overTCP(t, kind, pt.Config{})
		if out, err := r.call(t, pt.Reset(), good); err != nil || out.Attempts != 2 {
			t.Errorf("%s: %+v, %v", kind, out, err)
		}
		out, err := r.call(t, pt.CutBody(good))
		refusal(t, out, err, wire.ProviderUnreachable)
		r.cfg.Timeout = 300 * time.Millisecond
		out, err = r.call(t, pt.Hang())
		refusal(t, out, err, wire.ProviderTimeout)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens there now
	c, err := provider.New(provider.Config{Provider: provider.OpenAIChat, Model: "m", BaseURL: "http://" + l.Addr().String(), Timeout: 5 * time.Second, Options: provider.Options{MaxAttempts: 2}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Call(t.Context(), request())
	if d := refusal(t, out, err, wire.ProviderUnreachable).Args["detail"].(string); !strings.Contains(d, "refused") || out.Attempts != 2 {
		t.Errorf("detail %q, %d attempts", d, out.Attempts)
	}
}

func TestTLS(t *testing.T) {
	fake := pt.StartInMemory(pt.Config{Default: func(*pt.Seen) pt.Reply { return good }})
	defer fake.Close()
	start := func(version uint16) (*httptest.Server, *x509.CertPool) {
		s := httptest.NewUnstartedServer(fake)
		s.EnableHTTP2 = version == 0
		s.Config.ErrorLog = log.New(bytes.NewBuffer(nil), "", 0)
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version}
		s.StartTLS()
		t.Cleanup(s.Close)
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		return s, roots
	}
	s, roots := start(0)
	old, oldRoots := start(tls.VersionTLS11)
	for _, c := range []struct {
		name     string
		url      string
		roots    *x509.CertPool
		code     wire.Code
		attempts int
	}{
		{"trusted", s.URL, roots, "", 1},
		{"untrusted", s.URL, x509.NewCertPool(), wire.ProviderUnreachable, 1}, // no repetition makes it trusted
		{"TLS 1.1", old.URL, oldRoots, wire.ProviderUnreachable, 1},
	} {
		r := newRig(fake, provider.Anthropic)
		r.cfg.BaseURL, r.cfg.Pool, r.cfg.Options.MaxAttempts = c.url, &provider.Pool{Roots: c.roots}, 2
		if c.name == "TLS 1.1" {
			r.cfg.Options.MaxAttempts = 1
		}
		out, err := r.client(t).Call(t.Context(), request())
		if c.code == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if c.code != "" {
			refusal(t, out, err, c.code)
		}
		if out.Attempts != c.attempts {
			t.Errorf("%s: %d attempts", c.name, out.Attempts)
		}
		r.cfg.Pool.CloseIdle()
	}
}

func TestProxyOfTheProfile(t *testing.T) {
	fake := pt.StartInMemory(pt.Config{Default: func(*pt.Seen) pt.Reply { return good }})
	defer fake.Close()
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		fake.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	r := newRig(fake, provider.OpenAIResponses)
	r.cfg.BaseURL, r.cfg.Proxy, r.cfg.Options.PlainHTTP, r.cfg.Pool = "http://provider.test/v1", proxy.URL, true, &provider.Pool{}
	if _, err := r.client(t).Call(t.Context(), request()); err != nil || len(asked) != 1 || asked[0] != "provider.test" {
		t.Errorf("%v, %v", asked, err)
	}
	r.cfg.Pool.CloseIdle()
}
