package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"phonerack/sync/wire"
)

// NATS are the options of [OpenNATS].
type NATS struct {
	URLs     []string                   // nats:// or tls:// host:port, of one server or of a cluster's
	Server   nats.InProcessConnProvider // instead of URLs: a server in this process
	Username string
	Password string
	TLS      *tls.Config
	MQTT     MQTT   // the same broker's MQTT listeners, for what goes to racks
	Group    string // the replicas that share the work; an id of the wire
	Limits   Limits
	Log      *slog.Logger
}

// natsBus hears natively, where queue groups are. It speaks through MQTT: what is published natively comes to MQTT clients
// with QoS 0 and is lost for one that is away.
type natsBus struct {
	*core
	conn   *nats.Conn
	closed chan struct{} // closed when conn is

	mu     sync.Mutex // guards denied
	denied map[*nats.Subscription]error
}

// OpenNATS makes a bus on a NATS server or cluster with an MQTT listener. It returns at once; the links come up by
// themselves, and [Bus.Check] tells.
func OpenNATS(o NATS) (Bus, error) {
	if len(o.URLs) == 0 && o.Server == nil {
		return nil, errors.New("no address of a NATS server is given")
	}
	c, err := newCore(o.MQTT, o.Group, o.Limits, o.Log)
	if err != nil {
		return nil, err
	}
	b := &natsBus{core: c, closed: make(chan struct{}), denied: make(map[*nats.Subscription]error)}
	options := []nats.Option{
		nats.Name(c.name), nats.UserInfo(o.Username, o.Password), nats.NoEcho(),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(firstWait), nats.ReconnectJitter(time.Second, time.Second),
		nats.Timeout(dialTime), nats.PingInterval(keepAlive), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(answerTime),
		nats.ConnectHandler(func(*nats.Conn) { c.stats.links.Add(1) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.stats.links.Add(1) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else it was Close
				c.log.Warn("no link to NATS", "err", err)
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(b.closed) }),
		nats.ErrorHandler(b.trouble),
	}
	if o.Server != nil {
		options = append(options, nats.InProcessServer(o.Server))
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	if b.conn, err = nats.Connect(strings.Join(o.URLs, ","), options...); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return b, nil
}

// trouble hears of what a server says outside of any call.
func (b *natsBus) trouble(_ *nats.Conn, sub *nats.Subscription, err error) {
	if sub != nil && errors.Is(err, nats.ErrPermissionViolation) {
		b.mu.Lock()
		b.denied[sub] = err
		b.mu.Unlock()
	}
	b.log.Warn("NATS", "err", err)
}

// Serve implements Bus.
func (b *natsBus) Serve(ctx context.Context, kinds []wire.Kind, h Handler) error {
	if err := servable(kinds); err != nil {
		return err
	}
	return b.listen(ctx, h, func(newPool func(wire.Kind, int) *pool) (func(), error) {
		var stops []func()
		stop := func() {
			for _, s := range stops {
				s()
			}
		}
		for _, k := range kinds {
			s, err := b.subscribe(k, newPool(k, b.limits.Queue))
			if err != nil {
				stop()
				return nil, fmt.Errorf("subscribe to %s: %w", k, err)
			}
			stops = append(stops, s)
		}
		return stop, nil
	})
}

// subscribe joins the group for a kind. The subscription comes back by itself after a loss of the link.
func (b *natsBus) subscribe(k wire.Kind, p *pool) (stop func(), err error) {
	sub, err := b.conn.QueueSubscribe("pr.v1.*.*.up."+string(k), b.group, func(m *nats.Msg) {
		b.take(p, strings.ReplaceAll(m.Subject, ".", "/"), m.Data, false, nil)
	})
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(over) })
	if err := sub.SetPendingLimits(b.limits.Queue, b.limits.QueueBytes); err != nil {
		return nil, err
	}
	leave := b.attend(string(k), func(ctx context.Context) error { return b.standing(ctx, sub) })
	return func() {
		leave()
		dropped, _ := sub.Dropped()
		b.stats.overflow.Add(uint64(max(dropped, 0)))
		if sub.Drain() == nil { // the server sends no more, and what is here is taken in
			select {
			case <-over:
			case <-time.After(2 * time.Second):
			}
		}
		b.mu.Lock()
		delete(b.denied, sub)
		b.mu.Unlock()
	}, nil
}

// standing asks the server for an answer, after which it has taken the subscription or has denied it.
func (b *natsBus) standing(ctx context.Context, sub *nats.Subscription) error {
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("%w: NATS: %w", ErrDown, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.denied[sub]
}

// Observe implements Bus. It asks for QoS 0: for anything higher the server would keep a consumer, and with it the states,
// after a replica that never came back. Nothing is lost by it but what a loss of the link brings again.
func (b *natsBus) Observe(ctx context.Context, h Handler) error { return b.observe(ctx, h, 0) }

// Check implements Bus.
func (b *natsBus) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if !b.conn.IsConnected() {
		return fmt.Errorf("%w: NATS: %s", ErrDown, b.conn.Status())
	}
	return b.core.Check(ctx)
}

// Close implements Bus.
func (b *natsBus) Close() error {
	err := b.core.Close()
	b.conn.Close()
	<-b.closed
	return err
}
