package cloudrig_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider/providertest"
	"phonerack/firmware/rig/cloudrig"
	"phonerack/firmware/rig/cloudrig/sitetest"
)

// withoutKeys takes the provider keys out of the environment that the programs inherit.
func withoutKeys(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} {
		t.Setenv(name, "") // so that it comes back
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// done submits a task and wants it to succeed; it returns what the cloud has of its decisions.
func done(t *testing.T, ctx context.Context, s *sitetest.Site, goal string) []cloudrig.Decision {
	t.Helper()
	id, err := s.Cloud.Submit(ctx, "--goal", goal)
	if err != nil {
		t.Fatal(err)
	}
	end, err := s.Cloud.Await(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if end.State != "succeeded" {
		t.Fatalf("the task has ended as %s", end.State)
	}
	var log []cloudrig.Decision
	if err := s.Cloud.Ask(ctx, &log, "decisions", id); err != nil {
		t.Fatal(err)
	}
	return log
}

// TestSpec003_CloudProxyTransport: Requirement: Cloud-proxy transport removes the need for Host Agent-held provider credentials.
func TestSpec003_CloudProxyTransport(t *testing.T) {
	t.Run("Host configured for cloud-proxy transport has no local provider key", func(t *testing.T) {
		withoutKeys(t)
		s := sitetest.New(t, t.Context(), sitetest.Options{Phones: 1}) // its bound is its own: programs are built
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		log := done(t, ctx, s, "Send the message 'No key is here' to Ana")
		if len(log) == 0 || log[len(log)-1].Tool != "finish" {
			t.Errorf("the cloud's decisions: %+v", log)
		}
		if n := s.Sent("No key is here"); n != 1 {
			t.Errorf("the message was sent %d times", n)
		}
	})
}

const directly = `[planner]
transport = "direct"
[planner.direct]
provider = "anthropic"
model = "fake-model-1"
base_url = %q
key_file = %q
[cloud]
identity = %%q
`

// TestSpec003_CloudSideHistory: Requirement: Cloud-side planner decision history is scoped to cloud-proxy transport.
func TestSpec003_CloudSideHistory(t *testing.T) {
	t.Run("A Host uses direct-to-provider transport", func(t *testing.T) {
		withoutKeys(t)
		provider, err := providertest.Start(providertest.Config{Default: func(*providertest.Seen) providertest.Reply {
			return providertest.Call("finish", `{"success":true,"message":"there is nothing to do"}`)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer provider.Close()
		key := filepath.Join(t.TempDir(), "provider.key")
		if err := os.WriteFile(key, []byte(providertest.Key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := sitetest.New(t, t.Context(), sitetest.Options{Phones: 1, Config: fmt.Sprintf(directly, provider.URL, key)})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if log := done(t, ctx, s, "look around"); len(log) != 0 {
			t.Errorf("the cloud has decisions of a rack that asks its provider itself: %+v", log)
		}
		if provider.Calls() == 0 {
			t.Error("the provider was not asked")
		}
		for name, log := range map[string]string{"rackd": s.Rack.Log(), "rackcloud": s.Cloud.Log()} {
			if strings.Contains(log, providertest.Key) {
				t.Errorf("%s has logged the key", name)
			}
		}
	})
}
