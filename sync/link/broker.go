package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"phonerack/sync/wire"
)

// Bounds of a broker's connection.
const (
	keepAlive     = 20 * time.Second
	answerTime    = 10 * time.Second // for SUBACK, PINGRESP and the welcome
	helloAgain    = 2 * time.Second  // without a welcome: after a broker's restart the cloud may be back later than its racks
	publishTime   = 10 * time.Second // for the client to take a publish
	ackTime       = 20 * time.Second // for the oldest PUBACK when maxUnacked are owed
	goodbyeTime   = 2 * time.Second  // for the last publish of a clean stop
	maxUnacked    = 64               // publishes without PUBACK
	inboundFrames = 64               // received and not looked at yet
	inboundBytes  = 8 << 20          // of them together
)

// inbound is a message as the broker delivers it.
type inbound struct {
	topic    string
	retained bool
	frame    []byte
}

// outbound is a publish that waits for its turn.
type outbound struct {
	topic wire.Topic
	frame []byte
}

// broker is one connection to the broker: an MQTT client that is used once, and
// the stream below it. The client's tokens are never taken for a success.
type broker struct {
	client   mqtt.Client
	conn     *guardedConn // nil until the stream is open
	in       chan inbound
	inBytes  atomic.Int64 // of what is in the channel
	overflow func()       // counts what found no room
	out      chan outbound
	lost     chan error // the client has stopped, and why; one word only
	owed     []mqtt.Token
}

// connect dials and logs in. The will is what the broker says for the rack when
// the connection breaks.
func (l *Link) connect(ctx context.Context, will []byte) (*broker, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	credentials, err := l.credentials()
	if err != nil {
		return nil, err
	}
	b := &broker{
		in: make(chan inbound, inboundFrames), out: make(chan outbound), lost: make(chan error, 1),
		overflow: func() { l.counters.add("refused_overflow") },
	}
	stop := func() bool { return true }
	o := b.options(l, will, credentials.Password)
	o.SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
		conn, err := l.dial(ctx, credentials)
		if err != nil {
			return nil, err
		}
		_, whole := conn.(*websocketConn)
		b.conn = &guardedConn{Conn: conn, whole: whole, published: make(chan struct{}, 1), writing: make(chan struct{}, 1)}
		stop = context.AfterFunc(ctx, func() { conn.Close() })
		return b.conn, nil
	})
	b.client = mqtt.NewClient(o)
	token := b.client.Connect()
	<-token.Done() // dialling and reading both end with ctx
	inTime := stop()
	if err := token.Error(); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", plainConnect(ctx, err))
	}
	if !inTime {
		b.hangUp()
		return nil, fmt.Errorf("connect to the broker: %w", context.Cause(ctx))
	}
	return b, nil
}

// options are those of a client for one connection: no reconnecting, no store
// that outlives it, MQTT 3.1.1 without falling back.
func (b *broker) options(l *Link, will []byte, password string) *mqtt.ClientOptions {
	o := mqtt.NewClientOptions()
	o.AddBroker("tcp://" + l.broker.Host)
	o.SetClientID(l.o.Rack).SetUsername(l.o.Rack).SetPassword(password)
	o.SetProtocolVersion(4).SetCleanSession(true)
	o.SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(connectTime)
	o.SetKeepAlive(keepAlive).SetPingTimeout(answerTime).SetWriteTimeout(publishTime)
	o.SetBinaryWill(l.topic(wire.KindState).String(), will, 1, true)
	o.SetOrderMatters(true) // receive never blocks, and order is kept
	o.SetDefaultPublishHandler(b.receive)
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) {
		select {
		case b.lost <- err:
		default:
		}
	})
	return o
}

// plainConnect prefers why the time was over to what the stream said of it.
func plainConnect(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, refused := range []error{
		packets.ErrorRefusedBadProtocolVersion, packets.ErrorRefusedIDRejected,
		packets.ErrorRefusedBadUsernameOrPassword, packets.ErrorRefusedNotAuthorised,
	} {
		if errors.Is(err, refused) {
			return slow(fmt.Errorf("the broker refuses this rack: %w", err))
		}
	}
	return err
}

