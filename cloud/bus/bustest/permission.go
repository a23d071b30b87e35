package bustest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

// soon is how long what must not come is waited for, after what must come has come.
const soon = 150 * time.Millisecond

func oddTopics(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	Serve(t, c, got.Handle, wire.Kinds(wire.Up)...)
	for _, id := range []string{"", "*", ">", "+", "#", "a b", "a.b", "a/b", "R1", "$SYS", strings.Repeat("a", 64)} {
		for _, topic := range []wire.Topic{
			{Tenant: id, Rack: "r0", Direction: wire.Down, Kind: wire.KindPlan},
			{Tenant: Tenant, Rack: id, Direction: wire.Down, Kind: wire.KindPlan},
			{Tenant: Tenant, Rack: "r0", Direction: wire.Down, Kind: wire.Kind(id)},
		} {
			if err := c.Publish(t.Context(), topic, []byte("x")); !errors.Is(err, bus.ErrRefused) {
				t.Errorf("publish to %s: %v", topic, err)
			}
		}
	}
	for _, topic := range []wire.Topic{{}, {Tenant: Tenant, Rack: "r0", Direction: wire.Up, Kind: wire.KindPlan}, down("r0", wire.KindEvent)} {
		if err := c.Publish(t.Context(), topic, []byte("x")); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("publish to %q: %v", topic, err)
		}
	}
	if err := c.Publish(t.Context(), down("r0", wire.KindPlan), nil); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("publish nothing: %v", err)
	}
	for _, topic := range []string{
		"pr/v1/t1/*/up/task", "pr/v1/t1/>/up/task", "pr/v1/t1/r0/up/>", "pr/v1/t1/r0/up/*", "pr/v1/t1/r 0/up/task", "pr/v1/t1/r0/up/ta sk",
		"pr/v1/t1/r0.x/up/task", "pr/v1/t1.r0/up/task", "pr/v1/t1/r0/up/task/", "pr/v1//r0/up/task", "/pr/v1/t1/r0/up/task", "pr/v1/t1/r0/up", "pr.v1.t1.r0.up.task",
	} {
		r := b.Connect(t, Login{Rack: "r0", Quiet: true}) // some brokers end the connection
		r.Client.Publish(topic, 1, false, "odd "+topic).WaitTimeout(soon)
		r.Leave()
	}
	heard(t, b, &got)
	for _, f := range got.Frames() {
		if strings.HasPrefix(string(f.Data), "odd ") {
			t.Errorf("handled on %s: %s", f.Topic, f.Data)
		}
	}
}

// heard waits for a frame that was sent after all others, and a bit.
func heard(t *testing.T, b *Broker, got *Record) {
	t.Helper()
	want := send(t, b.Connect(t, Login{Rack: "r9"}), wire.KindTask, 1)[0]
	Eventually(t, patience, "a proper frame comes", func() bool { return got.Has(want) })
	time.Sleep(soon)
}

// foreign are filters by which r0 would hear what is not its own.
var foreign = []string{
	"#", "+/#", "pr/#", "pr/v1/#", "pr/v1/+/+/dn/+", "pr/v1/t1/+/dn/+", "pr/v1/t1/r1/dn/+", "pr/v1/t1/r1/dn/plan", "pr/v1/+/+/up/+", "pr/v1/t1/r1/up/state",
	"pr/v1/t1/>", "pr/v1/t1/*/dn/*", ">", "pr/v1/t1/r1/#", "$MQTT/#", "$MQTT/msgs/#", "$SYS/#", "$JS/#", "$KV/#", "_INBOX/#", "$share/x/pr/v1/t1/r1/dn/+",
}

func foreignTopics(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	Serve(t, c, got.Handle, wire.Kinds(wire.Up)...)
	owner := b.Connect(t, Login{Rack: "r1"})
	intruder := b.Connect(t, Login{Rack: "r0", Quiet: true})
	for _, filter := range foreign {
		if !intruder.Client.IsConnectionOpen() { // the broker has ended the connection over the last one
			intruder = b.Connect(t, Login{Rack: "r0", Quiet: true})
		}
		code, err := intruder.Subscribe(filter)
		if b.RefusesForeign && err == nil && code != 0x80 && !strings.HasPrefix(filter, "$share") {
			t.Errorf("subscribing to %s gives code %d", filter, code)
		}
	}
	writer := b.Connect(t, Login{Rack: "r0", Quiet: true, ClientID: "r0"})
	for _, topic := range []string{
		"pr/v1/t1/r1/up/task", "pr/v1/t1/r1/up/state", "pr/v1/t1/r1/dn/plan", "pr/v1/t1/r1/dn/desired", "pr/v1/t1/r0/dn/plan", "pr/v1/t2/r1/up/task",
		"$MQTT/msgs/pr/v1/t1/r1/dn/plan", "$MQTT/rmsgs/pr/v1/t1/r1/dn/desired", "$JS/API/STREAM/NAMES", "$SYS/REQ/USER/AUTH",
	} {
		for _, qos := range []byte{0, 1} {
			writer.Client.Publish(topic, qos, true, "foreign "+topic).WaitTimeout(soon)
		}
	}
	if err := c.Publish(t.Context(), down("r1", wire.KindPlan), []byte("for r1 alone")); err != nil {
		t.Fatal(err)
	}
	send(t, owner, wire.KindTask, 1)
	heard(t, b, &got)
	for _, m := range append(intruder.Got(), writer.Got()...) {
		t.Errorf("r0 heard %s: %s", m.Topic(), m.Payload())
	}
	for _, m := range owner.Receive(t, 1) {
		if string(m.Payload()) != "for r1 alone" {
			t.Errorf("r1 heard %s: %s", m.Topic(), m.Payload())
		}
	}
	for _, f := range got.Frames() {
		if strings.HasPrefix(string(f.Data), "foreign ") {
			t.Errorf("handled: %s", f.Data)
		}
	}
}

