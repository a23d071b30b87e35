package linktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Verdict is what the broker does with a message that a client publishes.
type Verdict int

// The verdicts.
const (
	Forward      Verdict = iota
	Swallow              // no PUBACK, and nobody gets it
	AckOnly              // PUBACK, and nobody gets it: what NATS does with a forbidden publish
	ForwardMute          // everybody gets it, no PUBACK
	HangUp               // the connection ends: what mochi does with a forbidden publish
	AckAndHangUp         // PUBACK, then the connection ends, and nobody gets it
)

// Publish is a message as a client or a test has published it.
type Publish struct {
	Client   string // empty for the test's own
	Topic    string
	QoS      byte
	Retained bool
	Payload  []byte
	Will     bool // the broker published it for a client that is gone
}

// Broker is a scriptable MQTT broker. The exported fields are set before the
// first client comes; what changes while it runs has methods.
type Broker struct {
	MaxPacket int                               // payload bytes of a publish; more ends the connection; 0 for no bound
	Judge     func(Publish) Verdict             // nil forwards everything
	Watch     func(Publish)                     // sees what is forwarded; it is called in order and may publish
	Connect   func(*packets.ConnectPacket) byte // CONNACK code; nil accepts
	Suback    []byte                            // codes of each SUBACK; nil grants what was asked for
	Duplicate bool                              // every message is delivered twice, the second time as a duplicate

	mu         sync.Mutex // guards what follows
	clients    map[string]*client
	retained   map[string][]byte
	published  []Publish
	connects   []*packets.ConnectPacket
	complaints []string
	unacked    int // QoS 1 deliveries that no client has acknowledged
	closed     bool
	work       sync.WaitGroup
}

// NewBroker makes a broker without clients.
func NewBroker() *Broker {
	return &Broker{clients: map[string]*client{}, retained: map[string][]byte{}}
}

// client is one connection.
type client struct {
	b       *Broker
	conn    net.Conn
	id      string
	connect *packets.ConnectPacket
	filter  map[string]byte
	out     chan packets.ControlPacket
	gone    chan struct{} // closed when the connection is over
	once    sync.Once
	stopped chan struct{} // closed when it is half-open
	freeze  func()
	clean   bool // DISCONNECT came: no will
	next    uint16
	owed    map[uint16]bool // deliveries without PUBACK
}

// Dial is a link's Dial: each call is a new connection to the broker.
func (b *Broker) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	if !b.Accept(far) {
		near.Close()
		return nil, fmt.Errorf("connection refused")
	}
	return near, ctx.Err()
}

// Serve accepts connections until the listener is closed.
func (b *Broker) Serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b.Accept(conn)
	}
}

// Accept takes a connection; it tells false if the broker is closed.
func (b *Broker) Accept(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		conn.Close()
		return false
	}
	c := &client{
		b: b, conn: conn, filter: map[string]byte{}, owed: map[uint16]bool{},
		out: make(chan packets.ControlPacket, 4096), gone: make(chan struct{}), stopped: make(chan struct{}),
	}
	c.freeze = sync.OnceFunc(func() { close(c.stopped) })
	b.work.Go(c.read)
	b.work.Go(c.write)
	return true
}

// Close ends all connections and waits for what the broker has started.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.HangUpAll()
	b.work.Wait()
}

// HangUpAll ends every connection, as a restart does; wills are published.
func (b *Broker) HangUpAll() {
	b.mu.Lock()
	var all []*client
	for _, c := range b.clients {
		all = append(all, c)
	}
	b.mu.Unlock()
	for _, c := range all {
		c.hangUp()
	}
}

// Freeze makes every connection half-open: nothing is read or written any more,
// and nobody is told. New connections work. Only Close and hanging up end it.
func (b *Broker) Freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.clients {
		c.freeze()
	}
}

// Publish says something to the clients, as the cloud would.
func (b *Broker) Publish(topic string, retain bool, payload []byte) {
	b.forward(Publish{Topic: topic, QoS: 1, Retained: retain, Payload: payload}, false)
}

// Deliver gives clients that subscribed a message with the retain flag as it
// stands, which a broker sets for what it kept only.
func (b *Broker) Deliver(topic string, retained bool, payload []byte) {
	b.deliver(Publish{Topic: topic, QoS: 1, Retained: retained, Payload: payload})
}

// Retained is what the broker keeps for a topic.
func (b *Broker) Retained(topic string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retained[topic]
}

// Published is what clients have published so far, wills included, forwarded or not.
func (b *Broker) Published() []Publish {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Publish(nil), b.published...)
}

// Connects are the CONNECT packets so far.
func (b *Broker) Connects() []*packets.ConnectPacket {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*packets.ConnectPacket(nil), b.connects...)
}

// Complaints are what clients did that the specification forbids.
func (b *Broker) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// Unacked counts the deliveries of QoS 1 that no client has acknowledged yet.
func (b *Broker) Unacked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unacked
}

// forward gives a message to everybody who wants it, and keeps it if it is retained.
func (b *Broker) forward(p Publish, fromClient bool) {
	b.mu.Lock()
	if fromClient {
		b.published = append(b.published, p)
	}
	if p.Retained {
		if len(p.Payload) == 0 {
			delete(b.retained, p.Topic)
		} else {
			b.retained[p.Topic] = p.Payload
		}
	}
	b.mu.Unlock()
	live := p
	live.Retained = false // the flag marks what was kept
	b.deliver(live)
	if fromClient && b.Watch != nil {
		b.Watch(p)
	}
}

func (b *Broker) deliver(p Publish) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.clients {
		for filter, qos := range c.filter {
			if matches(filter, p.Topic) {
				c.push(p, min(qos, p.QoS))
			}
		}
	}
}

// push queues a message for a client. The broker's lock is held.
func (c *client) push(p Publish, qos byte) {
	m := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	m.TopicName, m.Qos, m.Retain, m.Payload = p.Topic, qos, p.Retained, p.Payload
	if qos > 0 {
		c.next++
		m.MessageID = c.next
		c.owed[m.MessageID] = true
		c.b.unacked++
	}
	c.queue(m)
	if c.b.Duplicate {
		again := m.Copy()
		again.MessageID, again.Qos, again.Dup = m.MessageID, qos, qos > 0
		c.queue(again)
	}
}

func (c *client) queue(p packets.ControlPacket) {
	select {
	case c.out <- p:
	default:
		c.b.complaints = append(c.b.complaints, c.id+" does not read: its queue is full")
	}
}

// matches tells whether a filter takes a topic.
func matches(filter, topic string) bool {
	f, t := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i, part := range f {
		if part == "#" {
			return true
		}
		if i >= len(t) || part != "+" && part != t[i] {
			return false
		}
	}
	return len(f) == len(t)
}

// grace is how much longer than its keep-alive a client may be silent: half of it.
func grace(keepalive uint16) time.Duration {
	return time.Duration(keepalive) * time.Second * 3 / 2
}
