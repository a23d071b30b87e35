package foreign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/wire"
)

// voice is somebody who has come by the cloud's login at the broker, and even by the rack's MAC secret: he can record what
// the cloud said and say it again, and what he makes himself shows that a good frame would have had its effect.
type voice struct {
	*client
	t  *testing.T
	as []string // login
}

// newVoice reads the login from the files of the broker.
func newVoice(t *testing.T, s *sitetest.Site, conf string) voice {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(conf, "rackcloud.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var flags struct {
		URL      []string `toml:"mqtt_url"`
		Password string   `toml:"broker_password_file"`
	}
	if err := toml.Unmarshal(raw, &flags); err != nil || len(flags.URL) != 1 {
		t.Fatalf("%+v, %v", flags, err)
	}
	password, err := os.ReadFile(flags.Password)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s.Bundle)
	c.broker = strings.TrimPrefix(flags.URL[0], "ssl://")
	// The listener wants a certificate of the authority besides, and the rack's is one.
	return voice{c, t, append([]string{"-u", "cloud", "-P", strings.TrimSpace(string(password))}, c.login...)}
}

func (v voice) say(k wire.Kind, frame []byte, more ...string) {
	v.t.Helper()
	args := append([]string{"-t", v.topic(wire.Down, k).String(), "-s"}, more...)
	if out, err := v.runAs("voice", v.as, frame, "mosquitto_pub", args...); err != nil {
		v.t.Errorf("publish to dn/%s: %v: %s", k, err, out)
	}
}

