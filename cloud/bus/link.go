package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// Times of a link.
const (
	dialTime   = 10 * time.Second // to one address
	answerTime = 10 * time.Second // for CONNACK and SUBACK
	keepAlive  = 15 * time.Second
	pingTime   = 5 * time.Second
	shortLife  = 5 * time.Second // a link that lived less makes the next wait longer
	firstWait  = 100 * time.Millisecond
	longestGap = 15 * time.Second
)

const refusedFilter = 0x80 // return code in a SUBACK

// MQTT says how to reach MQTT listeners of the broker.
type MQTT struct {
	URLs     []string // tcp://, ssl://, ws:// or wss:// host:port; several for the nodes of one cluster
	Username string
	Password string
	TLS      *tls.Config // for ssl and wss; nil: the system's authorities
}

// link keeps one MQTT session up: a clean one, so that nothing is stored for it while it is away.
//
// paho's own reconnecting is off. It keeps no subscription of a clean session, resends for ever what the broker chokes on,
// tells of success when the link was lost, and has no jitter. Here each connection has a client of its own, so that what
// was under way when it was lost ends in an error.
type link struct {
	mqtt     MQTT
	clientID string
	filter   string // "" for none
	qos      byte
	on       func(mqtt.Message) // never blocks; with a filter it has to see to Ack
	cameUp   func()
	log      *slog.Logger

	mu      sync.Mutex    // guards what follows
	client  mqtt.Client   // nil while the link is down
	lost    chan error    // of client; capacity 1
	changed chan struct{} // closed and made anew when client changes
	err     error         // why it is down
}

func newLink(l *link) *link {
	l.changed = make(chan struct{})
	l.err = errors.New("not connected yet")
	return l
}

// run keeps the link up until ctx ends.
func (l *link) run(ctx context.Context) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= shortLife {
			attempt = 0
		}
		gap := min(firstWait<<min(attempt, 20), longestGap)
		gap = gap/2 + rand.N(gap)
		l.log.Warn("no link to the broker", "client", l.clientID, "err", err, "again_in", gap)
		select {
		case <-ctx.Done():
		case <-time.After(gap):
		}
	}
}

// session is one connection from its dialling to its end.
func (l *link) session(ctx context.Context) error {
	lost := make(chan error, 1)
	client, err := l.connect(ctx, lost)
	if err == nil {
		if err = l.subscribe(ctx, client); err != nil {
			client.Disconnect(0)
		}
	}
	if err != nil {
		l.set(nil, nil, err)
		return err
	}
	l.set(client, lost, nil)
	l.cameUp()
	select {
	case err = <-lost:
	case <-ctx.Done():
		err = ErrClosed
		if l.filter != "" { // else frames still come while handlers finish
			waitToken(context.Background(), client.Unsubscribe(l.filter), 2*time.Second)
		}
	}
	l.set(nil, nil, err)
	client.Disconnect(250)
	return err
}

func (l *link) connect(ctx context.Context, lost chan error) (mqtt.Client, error) {
	o := mqtt.NewClientOptions()
	for _, i := range rand.Perm(len(l.mqtt.URLs)) { // replicas spread over the nodes
		o.AddBroker(l.mqtt.URLs[i])
	}
	o.SetClientID(l.clientID).SetUsername(l.mqtt.Username).SetPassword(l.mqtt.Password)
	o.SetProtocolVersion(4) // else a refusal is tried again as 3.1
	o.SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false)
	o.SetKeepAlive(keepAlive).SetPingTimeout(pingTime).SetWriteTimeout(answerTime)
	o.SetOrderMatters(true).SetAutoAckDisabled(true)
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		if l.on != nil {
			l.on(m)
		}
	})
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) { report(lost, err) })

	// paho waits for a CONNACK without end, so the connection is ended from here.
	var mu sync.Mutex
	var open net.Conn
	over := false
	o.SetCustomOpenConnectionFn(func(u *url.URL, _ mqtt.ClientOptions) (net.Conn, error) {
		c, err := dial(ctx, u, l.mqtt.TLS)
		mu.Lock()
		defer mu.Unlock()
		if over && err == nil {
			c.Close()
			return nil, context.Canceled
		}
		open = c
		return c, err
	})
	client := mqtt.NewClient(o)
	err := waitToken(ctx, client.Connect(), time.Duration(len(l.mqtt.URLs))*dialTime+answerTime)
	if err != nil {
		mu.Lock()
		over = true
		if open != nil {
			open.Close()
		}
		mu.Unlock()
		client.Disconnect(0)
		return nil, fmt.Errorf("connect: %w", err)
	}
	return client, nil
}

func (l *link) subscribe(ctx context.Context, c mqtt.Client) error {
	if l.filter == "" {
		return nil
	}
	t := c.Subscribe(l.filter, l.qos, nil).(*mqtt.SubscribeToken)
	if err := waitToken(ctx, t, answerTime); err != nil {
		return fmt.Errorf("subscribe to %s: %w", l.filter, err)
	}
	for _, code := range t.Result() { // keyed by the filter without $share/group
		if code == refusedFilter {
			return fmt.Errorf("subscribe to %s: the broker refuses", l.filter)
		}
	}
	return nil
}

func (l *link) set(c mqtt.Client, lost chan error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client, l.lost, l.err = c, lost, err
	close(l.changed)
	l.changed = make(chan struct{})
}

// await returns the client of a link that is up.
func (l *link) await(ctx context.Context) (mqtt.Client, error) {
	for {
		l.mu.Lock()
		c, changed, err := l.client, l.changed, l.err
		l.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// drop ends the connection of c, if it is still the link's; a new one follows.
func (l *link) drop(c mqtt.Client, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == c && c != nil {
		report(l.lost, why)
	}
}

// check asks the broker for an answer: to end a subscription that nobody has costs it nothing.
func (l *link) check(ctx context.Context) error {
	l.mu.Lock()
	c, err := l.client, l.err
	l.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	if err := waitToken(ctx, c.Unsubscribe("pr/v1/check"), pingTime); err != nil {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return nil
}

func report(lost chan error, err error) {
	select {
	case lost <- err:
	default:
	}
}

// waitToken waits for a token, which by itself might never be done.
func waitToken(ctx context.Context, t mqtt.Token, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-t.Done():
		return t.Error()
	case <-timer.C:
		return fmt.Errorf("no answer within %s", limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial opens the byte stream. Like the rest of the process it takes no proxy from the environment.
func dial(ctx context.Context, u *url.URL, c *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	d := &net.Dialer{KeepAlive: keepAlive}
	switch u.Scheme {
	case "tcp":
		return d.DialContext(ctx, "tcp", u.Host)
	case "ssl":
		return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, "tcp", u.Host)
	case "ws", "wss":
		return mqtt.NewWebsocket(u.String(), c, dialTime, nil, &mqtt.WebsocketOptions{
			Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		})
	}
	return nil, fmt.Errorf("scheme %q of a broker's address is none of tcp, ssl, ws, wss", u.Scheme)
}
