package link_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats-server/v2/server"

	"phonerack/sync/link"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

// realBroker is a broker as it is used in earnest.
type realBroker struct {
	address string // host:port
	restart func() // kills it and starts it again; nil if it cannot
}

const (
	rackPassword  = "rack-password"
	cloudPassword = "cloud-password"
)

func TestLinkOverNATS(t *testing.T) {
	speakOver(t, startNATS(t))
}

func TestLinkOverMosquitto(t *testing.T) {
	speakOver(t, startMosquitto(t))
}

// startNATS runs nats-server inside the test, with allow-lists as the cloud sets them.
func startNATS(t *testing.T) realBroker {
	t.Helper()
	port := freePort(t)
	options := &server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 1 << 20,
		MQTT: server.MQTTOpts{Host: "127.0.0.1", Port: port},
		Users: []*server.User{
			{Username: "rack-1", Password: rackPassword, Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"pr.v1.acme.rack-1.up.*"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"pr.v1.acme.rack-1.dn.*"}},
			}},
			{Username: "cloud", Password: cloudPassword},
		},
	}
	var running *server.Server
	start := func() {
		o := *options
		s, err := server.NewServer(&o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatal("nats-server is not ready")
		}
		running = s
	}
	stop := func() {
		running.Shutdown()
		running.WaitForShutdown()
	}
	start()
	t.Cleanup(stop)
	return realBroker{fmt.Sprintf("127.0.0.1:%d", port), func() { stop(); start() }}
}

// startMosquitto runs Debian's mosquitto with passwords and the pattern of docs/link.md.
func startMosquitto(t *testing.T) realBroker {
	t.Helper()
	path := os.Getenv("PATH") + ":/usr/sbin:/sbin"
	t.Setenv("PATH", path)
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		t.Fatal("mosquitto is not installed, and this test needs it: run make setup, or install the packages mosquitto and mosquitto-clients")
	}
	dir, port := t.TempDir(), freePort(t)
	passwords := filepath.Join(dir, "passwords")
	for user, password := range map[string]string{"rack-1": rackPassword, "cloud": cloudPassword} {
		write(t, passwords+"."+user, nil, 0o600)
		if out, err := exec.CommandContext(t.Context(), "mosquitto_passwd", "-b", passwords+"."+user, user, password).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	var all []byte
	for _, user := range []string{"rack-1", "cloud"} {
		raw, err := os.ReadFile(passwords + "." + user)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	write(t, passwords, all, 0o600)
	acl := write(t, filepath.Join(dir, "acl"), []byte("user cloud\ntopic readwrite pr/#\npattern write pr/v1/+/%u/up/+\npattern read pr/v1/+/%u/dn/+\n"), 0o600)
	config := write(t, filepath.Join(dir, "mosquitto.conf"), fmt.Appendf(nil,
		"listener %d 127.0.0.1\nallow_anonymous false\npassword_file %s\nacl_file %s\npersistence false\nmessage_size_limit 1000000\nuser root\n", port, passwords, acl), 0o600)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	var running *exec.Cmd
	start := func() {
		running = exec.Command(program, "-c", config)
		running.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := running.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("mosquitto does not listen: %v", err)
			}
		}
	}
	stop := func() {
		_ = running.Process.Kill()
		_ = running.Wait()
	}
	start()
	t.Cleanup(func() { stop() })
	return realBroker{address, func() { stop(); start() }}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// cloudAt is the scripted cloud behind a real broker.
