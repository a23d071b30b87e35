package linktest

import (
	"sync"
	"testing"
	"time"

	"phonerack/sync/wire"
)

// Cloud is a scripted cloud end. It answers hellos and acknowledges results,
// command statuses and events; On changes that for a type.
type Cloud struct {
	Say    func(topic string, retain bool, frame []byte) // to a broker
	Now    func() time.Time                              // the cloud's clock
	Desire uint64                                        // desired_version of welcomes

	mu       sync.Mutex  // guards what follows
	keys     []wire.Keys // the first signs
	script   map[wire.Type]func(Heard)
	heard    []Heard
	sessions map[string]string // nonce of the newest hello, by rack
	refused  []error
}

// Heard is a message from a rack.
type Heard struct {
	Topic wire.Topic
	*wire.Message
}

// NewCloud makes a cloud that talks through a broker of this package.
func NewCloud(b *Broker, now func() time.Time, keys ...wire.Keys) *Cloud {
	c := &Cloud{Say: b.Publish, Now: now, keys: keys}
	b.Watch = func(p Publish) { c.Hear(p.Topic, p.Payload) }
	return c
}

// SetKeys changes the keys that the cloud takes; the first signs.
func (c *Cloud) SetKeys(keys ...wire.Keys) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = keys
}

// Keys are those that the cloud takes.
func (c *Cloud) Keys() []wire.Keys {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys
}

// On makes the cloud do something else with a type; nil makes it silent.
func (c *Cloud) On(t wire.Type, do func(Heard)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.script == nil {
		c.script = map[wire.Type]func(Heard){}
	}
	c.script[t] = do
}

// Hear takes a frame from a broker.
func (c *Cloud) Hear(topic string, frame []byte) {
	t, err := wire.ParseTopic(topic)
	if err != nil || t.Direction != wire.Up {
		return
	}
	m, err := wire.Open(t, c.key, frame)
	c.mu.Lock()
	if err != nil {
		c.refused = append(c.refused, err)
		c.mu.Unlock()
		return
	}
	h := Heard{t, m}
	c.heard = append(c.heard, h)
	if m.Type == wire.TypeHello {
		var hello wire.Hello
		if m.Decode(&hello) == nil {
			if c.sessions == nil {
				c.sessions = map[string]string{}
			}
			c.sessions[t.Rack] = hello.Nonce
		}
	}
	do, scripted := c.script[m.Type]
	c.mu.Unlock()
	switch {
	case scripted && do != nil:
		do(h)
	case !scripted:
		c.Answer(h)
	}
}

func (c *Cloud) key(kid string) (wire.Keys, bool) {
	for _, k := range c.Keys() {
		if k.KID == kid {
			return k, true
		}
	}
	return wire.Keys{}, false
}

// Answer does what the cloud does without a script.
func (c *Cloud) Answer(h Heard) {
	switch h.Type {
	case wire.TypeHello:
		c.Welcome(h)
	case wire.TypeResult:
		c.Reply(h, wire.TypeTaskAck, wire.Ack{})
	case wire.TypeCommandStatus:
		c.Reply(h, wire.TypeCommandAck, wire.Ack{})
	case wire.TypeEvent:
		c.Reply(h, wire.TypeEventAck, wire.Ack{})
	}
}

// Welcome answers a hello.
func (c *Cloud) Welcome(h Heard) {
	var hello wire.Hello
	if h.Decode(&hello) != nil {
		return
	}
	w := wire.Welcome{Nonce: hello.Nonce, Now: c.Now().UnixMilli(), Session: hello.Session, DesiredVersion: c.Desire}
	for _, k := range c.Keys() {
		w.Keys = append(w.Keys, k.KID)
	}
	c.Reply(h, wire.TypeWelcome, w)
}

// Reply answers a message in its session.
func (c *Cloud) Reply(h Heard, t wire.Type, body any) {
	kind := h.Topic.Kind
	if kind == wire.KindEvent {
		kind = wire.KindSession // where event.ack belongs
	}
	m := c.Message(h.Topic.Rack, t, body)
	m.Corr = h.ID
	c.Send(h.Topic, kind, m)
}

// Message makes a message of the rack's session that expires in a minute.
func (c *Cloud) Message(rack string, t wire.Type, body any) *wire.Message {
	life := time.Minute
	if t == wire.TypeDesired {
		life = 0
	}
	m, err := wire.NewMessage(t, c.Now(), life, body)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t != wire.TypeDesired {
		m.Sess = c.sessions[rack]
	}
	return m
}

// Send signs a message and sends it to the rack of a topic.
func (c *Cloud) Send(rack wire.Topic, k wire.Kind, m *wire.Message) {
	topic, frame := c.Frame(rack, k, m)
	c.Say(topic, k == wire.KindDesired, frame)
}

// Frame signs a message for the rack of a topic.
func (c *Cloud) Frame(rack wire.Topic, k wire.Kind, m *wire.Message) (topic string, frame []byte) {
	rack.Direction, rack.Kind = wire.Down, k
	frame, err := wire.Seal(rack, c.Keys()[0], m)
	if err != nil {
		panic(err)
	}
	return rack.String(), frame
}

// Heard lists what came of a type, in order.
func (c *Cloud) Heard(t wire.Type) []Heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Heard
	for _, h := range c.heard {
		if h.Type == t {
			list = append(list, h)
		}
	}
	return list
}

// Refused are the reasons for which frames from racks were not taken.
func (c *Cloud) Refused() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]error(nil), c.refused...)
}

// Decode reads a message's body or ends the test.
func Decode[T any](t testing.TB, m *wire.Message) T {
	t.Helper()
	var v T
	if err := m.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
