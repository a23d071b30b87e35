package bustest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"phonerack/sync/wire"
)

const patience = 10 * time.Second

// Login is how a [Rack] connects. Only Rack is needed.
type Login struct {
	Rack     string
	ClientID string // "" for the rack's id
	Password string // "" for the right one
	TLS      *tls.Config
	Will     *Will
	Keep     bool // a session that outlives the connection
	Quiet    bool // subscribes to nothing
	NoUser   bool // shows a certificate alone
}

// Will is what the broker says when the connection is lost.
type Will struct {
	Topic, Payload string
	Retained       bool
}

// Rack is a rack's end of the broker: an MQTT client that has subscribed to its dn/+.
type Rack struct {
	Client mqtt.Client
	Lost   chan error // the connection has ended, not by Leave
	tenant string
	id     string

	mu   sync.Mutex // guards what follows
	conn net.Conn
	got  []mqtt.Message
}

// Connect makes a rack that stays until the end of the test.
func (b *Broker) Connect(t testing.TB, l Login) *Rack {
	t.Helper()
	r, err := b.Dial(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Leave)
	return r
}

// Dial connects a rack, or says why it cannot.
func (b *Broker) Dial(l Login) (*Rack, error) {
	if l.ClientID == "" {
		l.ClientID = l.Rack
	}
	if l.Password == "" {
		l.Password = Password(l.Rack)
	}
	r := &Rack{Lost: make(chan error, 1), tenant: Tenant, id: l.Rack}
	o := mqtt.NewClientOptions().SetClientID(l.ClientID)
	if !l.NoUser {
		o.SetUsername(l.Rack).SetPassword(l.Password)
	}
	for _, u := range b.URLs {
		o.AddBroker(u)
	}
	o.SetProtocolVersion(4).SetAutoReconnect(false).SetCleanSession(!l.Keep).SetConnectTimeout(patience).SetWriteTimeout(patience)
	if l.Will != nil {
		o.SetWill(l.Will.Topic, l.Will.Payload, 1, l.Will.Retained)
	}
	if l.TLS != nil {
		o.SetTLSConfig(l.TLS)
	}
	if strings.HasPrefix(b.URLs[0], "tcp:") {
		o.SetCustomOpenConnectionFn(r.open) // for Cut
	}
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, m)
	})
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) { r.Lost <- err })
	r.Client = mqtt.NewClient(o)
	if err := await(r.Client.Connect()); err != nil {
		r.Client.Disconnect(0)
		return nil, fmt.Errorf("rack %s: %w", l.Rack, err)
	}
	if !l.Quiet {
		if code, err := r.Subscribe(wire.DownFilter(Tenant, l.Rack)); err != nil || code != 1 {
			r.Leave()
			return nil, fmt.Errorf("rack %s subscribes: code %#x, %v", l.Rack, code, err)
		}
	}
	return r, nil
}

func (r *Rack) open(u *url.URL, _ mqtt.ClientOptions) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", u.Host, patience)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	return c, err
}

func await(t mqtt.Token) error {
	if !t.WaitTimeout(patience) {
		return fmt.Errorf("no answer within %s", patience)
	}
	return t.Error()
}

// Subscribe asks for a filter and gives the broker's code: 0x80 refuses.
func (r *Rack) Subscribe(filter string) (code byte, err error) {
	s := r.Client.Subscribe(filter, 1, nil).(*mqtt.SubscribeToken)
	if err := await(s); err != nil {
		return 0x80, err
	}
	for _, code = range s.Result() {
	}
	return code, nil
}

// Topic is one of the rack's up topics.
func (r *Rack) Topic(k wire.Kind) string {
	return wire.Topic{Tenant: r.tenant, Rack: r.id, Direction: wire.Up, Kind: k}.String()
}

// Send publishes a frame on an up topic and waits for the broker's word.
func (r *Rack) Send(t testing.TB, k wire.Kind, data []byte) {
	t.Helper()
	if err := await(r.Client.Publish(r.Topic(k), 1, k == wire.KindState, data)); err != nil {
		t.Fatalf("rack %s sends: %v", r.id, err)
	}
}

// Got is what has come so far.
func (r *Rack) Got() []mqtt.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]mqtt.Message(nil), r.got...)
}

// Receive waits until n messages have come.
func (r *Rack) Receive(t testing.TB, n int) []mqtt.Message {
	t.Helper()
	Eventually(t, patience, fmt.Sprintf("rack %s gets %d messages", r.id, n), func() bool { return len(r.Got()) >= n })
	return r.Got()
}

// Cut ends the connection as a pulled plug does; the broker publishes the will.
func (r *Rack) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.conn.(*net.TCPConn); ok {
		c.SetLinger(0)
		c.Close()
	}
}

// Leave disconnects as MQTT has it; there is no will.
func (r *Rack) Leave() { r.Client.Disconnect(100) }
