package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/bustest"
	"phonerack/cloud/bus/embedded"
	"phonerack/cloud/durable"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byCertificate knows racks by the name in their certificate, or else by their password.
type byCertificate struct{ bustest.Racks }

func (b *byCertificate) Authenticate(ctx context.Context, l bus.Login) (bus.Identity, error) {
	if l.Certificate == nil {
		return b.Racks.Authenticate(ctx, l)
	}
	return bus.Identity{Tenant: bustest.Tenant, Rack: l.Certificate.Subject.CommonName}, nil
}

func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t *testing.T, s *embedded.Server) bus.Bus {
	t.Helper()
	b, err := s.Open("cloud", bus.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestRacksWithCertificates: a certificate of the authority is the login; one that somebody else has made, or another rack's, is
// none. Over websocket the server does not tell what certificate there was, so that a password is needed.
func TestRacksWithCertificates(t *testing.T) {
	a := bustest.NewAuthority()
	s := start(t, embedded.Options{
		Dir: t.TempDir(), MQTT: "127.0.0.1:0", Websocket: "127.0.0.1:0", TLS: a.Server(), Authenticator: new(byCertificate),
	})
	b := open(t, s)
	var got bustest.Record
	bustest.Serve(t, b, got.Handle, wire.KindTask)
	forged := a.Client("")
	forged.Certificates = bustest.NewAuthority().Client("r1").Certificates
	for name, c := range map[string]struct {
		url  string
		good bustest.Login
	}{
		"tcp":       {"ssl://" + s.MQTTAddr(), bustest.Login{Rack: "r1", TLS: a.Client("r1"), NoUser: true}},
		"websocket": {"wss://" + s.WebsocketAddr() + "/mqtt", bustest.Login{Rack: "r1", TLS: a.Client("")}},
	} {
		t.Run(name, func(t *testing.T) {
			broker := &bustest.Broker{URLs: []string{c.url}}
			r := broker.Connect(t, c.good)
			r.Send(t, wire.KindTask, []byte(name))
			bustest.Eventually(t, 5*time.Second, "the frame comes", func() bool { return got.Has(name) })
			for what, l := range map[string]bustest.Login{
				"no certificate":       {Rack: "r1", TLS: a.Client(""), NoUser: true},
				"a wrong password":     {Rack: "r1", TLS: a.Client(""), Password: "wrong"},
				"a forged certificate": {Rack: "r1", TLS: forged, NoUser: true},
				"another rack's":       {Rack: "r1", TLS: a.Client("r2"), NoUser: true},
				"an odd name":          {Rack: "r*", TLS: a.Client("r*"), NoUser: true},
			} {
				if r, err := broker.Dial(l); err == nil {
					r.Leave()
					t.Errorf("%s: let in", what)
				}
			}
		})
	}
}

// TestAFolderHasOneServer: a second one is refused while the first runs, and takes the folder over when it has ended.
func TestAFolderHasOneServer(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), MQTT: "127.0.0.1:0", Authenticator: new(bustest.Racks)}
	first, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := embedded.Start(t.Context(), o); !errors.Is(err, durable.ErrTaken) {
		if err == nil {
			err = second.Close()
		}
		t.Errorf("the second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, o)
}

// TestRestartKeepsWhatIsRetained: state and desired configuration survive the process, on the same folder.
func TestRestartKeepsWhatIsRetained(t *testing.T) {
	o := embedded.Options{Dir: filepath.Join(t.TempDir(), "new"), MQTT: "127.0.0.1:0", Authenticator: new(bustest.Racks)}
	func() {
		s, err := embedded.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b, err := s.Open("cloud", bus.Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		broker := &bustest.Broker{URLs: []string{"tcp://" + s.MQTTAddr()}}
		r, err := broker.Dial(bustest.Login{Rack: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		r.Send(t, wire.KindState, []byte("state"))
		r.Leave()
		if err := b.Publish(t.Context(), wire.Topic{Tenant: bustest.Tenant, Rack: "r1", Direction: wire.Down, Kind: wire.KindDesired}, []byte("desired")); err != nil {
			t.Fatal(err)
		}
		// nats-server stores what is retained after it has acknowledged it; once others get it, it is stored.
		var seen bustest.Record
		bustest.Observe(t, b, seen.Handle)
		bustest.Eventually(t, 5*time.Second, "the state is stored", func() bool { return seen.Has("state") })
		again, err := broker.Dial(bustest.Login{Rack: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Leave()
		again.Receive(t, 1)
	}()
	s := start(t, o)
	b := open(t, s)
	// A server that has just started reads what is retained while it takes clients: the first may come too early for it.
	var seen bustest.Record
	bustest.Eventually(t, 10*time.Second, "the state is there", func() bool {
		stop := bustest.Observe(t, b, seen.Handle)
		defer stop()
		return within(300*time.Millisecond, func() bool { return seen.Has("state") })
	})
	broker := &bustest.Broker{URLs: []string{"tcp://" + s.MQTTAddr()}}
	bustest.Eventually(t, 10*time.Second, "the desired configuration is there", func() bool {
		r, err := broker.Dial(bustest.Login{Rack: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Leave()
		if !within(300*time.Millisecond, func() bool { return len(r.Got()) > 0 }) {
			return false
		}
		if m := r.Got()[0]; string(m.Payload()) != "desired" || !m.Retained() {
			t.Errorf("got %s, retained %t", m.Payload(), m.Retained())
		}
		return true
	})
}

// within tells whether something comes true in time.
func within(limit time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// TestStartSaysWhatIsWrong: in time, and with the server's own words.
// TestNoSubscriptionIsAFile: the server writes files of subscriptions all the time, and waits for each when it stops: a
// thousand racks kept it for ten seconds.
func TestNoSubscriptionIsAFile(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Options{Dir: dir, MQTT: "127.0.0.1:0", Authenticator: new(bustest.Racks)})
	b := open(t, s)
	r := (&bustest.Broker{URLs: []string{"tcp://" + s.MQTTAddr()}}).Connect(t, bustest.Login{Rack: "r1"})
	if err := b.Publish(t.Context(), wire.Topic{Tenant: bustest.Tenant, Rack: "r1", Direction: wire.Down, Kind: wire.KindTask}, []byte("a")); err != nil {
		t.Fatal(err)
	}
	r.Receive(t, 1)
	streams, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
	if err != nil || len(streams) == 0 {
		t.Fatalf("there are no streams: %v", err)
	}
	// The server's own subscription to its retained frames is not one of a rack.
	if files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "$MQTT_msgs", "obs", "*")); err != nil || len(files) > 0 {
		t.Errorf("subscriptions in files: %v, %v", files, err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]embedded.Options{
		"address already in use": {Dir: t.TempDir(), MQTT: l.Addr().String()},
		"not a directory":        {Dir: file, MQTT: "127.0.0.1:0"},
		"missing port":           {Dir: t.TempDir(), MQTT: "127.0.0.1"},
		"authenticator":          {Dir: t.TempDir(), MQTT: "127.0.0.1:0"},
	} {
		if want != "authenticator" {
			o.Authenticator = new(byCertificate)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		s, err := embedded.Start(ctx, o)
		cancel()
		if err == nil {
			s.Close()
			t.Errorf("%s: it starts", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// TestClientsThatSpeakNATSAreRefused: a rack's password opens MQTT alone.
func TestClientsThatSpeakNATSAreRefused(t *testing.T) {
	s := start(t, embedded.Options{Dir: t.TempDir(), MQTT: "127.0.0.1:0", Authenticator: new(bustest.Racks)})
	c, err := net.Dial("tcp", s.MQTTAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(c, "CONNECT {\"user\":\"r1\",\"pass\":%q}\r\nPING\r\n", bustest.Password("r1"))
	if answer, _ := io.ReadAll(c); strings.Contains(string(answer), "PONG") {
		t.Errorf("the server answered %q", answer)
	}
}

// TestThousandRacks: one subscription with QoS 1 each; 1000 is where NATS's default of consumers for a stream ends.
func TestThousandRacks(t *testing.T) {
	const racks, atOnce = 1020, 32
	connected := make([]*bustest.Rack, racks)
	t.Cleanup(func() { // after the server has gone, which is quicker
		for _, r := range connected {
			if r != nil {
				r.Leave()
			}
		}
	})
	s := start(t, embedded.Options{Dir: t.TempDir(), MQTT: "127.0.0.1:0", Authenticator: new(bustest.Racks)})
	b := open(t, s)
	bustest.Serve(t, b, func(ctx context.Context, f bus.Frame) {
		f.Topic.Direction = wire.Down
		if err := b.Publish(ctx, f.Topic, f.Data); err != nil {
			t.Error(err)
		}
	}, wire.KindTask)
	broker := &bustest.Broker{URLs: []string{"tcp://" + s.MQTTAddr()}}
	began := time.Now()
	each := func(do func(i int)) {
		var next atomic.Int32
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < racks; i = int(next.Add(1)) - 1 {
					do(i)
				}
			})
		}
		all.Wait()
	}
	each(func(i int) {
		r, err := broker.Dial(bustest.Login{Rack: fmt.Sprint("r", i), Keep: true}) // else the server deletes them one by one at the end
		if err != nil {
			t.Error(err)
			return
		}
		connected[i] = r
	})
	t.Logf("%d racks came in within %s", racks, time.Since(began))
	if t.Failed() {
		return
	}
	each(func(i int) {
		connected[i].Client.Publish(connected[i].Topic(wire.KindTask), 1, false, fmt.Sprint("r", i)).WaitTimeout(10 * time.Second)
	})
	for i, r := range connected {
		if m := r.Receive(t, 1); string(m[0].Payload()) != fmt.Sprint("r", i) {
			t.Errorf("rack %d was answered %s", i, m[0].Payload())
		}
	}
	t.Logf("and were answered within %s", time.Since(began))
}