// receive is called by the client for each message and must not block: a client
// that waits here neither acknowledges nor answers pings (paho #473).
func (b *broker) receive(_ mqtt.Client, m mqtt.Message) {
	size := int64(len(m.Payload()))
	if b.inBytes.Add(size) > inboundBytes {
		b.inBytes.Add(-size)
		b.overflow()
		return
	}
	select {
	case b.in <- inbound{m.Topic(), m.Retained(), m.Payload()}:
	default:
		b.inBytes.Add(-size)
		b.overflow()
	}
}

// subscribe asks for the rack's one filter. An answer without error says
// nothing: a refused filter is a code in it (paho; NATS refuses so).
func (b *broker) subscribe(ctx context.Context, filter string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	token, ok := b.client.Subscribe(filter, 1, nil).(*mqtt.SubscribeToken)
	if !ok {
		return errors.New("subscribe: the client gives no answer")
	}
	select {
	case <-token.Done():
	case <-ctx.Done(): // a connection that is lost ends it too
		return fmt.Errorf("subscribe: the broker does not answer: %w", ctx.Err())
	}
	if err := token.Error(); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if code, ok := token.Result()[filter]; !ok || code > 2 {
		return slow(fmt.Errorf("the broker refuses the subscription to %s (code %#x): it must allow the rack its own topics", filter, code))
	}
	return nil
}

// send hands a publish over; it waits for its turn until ctx ends.
func (b *broker) send(ctx context.Context, t wire.Topic, frame []byte) error {
	select {
	case b.out <- outbound{t, frame}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish sends what is handed over, one packet at a time, until ctx ends or the
// broker stops taking any.
func (b *broker) publish(ctx context.Context) error {
	for {
		select {
		case o := <-b.out:
			if err := b.publishOne(ctx, o); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *broker) publishOne(ctx context.Context, o outbound) error {
	if err := b.collect(ctx); err != nil {
		return err
	}
	token := b.client.Publish(o.topic.String(), o.topic.QoS(), o.topic.Retained(), o.frame)
	select {
	case <-token.Done():
		if err := token.Error(); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	default:
	}
	if o.topic.QoS() > 0 {
		b.owed = append(b.owed, token)
	}
	// The client's next publish would wait behind this one for publishTime only,
	// and a large frame on a slow line takes longer.
	select {
	case <-b.conn.published:
		return nil
	case <-ctx.Done():
		return nil
	}
}

// collect forgets the tokens that are done, and waits for the oldest when too
// many are not: packet ids are finite, and a broker that acknowledges nothing is
// of no use.
func (b *broker) collect(ctx context.Context) error {
	open := b.owed[:0]
	for _, t := range b.owed {
		select {
		case <-t.Done():
		default:
			open = append(open, t)
		}
	}
	b.owed = open
	if len(b.owed) < maxUnacked {
		return nil
	}
	timer := time.NewTimer(ackTime)
	defer timer.Stop()
	select {
	case <-b.owed[0].Done():
		b.owed = b.owed[1:]
		return nil
	case <-timer.C:
		return fmt.Errorf("the broker has not acknowledged %d publishes", len(b.owed))
	case <-ctx.Done():
		return nil
	}
}

// goodbye publishes a last frame and disconnects in good order. The caller has
// stopped publish.
func (b *broker) goodbye(t wire.Topic, frame []byte) {
	token := b.client.Publish(t.String(), t.QoS(), true, frame)
	token.WaitTimeout(goodbyeTime)
	b.client.Disconnect(uint(goodbyeTime.Milliseconds()))
	b.conn.Close()
}

// hangUp cuts the connection, which lets the broker publish the will, and waits
// until the client has stopped.
func (b *broker) hangUp() {
	b.conn.Close()
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case <-b.lost:
	case <-timer.C:
		b.client.Disconnect(0)
	}
}
