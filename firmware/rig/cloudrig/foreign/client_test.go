package foreign_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware/rig/cloudrig"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

const (
	patience = 20 * time.Second       // for what must come, also on a loaded machine
	soon     = 300 * time.Millisecond // for what must not come, after what must come has come
)

// startCloud starts rackcloud; its log's end is shown if the test fails.
func startCloud(t *testing.T, o cloudrig.Options) *cloudrig.Cloud {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // programs are built
	defer cancel()
	p, err := sitetest.Build(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o.Program, o.Dir = p.Rackcloud, t.TempDir()
	cloud, err := cloudrig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("rackcloud:\n%s", sitetest.Tail(cloud.Log()))
		}
	})
	return cloud
}

// eventually waits until a thing is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to pass that %s", what)
		}
	}
}

// client runs the MQTT clients of Debian with what a bundle holds.
type client struct {
	t      *testing.T
	bundle wire.Bundle
	path   string // of the bundle
	broker string // host:port
	login  []string
}

// newClient reads a bundle and lays its certificate out in files.
func newClient(t *testing.T, path string) *client {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.ParseBundle(raw)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(b.Broker)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, bundle: b, path: path, broker: u.Host}
	if u.Scheme == "ssl" {
		dir := t.TempDir()
		for name, text := range map[string]string{"ca": b.CA, "cert": b.Certificate, "key": b.Key} {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c.login = append(c.login, map[string]string{"ca": "--cafile", "cert": "--cert", "key": "--key"}[name], file)
		}
	}
	return c
}

// topic is one of the rack's.
func (c *client) topic(d wire.Direction, k wire.Kind) wire.Topic {
	return wire.Topic{Tenant: c.bundle.Tenant, Rack: c.bundle.Rack, Direction: d, Kind: k}
}

// command is one of Debian's clients, with the bundle's certificate unless the caller brings another login.
func (c *client) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	host, port, _ := strings.Cut(c.broker, ":")
	return exec.CommandContext(ctx, program, append([]string{"-h", host, "-p", port, "-V", "mqttv311", "-q", "1"}, args...)...)
}

// run runs one under the rack's own name for ten seconds at most.
func (c *client) run(stdin []byte, program string, args ...string) (string, error) {
	return c.runAs(c.bundle.Rack, c.login, stdin, program, args...)
}

func (c *client) runAs(id string, login []string, stdin []byte, program string, args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	cmd := c.command(ctx, program, append(append([]string{"-i", id}, login...), args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		c.t.Fatalf("%v: run make setup, which installs mosquitto-clients", err)
	}
	return out.String(), err
}

// publish sends bytes; the broker has to confirm them.
func (c *client) publish(topic wire.Topic, frame []byte, more ...string) {
	c.t.Helper()
	if out, err := c.run(frame, "mosquitto_pub", append([]string{"-t", topic.String(), "-s"}, more...)...); err != nil {
		c.t.Errorf("publish to %s: %v: %s", topic, err, out)
	}
}

// ask sends a frame without attachments and returns the first one that comes back. The frame goes as an argument: of a
// file, mosquitto_rr 2.0.11 sends nothing.
func (c *client) ask(k wire.Kind, frame []byte) *wire.Message {
	c.t.Helper()
	answers := k
	if k == wire.KindEvent {
		answers = wire.KindSession
	}
	out, err := c.run(nil, "mosquitto_rr", "-t", c.topic(wire.Up, k).String(), "-e", c.topic(wire.Down, answers).String(), "-m", string(frame), "-N", "-W", "8")
	if err != nil {
		c.t.Fatalf("nothing answers on %s: %v: %s", k, err, out)
	}
	m, err := wire.Open(c.topic(wire.Down, answers), func(kid string) (wire.Keys, bool) { return c.keys(), kid == c.bundle.KID }, []byte(out))
	if err != nil {
		c.t.Fatalf("the answer on %s: %v: %.300q", k, err, out)
	}
	return m
}

func (c *client) keys() wire.Keys {
	c.t.Helper()
	keys, err := c.bundle.Keys()
	if err != nil {
		c.t.Fatal(err)
	}
	return keys
}

// sign makes a frame by rackctl frame sign.
func (c *client) sign(topic wire.Topic, message string, more ...string) []byte {
	c.t.Helper()
	return c.signBy([]string{"--bundle", c.path}, topic, message, more...)
}

func (c *client) signBy(secret []string, topic wire.Topic, message string, more ...string) []byte {
	c.t.Helper()
	p, err := sitetest.Build(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), p.Rackctl, append(append([]string{"frame", "sign", topic.String()}, secret...), more...)...)
	cmd.Stdin = strings.NewReader(message)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	frame, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("rackctl frame sign: %v: %s", err, complaint.String())
	}
	return frame
}

// listener is a mosquitto_sub that goes on until it is stopped.
type listener struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

// Write takes what it prints.
func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *listener) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// listen subscribes under the rack's own name and returns when the broker has answered.
func (c *client) listen(filters ...string) *listener {
	c.t.Helper()
	args := append([]string{"mosquitto_sub", "-i", c.bundle.Rack, "-v", "-d"}, c.login...)
	for _, f := range filters {
		args = append(args, "-t", f)
	}
	host, port, _ := strings.Cut(c.broker, ":")
	args = append(args, "-h", host, "-p", port, "-V", "mqttv311", "-q", "1")
	// Into a pipe it would write only when its buffer is full.
	l := &listener{cmd: exec.Command("stdbuf", append([]string{"-oL"}, args...)...), ended: make(chan struct{})}
	l.cmd.Stdout, l.cmd.Stderr = io.Writer(l), io.Writer(l)
	if err := l.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(l.ended)
		_ = l.cmd.Wait() // it was killed, or the broker has thrown it out: the test looks at its words
	}()
	c.t.Cleanup(l.stop)
	eventually(c.t, "the broker answers the subscription", func() bool { return strings.Contains(l.String(), "Subscribed (mid") })
	return l
}

func (l *listener) stop() {
	_ = l.cmd.Process.Kill() // it may have ended by itself
	<-l.ended
}
