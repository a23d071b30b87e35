package bus

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"go.uber.org/goleak"

	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a broker that is not well: what it answers is up to the test. nil is silence.
type broker struct {
	address string
	answer  func(packets.ControlPacket) packets.ControlPacket

	mu       sync.Mutex // guards connects
	connects int
}

func newBroker(t *testing.T, answer func(packets.ControlPacket) packets.ControlPacket) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{address: "tcp://" + l.Addr().String(), answer: answer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { b.talk(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait() // the bus is closed by now, and with it its connections
	})
	return b
}

func (b *broker) talk(c net.Conn) {
	defer c.Close()
	for {
		p, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		if _, ok := p.(*packets.ConnectPacket); ok {
			b.mu.Lock()
			b.connects++
			b.mu.Unlock()
		}
		if a := b.answer(p); a != nil {
			a.Write(c)
		}
	}
}

func (b *broker) connected() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.connects
}

// polite answers as a broker does, but for what the test has its own mind about.
func polite(p packets.ControlPacket) packets.ControlPacket {
	switch p := p.(type) {
	case *packets.ConnectPacket:
		return packets.NewControlPacket(packets.Connack)
	case *packets.SubscribePacket:
		a := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
		a.MessageID, a.ReturnCodes = p.MessageID, []byte{1}
		return a
	case *packets.UnsubscribePacket:
		a := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
		a.MessageID = p.MessageID
		return a
	case *packets.PublishPacket:
		a := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		a.MessageID = p.MessageID
		return a
	}
	return nil
}

func openOn(t *testing.T, b *broker, l Limits) Bus {
	t.Helper()
	c, err := OpenShared(Shared{MQTT: MQTT{URLs: []string{b.address}, Username: "u", Password: "p"}, Group: "g", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		began := time.Now()
		c.Close()
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("Close took %s", d)
		}
	})
	return c
}

var toRack = wire.Topic{Tenant: "t1", Rack: "r1", Direction: wire.Down, Kind: wire.KindPlan}

// TestSilentBrokerHoldsNobody: it takes the connection and says nothing, not even CONNACK.
func TestSilentBrokerHoldsNobody(t *testing.T) {
	b := newBroker(t, func(packets.ControlPacket) packets.ControlPacket { return nil })
	c := openOn(t, b, Limits{Publish: 100 * time.Millisecond})
	if err := c.Publish(t.Context(), toRack, []byte("x")); !errors.Is(err, ErrDown) {
		t.Errorf("publish: %v", err)
	}
	if err := c.Check(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("check: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Serve(ctx, []wire.Kind{wire.KindTask}, func(context.Context, Frame) {}); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestUnconfirmedPublishIsUncertain: without PUBACK nobody knows, and the link is made anew, so that paho's packet ids do not run out.
func TestUnconfirmedPublishIsUncertain(t *testing.T) {
	b := newBroker(t, func(p packets.ControlPacket) packets.ControlPacket {
		if _, ok := p.(*packets.PublishPacket); ok {
			return nil
		}
		return polite(p)
	})
	c := openOn(t, b, Limits{Publish: 200 * time.Millisecond})
	if err := c.Publish(t.Context(), toRack, []byte("x")); !errors.Is(err, ErrUncertain) {
		t.Errorf("publish: %v", err)
	}
	for deadline := time.Now().Add(5 * time.Second); b.connected() < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the link was not made anew")
		}
	}
	if s := c.Stats(); s.Failed != 1 || s.Published != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestPublishEndsWithItsContext: a caller in a hurry leaves, and the link stays for the others.
func TestPublishEndsWithItsContext(t *testing.T) {
	b := newBroker(t, func(p packets.ControlPacket) packets.ControlPacket {
		if _, ok := p.(*packets.PublishPacket); ok {
			return nil
		}
		return polite(p)
	})
	c := openOn(t, b, Limits{InFlight: 1})
	for c.Stats().Links == 0 {
		time.Sleep(time.Millisecond)
	}
	for i, want := range []error{ErrUncertain, ErrDown} { // the second finds no place
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := c.Publish(ctx, toRack, []byte("x")); !errors.Is(err, want) {
			t.Errorf("publish %d: %v, want %v", i, err, want)
		}
		cancel()
	}
	if b.connected() != 1 {
		t.Error("the link was dropped")
	}
}

// TestRefusedSubscriptionIsNoSubscription: paho calls a SUBACK of 0x80 a success.
func TestRefusedSubscriptionIsNoSubscription(t *testing.T) {
	b := newBroker(t, func(p packets.ControlPacket) packets.ControlPacket {
		a := polite(p)
		if s, ok := a.(*packets.SubackPacket); ok {
			s.ReturnCodes = []byte{refusedFilter}
		}
		return a
	})
	c := openOn(t, b, Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { c.Serve(ctx, []wire.Kind{wire.KindTask}, func(context.Context, Frame) {}) })
	for b.connected() < 3 { // publishing, serving, and serving again
		time.Sleep(time.Millisecond)
	}
	if err := c.Check(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("check: %v", err)
	}
	cancel()
	all.Wait()
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	good := MQTT{URLs: []string{"tcp://127.0.0.1:1"}}
	for name, o := range map[string]Shared{
		"no address":        {Group: "g"},
		"another scheme":    {Group: "g", MQTT: MQTT{URLs: []string{"http://127.0.0.1:1"}}},
		"no host":           {Group: "g", MQTT: MQTT{URLs: []string{"tcp:"}}},
		"no group":          {MQTT: good},
		"group with a sign": {MQTT: good, Group: "a/b"},
	} {
		if c, err := OpenShared(o); err == nil {
			c.Close()
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := OpenNATS(NATS{MQTT: good, Group: "g"}); err == nil {
		t.Error("no address of NATS is taken")
	}
	c, err := OpenShared(Shared{MQTT: good, Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, kinds := range map[string][]wire.Kind{"none": nil, "the cloud's own": {wire.KindDesired}, "twice": {wire.KindTask, wire.KindTask}} {
		if err := c.Serve(t.Context(), kinds, func(context.Context, Frame) {}); err == nil {
			t.Errorf("kinds: %s is served", name)
		}
	}
}
