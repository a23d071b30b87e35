package foreign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig/cloudrig"
	"phonerack/sync/wire"
)

// TestForeignCredentialsNeitherReadNorWriteAnotherRacksTopics: rack A's certificate in the hands of somebody who also
// knows rack B's MAC secret, so that nothing but the broker stands between.
func TestForeignCredentialsNeitherReadNorWriteAnotherRacksTopics(t *testing.T) {
	cloud := startCloud(t, cloudrig.Options{})
	a, b := addRack(t, cloud, "a"), addRack(t, cloud, "b")
	a.hello(1)
	b.hello(1)
	f := readFigures(t, cloud)
	t.Run("reads", func(t *testing.T) { cannotRead(t, cloud, a, b) })
	t.Run("writes", func(t *testing.T) { cannotWrite(t, cloud, a, b, f) })
	t.Run("another rack's client id", func(t *testing.T) { cannotTakeOver(t, cloud, a, b) })
	t.Run("other certificates", func(t *testing.T) { cannotComeIn(t, a) })
	t.Run("revoked", func(t *testing.T) { isCutOff(t, cloud, a, b) })
	f.same(t, cloud)
}

// on is a client's word for the test that runs it.
func (c *client) on(t *testing.T) *client {
	other := *c
	other.t = t
	return &other
}

func cannotRead(t *testing.T, cloud *cloudrig.Cloud, a, b *client) {
	a, b = a.on(t), b.on(t)
	down := wire.DownFilter(b.bundle.Tenant, b.bundle.Rack)
	filters := []string{
		down, b.topic(wire.Down, wire.KindPlan).String(), b.topic(wire.Up, wire.KindState).String(), strings.Replace(down, "dn/+", "up/+", 1),
		strings.Replace(down, "dn/+", "#", 1), "#", "+/#", "pr/#", "pr/v1/#", "pr/v1/+/+/dn/plan", "pr/v1/+/+/up/plan", "$SYS/#", "$MQTT/#",
		"$JS/#", "$JS/API/#", "$JS.API.>", "$KV/#", "_INBOX/#", ">", "pr/v1/*/*/dn/*", "$share/cloud/" + down, "$share/rackcloud/pr/v1/+/+/up/plan", "$SHARE/x/" + down,
	}
	for _, filter := range filters {
		if out, _ := a.run(nil, "mosquitto_sub", "-t", filter, "-E"); !strings.Contains(out, "denied") {
			t.Errorf("a subscription to %s is not refused: %q", filter, out)
		}
	}
	own := wire.DownFilter(a.bundle.Tenant, a.bundle.Rack)
	if out, err := a.run(nil, "mosquitto_sub", "-t", own, "-E"); err != nil || strings.Contains(out, "denied") {
		t.Fatalf("its own topics are refused: %v: %s", err, out)
	}

	// All at once, for a broker that says one thing and does another.
	ear := a.listen(append(filters, own)...)
	send(t, cloud, b)
	b.publish(b.topic(wire.Up, wire.KindEvent), b.event("read.me"))
	eventually(t, "the event arrives", func() bool { return events(t, cloud, b, "read.me") == 1 })
	id := send(t, cloud, a)
	eventually(t, "its own command arrives", func() bool { return strings.Contains(ear.String(), id) })
	time.Sleep(soon)
	ear.stop()
	for line := range strings.Lines(ear.String()) {
		if strings.Contains(line, "PUBLISH") && strings.Contains(line, b.bundle.Rack) {
			t.Errorf("heard of another rack: %s", line)
		}
	}
}