// session records the nonce that the rack's frames carry, while an order makes it speak.
func (v voice) session(ctx context.Context, s *sitetest.Site) string {
	v.t.Helper()
	heard := make(chan string, 1)
	go func() {
		out, err := v.runAs("ear", v.as, nil, "mosquitto_sub", "-t", v.topic(wire.Up, wire.KindCommand).String(), "-C", "1", "-N", "-W", "9")
		if err != nil {
			v.t.Errorf("nothing is heard: %v: %s", err, out)
		}
		heard <- out
	}()
	for {
		if err := s.Cloud.Ask(ctx, nil, "command", "send", "ping", v.bundle.Rack, "--wait", "10s"); err != nil {
			v.t.Fatal(err)
		}
		select {
		case frame := <-heard:
			m, err := wire.Open(v.topic(wire.Up, wire.KindCommand), func(kid string) (wire.Keys, bool) { return v.keys(), kid == v.bundle.KID }, []byte(frame))
			if err != nil || m.Sess == "" {
				v.t.Fatalf("%v: %.300q", err, frame)
			}
			return m.Sess
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// refusals are the counters of the rack's link that speak of frames that had no effect.
func refusals(t *testing.T, s *sitetest.Site) map[string]uint64 {
	t.Helper()
	var out bytes.Buffer
	if exit, err := s.Rack.Ctl(t.Context(), &out, "--json", "link", "status"); err != nil || exit != 0 {
		t.Fatalf("exit code %d, %v", exit, err)
	}
	var status action.LinkStatus
	if err := json.Unmarshal(out.Bytes(), &status); err != nil || status.Link == nil {
		t.Fatalf("%v: %s", err, &out)
	}
	of := map[string]uint64{}
	for name, n := range status.Link.Counters {
		if n > 0 && (strings.HasPrefix(name, "refused_") || name == "ignored_repeated") {
			of[name] = n
		}
	}
	return of
}

// TestFramesToARackThatAreNotOfNowAreRefusedAndCounted says bad frames to rackd over mosquitto. Each orders a restart of
// the phone, which would be seen.
func TestFramesToARackThatAreNotOfNowAreRefusedAndCounted(t *testing.T) {
	var conf string
	var reboots atomic.Int32
	s := sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 1, Replicas: 1, DSN: "sqlite:" + filepath.Join(t.TempDir(), "cloud.db"),
		Phone: func(p *rackrig.PhoneSpec) { p.OnReboot = func(string) { reboots.Add(1) } },
		Broker: func(ctx context.Context, p sitetest.Programs, dir, files string) (*sitetest.Broker, error) {
			conf = filepath.Join(files, "conf")
			return sitetest.StartMosquitto(ctx, p, dir, files)
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	v := newVoice(t, s, conf)
	nonce := v.session(ctx, s)
	var last commandView // that the rack has taken
	newest := func() commandView {
		t.Helper()
		if err := s.Cloud.Ask(ctx, &last, "command", "send", "ping", v.bundle.Rack, "--wait", "20s"); err != nil {
			t.Fatal(err)
		}
		return last
	}
	newest()
	reboot := func(sess, more string) string {
		return fmt.Sprintf(`{"type":"cmd.execute","sess":%q%s,"body":{"command_id":"by-hand","seq":%d,"name":"reboot","target":{"slot":1},"expires":%d}}`,
			sess, more, last.Seq+1, time.Now().Add(time.Hour).UnixMilli())
	}
	topic := v.topic(wire.Down, wire.KindCommand)
	good := v.sign(topic, reboot(nonce, ""))
	mac := strings.Fields(string(good[:200]))[3]
	other := v.sign(v.topic(wire.Down, wire.KindTask), fmt.Sprintf(`{"type":"task.none","sess":%q}`, nonce))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(v.bundle.MACSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Minute).UnixMilli()
	want := refusals(t, s)
	counted := func(t *testing.T, name string) {
		t.Helper()
		want[name]++
		var now map[string]uint64
		eventually(t, "a frame is counted as "+name, func() bool {
			now = refusals(t, s)
			return now[name] >= want[name]
		})
		if !maps.Equal(now, want) {
			t.Errorf("counted: %v; wanted: %v", now, want)
			want = now
		}
		if n := reboots.Load(); n != 0 {
			t.Errorf("the phone was restarted %d times", n)
		}
	}
	for _, c := range []struct {
		name, counter string
		kind          wire.Kind
		frame         []byte
	}{
		{"one byte of the JSON", "refused_mac", wire.KindCommand, bytes.Replace(good, []byte("by-hand"), []byte("by-band"), 1)},
		{"one byte of the MAC", "refused_mac", wire.KindCommand, bytes.Replace(good, []byte(mac), []byte(flip(mac)), 1)},
		{"signed for another topic of the rack", "refused_mac", wire.KindCommand, other},
		{"signed for the way up", "refused_mac", wire.KindCommand, v.sign(v.topic(wire.Up, wire.KindCommand), fmt.Sprintf(`{"type":"cmd.pending","sess":%q,"body":{"after":0}}`, nonce))},
		{"of another session", "refused_session", wire.KindCommand, v.sign(topic, reboot("a-session-that-is-over", ""))},
		{"of no session", "refused_session", wire.KindCommand, v.sign(topic, reboot("", ""))},
		{"expired", "refused_expired", wire.KindCommand, v.sign(topic, reboot(nonce, fmt.Sprintf(`,"ts":%d,"exp":%d`, old, old+60_000)))},
		{"just over 900 KiB", "refused_oversize", wire.KindCommand, append(bytes.Clone(good), make([]byte, wire.MaxFrame+1-len(good))...)},
		{"a key id that nobody has", "refused_unknown_key", wire.KindCommand, v.signBy([]string{"--secret", secret, "--kid", "feedface"}, topic, reboot(nonce, ""))},
		{"no frame", "refused_malformed", wire.KindCommand, []byte(reboot(nonce, ""))},
		{"no sense", "refused_content", wire.KindDesired, v.sign(v.topic(wire.Down, wire.KindDesired), `{"type":"desired","exp":0,"body":{"version":0,"config":{}}}`, "--life", "0")},
	} {
		t.Run(c.name, func(t *testing.T) {
			v.on(t).say(c.kind, c.frame)
			counted(t, c.counter)
		})
	}
	t.Run("retained", func(t *testing.T) {
		// To who is there it comes as any other, so it is of no session; to who comes later the broker tells that it was stored.
		v.on(t).say(wire.KindCommand, v.sign(topic, reboot("a-session-that-is-over", "")), "-r")
		counted(t, "refused_session")
		s.Rack.Kill()
		if err := s.Rack.StartRackd(ctx); err != nil {
			t.Fatal(err)
		}
		want = map[string]uint64{}
		counted(t, "refused_retained")
	})
	t.Run("the frames of the session before", func(t *testing.T) {
		v.on(t).say(wire.KindCommand, good)
		counted(t, "refused_session")
	})
	if _, err := rackrig.WaitState(ctx, s.Rack, action.Ready, 1); err != nil {
		t.Fatal(err)
	}
	t.Run("the same bytes twice", func(t *testing.T) {
		v := v.on(t)
		nonce := v.session(ctx, s)
		newest()
		good := v.sign(topic, reboot(nonce, ""))
		want = refusals(t, s)
		v.say(wire.KindCommand, good)
		eventually(t, "the proper frame has its effect", func() bool { return reboots.Load() == 1 })
		reboots.Store(0)
		v.say(wire.KindCommand, good)
		counted(t, "ignored_repeated")
		if n := reboots.Load(); n != 0 {
			t.Errorf("the phone was restarted again, %d times", n)
		}
	})
}

func (v voice) on(t *testing.T) voice { return voice{v.client.on(t), t, v.as} }
