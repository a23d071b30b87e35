package bustest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/embedded"
)

// Tenant is the tenant of all racks of these brokers but those that [Racks] is told of.
const Tenant = "t1"

// Broker is a running broker with what the suite needs to know of it. It ends with the test.
type Broker struct {
	Name  string
	Racks *Racks
	URLs  []string // of the MQTT listeners for racks
	Dirs  []string // where it stores

	// Replica tells how another process opens a bus; the zero value if none can.
	Replica Replica
	// Kicker is nil where a live connection cannot be ended.
	Kicker bus.Kicker
	// RefusesForeign: a subscription to what is another's is refused, not only without effect.
	RefusesForeign bool
	// Encrypted: nothing that racks send can be read in the store.
	Encrypted bool
	// Restart ends the broker roughly and starts it again on its store; nil where buses cannot outlive it.
	Restart func(t testing.TB)
	// Settle makes the broker write what it would write later; nil if it always has.
	Settle func(t testing.TB)

	open func(group string, l bus.Limits) (bus.Bus, error)
}

// Open makes a bus that ends with the test.
func (b *Broker) Open(t testing.TB, group string, l bus.Limits) bus.Bus {
	t.Helper()
	c, err := b.open(group, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Racks is an authenticator that knows each rack whose password is [Password] of it.
type Racks struct {
	mu      sync.Mutex // guards revoked
	revoked map[string]bool
}

// Password is the broker password of a rack in tests.
func Password(rack string) string { return "password-of-" + rack }

// Authenticate implements bus.Authenticator.
func (r *Racks) Authenticate(_ context.Context, l bus.Login) (bus.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Password != Password(l.Username) || r.revoked[l.Username] {
		return bus.Identity{}, errors.New("unknown rack")
	}
	return bus.Identity{Tenant: Tenant, Rack: l.Username}, nil
}

// Revoke makes a rack unknown.
func (r *Racks) Revoke(rack string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked == nil {
		r.revoked = make(map[string]bool)
	}
	r.revoked[rack] = true
}

// Embedded starts the embedded server.
func Embedded(t testing.TB) *Broker {
	t.Helper()
	racks, dir := new(Racks), t.TempDir()
	s, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, MQTT: "127.0.0.1:0", Authenticator: racks, Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Broker{
		Name: "embedded", Racks: racks, URLs: []string{"tcp://" + s.MQTTAddr()}, Dirs: []string{dir}, Kicker: s, RefusesForeign: true,
		open: func(group string, l bus.Limits) (bus.Bus, error) { return s.Open(group, l, logger(t)) },
	}
}

// logger writes to the log of the test as long as it runs.
func logger(t testing.TB) *slog.Logger {
	w := &testLog{t: t}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
	})
	return slog.New(slog.NewTextHandler(w, nil))
}

type testLog struct {
	t    testing.TB
	mu   sync.Mutex // guards over
	over bool
}

func (w *testLog) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// freePorts gives addresses on which nobody listens now.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var list []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list
}

// Eventually waits until ok says yes, at most for limit.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// Ready waits until nothing is wrong with a bus.
func Ready(t testing.TB, b bus.Bus) {
	t.Helper()
	var err error
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if err = b.Check(t.Context()); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("bus is not ready: ", err)
}