// send sends a command to a rack and gives its id.
func send(t *testing.T, cloud *cloudrig.Cloud, to *client) string {
	t.Helper()
	var c struct {
		ID string `json:"command_id"`
	}
	if err := cloud.Ask(t.Context(), &c, "command", "send", "ping", to.bundle.Rack); err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// event is one that the cloud would store.
func (c *client) event(kind string) []byte {
	c.t.Helper()
	return c.sign(c.topic(wire.Up, wire.KindEvent), fmt.Sprintf(`{"type":"event","body":{"kind":%q,"at":%d}}`, kind, time.Now().UnixMilli()))
}

func cannotWrite(t *testing.T, cloud *cloudrig.Cloud, a, b *client, f figures) {
	a, b = a.on(t), b.on(t)
	ear := b.listen(wire.DownFilter(b.bundle.Tenant, b.bundle.Rack))
	down := func(c *client, kind wire.Kind) []byte {
		return c.sign(c.topic(wire.Down, kind), fmt.Sprintf(`{"type":"task.cancel","sess":"nonce-of-session-0001","body":{"task_id":"foreign","attempt":1,"for":%q}}`, c.bundle.Rack))
	}
	state := b.sign(b.topic(wire.Up, wire.KindState), `{"type":"state","exp":0,"body":{"state":"offline","generation":1,"session":1}}`, "--life", "0")
	for _, c := range []struct {
		topic wire.Topic
		frame []byte
		more  []string
	}{
		{b.topic(wire.Up, wire.KindEvent), b.event("foreign"), nil},
		{b.topic(wire.Up, wire.KindEvent), a.event("foreign"), nil},
		{b.topic(wire.Up, wire.KindEvent), b.event("foreign"), []string{"-r"}},
		{b.topic(wire.Up, wire.KindState), state, []string{"-r"}},
		{b.topic(wire.Up, wire.KindState), nil, []string{"-r"}}, // deletes the retained one
		{b.topic(wire.Down, wire.KindTask), down(b, wire.KindTask), nil},
		{b.topic(wire.Down, wire.KindDesired), down(b, wire.KindTask), []string{"-r"}},
		{a.topic(wire.Down, wire.KindTask), down(a, wire.KindTask), nil},
		{a.topic(wire.Down, wire.KindDesired), down(a, wire.KindTask), []string{"-r"}},
	} {
		if c.frame == nil {
			c.more = append(c.more, "-n")
		} else {
			c.more = append(c.more, "-s")
		}
		// Confirmed or not: MQTT 3.1.1 has no word for refused.
		_, _ = a.run(c.frame, "mosquitto_pub", append(c.more, "-t", c.topic.String())...)
	}
	for _, topic := range []string{"$MQTT/msgs/" + b.topic(wire.Down, wire.KindTask).String(), "$JS/API/STREAM/NAMES", "$SYS/REQ/USER/INFO"} {
		_, _ = a.run(nil, "mosquitto_pub", "-t", topic, "-m", "foreign")
	}
	// What A may say, and what the cloud says to B, does arrive.
	a.publish(a.topic(wire.Up, wire.KindEvent), a.event("own"))
	eventually(t, "its own event arrives", func() bool { return events(t, cloud, a, "own") == 1 })
	id := send(t, cloud, b)
	eventually(t, "the cloud's command arrives", func() bool { return strings.Contains(ear.String(), id) })
	time.Sleep(soon)
	ear.stop()
	if strings.Contains(ear.String(), "foreign") {
		t.Errorf("another rack has spoken on the way down:\n%s", ear)
	}
	if n := events(t, cloud, b, "foreign"); n != 0 {
		t.Errorf("another rack has told %d events", n)
	}
	f.same(t, cloud)
	if p := presence(t, cloud, b); p != "online" {
		t.Errorf("another rack has made it %s", p)
	}
	if out, _ := a.run(nil, "mosquitto_sub", "-t", wire.DownFilter(a.bundle.Tenant, a.bundle.Rack), "-W", "1"); strings.Contains(out, "foreign") {
		t.Errorf("it has left itself a retained frame: %s", out)
	}
}

func presence(t *testing.T, cloud *cloudrig.Cloud, of *client) string {
	t.Helper()
	var h struct {
		Presence string `json:"presence"`
	}
	if err := cloud.Ask(t.Context(), &h, "host", "show", of.bundle.Rack); err != nil {
		t.Fatal(err)
	}
	return h.Presence
}

func cannotTakeOver(t *testing.T, cloud *cloudrig.Cloud, a, b *client) {
	a, b = a.on(t), b.on(t)
	down := wire.DownFilter(b.bundle.Tenant, b.bundle.Rack)
	ear := b.listen(down)
	for _, id := range []string{b.bundle.Rack, "cloud", "", "x"} {
		if out, err := a.runAs(id, a.login, nil, "mosquitto_sub", "-t", down, "-E"); err == nil {
			t.Errorf("the client id %q was let in: %s", id, out)
		}
	}
	for _, user := range []string{b.bundle.Rack, "cloud"} {
		if out, err := a.run(nil, "mosquitto_sub", "-t", down, "-E", "-u", user, "-P", b.bundle.BrokerPassword); err == nil {
			t.Errorf("the user name %q was let in: %s", user, out)
		}
	}
	id := send(t, cloud, b)
	eventually(t, "the owner hears its command", func() bool { return strings.Contains(ear.String(), id) })
	if n := strings.Count(ear.String(), "sending CONNECT"); n != 1 {
		t.Errorf("the owner had to connect %d times", n)
	}
}

func cannotComeIn(t *testing.T, a *client) {
	a = a.on(t)
	ca := a.login[:2]
	forged := forge(t, a.bundle.Rack)
	for name, login := range map[string][]string{
		"no certificate":                 ca,
		"the bearer for a password":      append([]string{"-u", a.bundle.Rack, "-P", a.bundle.Bearer}, ca...),
		"the MAC secret for a password":  append([]string{"-u", a.bundle.Rack, "-P", a.bundle.MACSecret}, ca...),
		"a certificate of somebody else": append([]string{"--cert", filepath.Join(forged, "cert"), "--key", filepath.Join(forged, "key")}, ca...),
	} {
		if out, err := a.runAs(a.bundle.Rack, login, nil, "mosquitto_pub", "-t", a.topic(wire.Up, wire.KindEvent).String(), "-m", "x"); err == nil {
			t.Errorf("%s was let in: %s", name, out)
		}
	}
	if out, err := a.run(nil, "mosquitto_sub", "-t", wire.DownFilter(a.bundle.Tenant, a.bundle.Rack), "-E"); err != nil {
		t.Errorf("its own certificate is refused: %v: %s", err, out)
	}
}

// forge makes a certificate with a rack's name that nobody has issued.
func forge(t *testing.T, rack string) (dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rack}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func isCutOff(t *testing.T, cloud *cloudrig.Cloud, a, b *client) {
	a, b = a.on(t), b.on(t)
	ear := a.listen(wire.DownFilter(a.bundle.Tenant, a.bundle.Rack))
	if _, err := cloud.Ctl(t.Context(), io.Discard, "host", "revoke", a.bundle.Rack); err != nil {
		t.Fatal(err)
	}
	select { // mosquitto_sub tries once more after it was cut off, is refused, and ends
	case <-ear.ended:
		if !strings.Contains(ear.String(), "not authorised") {
			t.Errorf("it has ended for another reason:\n%s", ear)
		}
	case <-time.After(patience):
		t.Errorf("a revoked rack is still connected:\n%s", ear)
	}
	if out, err := a.run(a.event("revoked"), "mosquitto_pub", "-t", a.topic(wire.Up, wire.KindEvent).String(), "-s"); err == nil {
		t.Errorf("a revoked rack was let in: %s", out)
	}
	b.publish(b.topic(wire.Up, wire.KindEvent), b.event("still.here"))
	eventually(t, "the other rack's event arrives", func() bool { return events(t, cloud, b, "still.here") == 1 })
	if n := events(t, cloud, a, "revoked"); n != 0 {
		t.Errorf("a revoked rack has told %d events", n)
	}
}