func cloudAt(t *testing.T, b *bench, address string) *linktest.Cloud {
	t.Helper()
	start := time.Now()
	var client mqtt.Client
	cloud := linktest.NewCloud(linktest.NewBroker(), func() time.Time { return noon.Add(time.Since(start)) }, keys(t, "k1"))
	heard := make(chan mqtt.Message, 1000)
	cloud.Say = func(topic string, retain bool, frame []byte) {
		client.Publish(topic, 1, retain, frame).WaitTimeout(10 * time.Second)
	}
	o := mqtt.NewClientOptions().AddBroker("tcp://" + address).SetClientID("cloud").SetUsername("cloud").SetPassword(cloudPassword)
	o.SetProtocolVersion(4).SetMaxReconnectInterval(200 * time.Millisecond).SetConnectRetryInterval(100 * time.Millisecond)
	o.SetOnConnectHandler(func(c mqtt.Client) {
		c.Subscribe("pr/v1/+/+/up/+", 1, func(_ mqtt.Client, m mqtt.Message) { heard <- m })
	})
	client = mqtt.NewClient(o)
	if token := client.Connect(); !token.WaitTimeout(10*time.Second) || token.Error() != nil {
		t.Fatalf("the cloud's client: %v", token.Error())
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case m := <-heard:
				cloud.Hear(m.Topic(), m.Payload())
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		client.Disconnect(200)
	})
	time.Sleep(200 * time.Millisecond) // for the subscription
	return cloud
}

// eventually waits for a condition at a real broker.
func eventually(t *testing.T, b *bench, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen; status %+v\n%s", what, b.link.Status(), b.log)
		}
	}
}

// speakOver has a link say and hear everything once, loses the broker, and stops.
func speakOver(t *testing.T, broker realBroker) {
	b := newBench(t)
	b.o.Dial, b.o.Broker = nil, "tcp://"+broker.address
	b.o.Jitter = func(limit time.Duration) time.Duration { return min(limit, 300*time.Millisecond) }
	b.o.PasswordFile = write(t, filepath.Join(t.TempDir(), "password"), []byte(rackPassword), 0o600)
	b.cloud = cloudAt(t, b, broker.address)
	b.cloud.On(wire.TypePlanRequest, func(h heard) {
		b.cloud.Reply(h, wire.TypePlanAccepted, wire.PlanAccepted{RequestID: h.ID, DeadlineMS: 1000})
		b.cloud.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: h.ID, ToolName: fmt.Sprint(len(h.Attachment("screen"))), Arguments: []byte(`{}`)})
	})
	cancelled := make(chan string, 10)
	b.make().Handle(wire.TypeCancel, func(_ context.Context, m *wire.Message) { cancelled <- m.ID })
	b.online()
	defer b.stop()
	ask(t, b, 850<<10)
	m := b.cloud.Message("rack-1", wire.TypeCancel, wire.Cancel{TaskID: "t", Attempt: 1})
	b.cloud.Send(rack, wire.KindTask, m)
	select {
	case id := <-cancelled:
		if id != m.ID {
			t.Errorf("%s came", id)
		}
	case <-time.After(10 * time.Second):
		t.Error("the cloud's own message did not come")
	}
	for i := range 20 {
		putResult(t, b, fmt.Sprint(i))
	}
	eventually(t, b, "the acknowledgement of 20 results", func() bool { return b.link.Outbox().Status().Entries[link.Results] == 0 })

	broker.restart()
	putResult(t, b, "meanwhile")
	eventually(t, b, "the result of the outage", func() bool { return b.link.Outbox().Status().Entries[link.Results] == 0 })
	eventually(t, b, "another session", func() bool { return b.link.Status().State == link.Online && b.link.Status().Session > 1 })
	ask(t, b, 1000)
	session := b.link.Status().Session
	b.stop()
	eventually(t, b, "the offline state", func() bool {
		list := b.cloud.Heard(wire.TypeState)
		s := linktest.Decode[wire.State](t, list[len(list)-1].Message)
		return s.State == wire.Offline && s.Session == session
	})
	if r := b.cloud.Refused(); len(r) > 0 {
		t.Errorf("the cloud could not read %v", r)
	}
}

func ask(t *testing.T, b *bench, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	x, err := b.link.Open(ctx, link.Call{
		Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: wire.PlanRequest{HostID: "rack-1"},
		Attachments: []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: []byte(strings.Repeat("\xff", size))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, want := range []wire.Type{wire.TypePlanAccepted, wire.TypePlanDecision} {
		m, err := x.Next(ctx)
		if err != nil || m.Type != want {
			t.Fatalf("%+v, %v", m, err)
		}
		if want == wire.TypePlanDecision && linktest.Decode[wire.PlanDecision](t, m).ToolName != fmt.Sprint(size) {
			t.Errorf("the picture did not arrive whole: %s", m.Body)
		}
	}
}