// foreignTopicsOfPrograms tries the same with the clients that an intruder would take.
func foreignTopicsOfPrograms(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	Serve(t, c, got.Handle, wire.KindTask)
	u, err := url.Parse(b.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(u.Host)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	login := []string{"-h", host, "-p", port, "-V", "mqttv311", "-q", "1", "-i", "r0", "-u", "r0", "-P", Password("r0")}
	pub := func(topic, text string) {
		cmd := exec.CommandContext(ctx, Program(t, "mosquitto_pub"), append(login, "-t", topic, "-m", text)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("mosquitto_pub to %s: %v %s", topic, err, out)
		}
	}
	pub("pr/v1/t1/r1/up/task", "foreign")
	pub("pr/v1/t1/r0/up/task", "own")
	Eventually(t, patience, "its own topic works", func() bool { return got.Has("own") })
	if got.Has("foreign") {
		t.Error("mosquitto_pub has written another rack's topic")
	}

	owner := b.Connect(t, Login{Rack: "r1"})
	var out strings.Builder
	args := append(login, "-W", "2", "-v")
	for _, f := range []string{"pr/v1/t1/r1/dn/+", "pr/v1/+/+/dn/+", "pr/v1/t1/r1/up/+", "pr/v1/t1/r0/dn/+"} {
		args = append(args, "-t", f)
	}
	sub := exec.CommandContext(ctx, Program(t, "mosquitto_sub"), args...)
	sub.Stdout = &out
	if err := sub.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(1500 * time.Millisecond)
	for time.Now().Before(deadline) { // as long as it listens
		for _, rack := range []string{"r0", "r1"} {
			if err := c.Publish(t.Context(), down(rack, wire.KindPlan), []byte("for "+rack)); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	sub.Wait() // its time is over, which it calls an error
	owner.Receive(t, 1)
	if s := out.String(); strings.Contains(s, "r1") || !strings.Contains(s, "for r0") {
		t.Errorf("mosquitto_sub heard: %s", s)
	}
}

func foreignWill(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got, seen Record
	Serve(t, c, got.Handle, wire.KindTask, wire.KindState)
	Observe(t, c, seen.Handle)
	r, err := b.Dial(Login{Rack: "r0", Will: &Will{"pr/v1/t1/r1/up/state", "foreign", true}})
	if err == nil { // a broker may refuse the login
		defer r.Leave()
		r.Cut()
	}
	own := b.Connect(t, Login{Rack: "r2", Will: &Will{"pr/v1/t1/r2/up/state", "own", true}})
	own.Cut()
	Eventually(t, patience, "a proper will comes", func() bool { return got.Has("own") && seen.Has("own") })
	time.Sleep(soon)
	if got.Has("foreign") || seen.Has("foreign") {
		t.Error("the will on another rack's topic was published")
	}
}

// takeOver: r0 shows its own credential and r1's client id. It is refused, or it gets another id; r1 does not feel it.
func takeOver(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	owner := b.Connect(t, Login{Rack: "r1"})
	Ready(t, c)
	intruder, err := b.Dial(Login{Rack: "r0", ClientID: "r1", Quiet: true})
	if err == nil {
		defer intruder.Leave()
	} else {
		t.Log(err)
	}
	time.Sleep(soon)
	if !owner.Client.IsConnectionOpen() {
		t.Fatal("the owner of the client id was pushed off")
	}
	if err := c.Publish(t.Context(), down("r1", wire.KindPlan), []byte("x")); err != nil {
		t.Fatal(err)
	}
	owner.Receive(t, 1)
	if intruder != nil && len(intruder.Got()) > 0 {
		t.Error("the intruder heard the owner's frame")
	}
	again := b.Connect(t, Login{Rack: "r1"}) // the owner itself may: its old connection is a dead one
	select {
	case <-owner.Lost:
	case <-time.After(patience):
		t.Error("the owner's old connection stays")
	}
	if !again.Client.IsConnectionOpen() {
		t.Error("the owner's new connection does not stay")
	}
}

func wrongPassword(t *testing.T, b *Broker) {
	for _, l := range []Login{{Rack: "r0", Password: "wrong"}, {Rack: "r0", Password: Password("r1")}, {Rack: bus.CloudUser, ClientID: "r0", Password: "wrong"}, {Rack: "nobody", Password: "wrong"}} {
		if r, err := b.Dial(l); err == nil {
			r.Leave()
			t.Errorf("%s came in with %s", l.Rack, l.Password)
		}
	}
}

func revokedRackIsKicked(t *testing.T, b *Broker) {
	if b.Kicker == nil {
		t.Log("this broker cannot end a live connection: the MAC refuses a revoked rack's frames")
		return
	}
	r, other := b.Connect(t, Login{Rack: "r8"}), b.Connect(t, Login{Rack: "r7"})
	b.Racks.Revoke("r8")
	if err := b.Kicker.Kick(t.Context(), "r8"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.Lost:
	case <-time.After(patience):
		t.Error("the revoked rack is still connected")
	}
	if r, err := b.Dial(Login{Rack: "r8"}); err == nil {
		r.Leave()
		t.Error("the revoked rack came in again")
	}
	if !other.Client.IsConnectionOpen() {
		t.Error("another rack was kicked too")
	}
	if err := b.Kicker.Kick(t.Context(), "r8"); err != nil {
		t.Errorf("nothing to kick: %v", err)
	}
}
