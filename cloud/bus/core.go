package bus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"phonerack/sync/wire"
)

const checkTime = 5 * time.Second

// core is what both drivers share: everything but how frames are heard.
type core struct {
	mqtt     MQTT
	group    string
	limits   Limits
	log      *slog.Logger
	name     string // first part of the client ids: the broker must see no two alike
	speaker  *link  // publishes
	inFlight chan struct{}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	speak  sync.WaitGroup // the speaker and the publishes under way

	mu     sync.Mutex // guards what follows
	serial int        // of the links
	calls  sync.WaitGroup
	closed bool
	ears   map[*ear]struct{}

	stats struct{ delivered, odd, oversize, overflow, published, failed, links atomic.Uint64 }
}

// ear is a subscription that stands or has to come back.
type ear struct {
	what  string
	check func(context.Context) error
}

func newCore(m MQTT, group string, l Limits, log *slog.Logger) (*core, error) {
	if !wire.ValidID(group) {
		return nil, fmt.Errorf("group %.80q is no id of [a-z0-9-]{1,63}", group)
	}
	if len(m.URLs) == 0 {
		return nil, errors.New("no address of an MQTT listener is given")
	}
	for _, s := range m.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || !slices.Contains([]string{"tcp", "ssl", "ws", "wss"}, u.Scheme) {
			return nil, fmt.Errorf("%.80q is no address of an MQTT listener: tcp, ssl, ws or wss, host and port are needed", s)
		}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var random [8]byte
	rand.Read(random[:])
	c := &core{mqtt: m, group: group, limits: l.orDefaults(), log: log, name: "cloud-" + hex.EncodeToString(random[:]), ears: make(map[*ear]struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.inFlight = make(chan struct{}, c.limits.InFlight)
	c.speaker = c.link("", 0, nil)
	c.speak.Go(func() { c.speaker.run(c.ctx) })
	return c, nil
}

// link makes a link of this bus that is not running yet.
func (c *core) link(filter string, qos byte, on func(mqtt.Message)) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	return newLink(&link{
		mqtt: c.mqtt, clientID: fmt.Sprintf("%s-%d", c.name, c.serial), filter: filter, qos: qos, on: on,
		cameUp: func() { c.stats.links.Add(1) }, log: c.log,
	})
}

// begin counts a call that Close waits for.
func (c *core) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls.Add(1)
	return nil
}

// Publish implements Bus.
func (c *core) Publish(ctx context.Context, t wire.Topic, frame []byte) error {
	err := c.publish(ctx, t, frame)
	if err != nil {
		c.stats.failed.Add(1)
		return fmt.Errorf("publish to %s/%s %s: %w", t.Tenant, t.Rack, t.Kind, err)
	}
	c.stats.published.Add(1)
	return nil
}

func (c *core) publish(ctx context.Context, t wire.Topic, frame []byte) error {
	if err := t.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	switch {
	case t.Direction != wire.Down:
		return fmt.Errorf("%w: %s topics are the rack's", ErrRefused, t.Direction)
	case len(frame) > wire.MaxFrame:
		return fmt.Errorf("%w: %d bytes where %d are allowed", ErrRefused, len(frame), wire.MaxFrame)
	case len(frame) == 0 && !t.Retained():
		return fmt.Errorf("%w: the frame is empty", ErrRefused)
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer c.calls.Done()
	ctx, cancel := context.WithTimeout(ctx, c.limits.Publish)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()

	select {
	case c.inFlight <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %d publishes are under way", ErrDown, cap(c.inFlight))
	}
	client, err := c.speaker.await(ctx)
	if err != nil {
		<-c.inFlight
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	answer := make(chan error, 1)
	c.speak.Go(func() {
		defer func() { <-c.inFlight }()
		answer <- c.send(client, t, frame)
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
	}
}

// send publishes on one connection. A broker that says nothing in time loses the connection, for its silence would hold
// a place among those under way.
func (c *core) send(client mqtt.Client, t wire.Topic, frame []byte) error {
	err := waitToken(c.ctx, client.Publish(t.String(), 1, t.Kind == wire.KindDesired, frame), c.limits.Publish)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mqtt.ErrNotConnected):
		return fmt.Errorf("%w: %w", ErrDown, err)
	case client.IsConnectionOpen():
		c.speaker.drop(client, err)
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// take hands what the broker delivered to a pool.
func (c *core) take(p *pool, topic string, data []byte, retained bool, taken func()) {
	t, err := wire.ParseTopic(topic)
	counter := &c.stats.overflow
	switch {
	case err != nil || t.Direction != wire.Up:
		counter = &c.stats.odd
	case len(data) > wire.MaxFrame:
		counter = &c.stats.oversize
	case p.push(Frame{Topic: t, Data: data, Retained: retained}, taken):
		return
	}
	counter.Add(1)
	if taken != nil {
		taken()
	}
}

// listen runs pools between two ends: open starts the subscriptions of a call and gives what ends them.
func (c *core) listen(ctx context.Context, h Handler, open func(newPool func(kind wire.Kind, queue int) *pool) (stop func(), err error)) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.calls.Done()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	counted := func(ctx context.Context, f Frame) {
		c.stats.delivered.Add(1)
		h(ctx, f)
	}
	var pools []*pool
	stop, err := open(func(kind wire.Kind, queue int) *pool {
		workers := c.limits.Workers
		if kind == wire.KindPlan {
			workers = c.limits.PlanWorkers
		}
		p := newPool(work, counted, workers, queue, c.limits.QueueBytes, kind == wire.KindPlan)
		pools = append(pools, p)
		return p
	})
	if err == nil {
		select {
		case <-ctx.Done():
		case <-c.ctx.Done():
			err = ErrClosed
		}
		stop()
	}
	defer time.AfterFunc(c.limits.Drain, cancel).Stop()
	for _, p := range pools {
		p.shutdown()
	}
	for _, p := range pools {
		<-p.idle
	}
	return err
}

// attend makes Check ask after an ear; the returned function ends that.
func (c *core) attend(what string, check func(context.Context) error) (leave func()) {
	e := &ear{what, check}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ears[e] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ears, e)
	}
}

// hear runs a link with a filter whose frames go to a pool. The returned function ends it. Of retained frames, which
// mosquitto delivers to shared subscriptions too, live takes none.
func (c *core) hear(filter string, qos byte, live bool, what string, p *pool) (stop func()) {
	l := c.link(filter, qos, func(m mqtt.Message) {
		if live && m.Retained() {
			m.Ack()
			return
		}
		c.take(p, m.Topic(), m.Payload(), m.Retained(), m.Ack)
	})
	leave := c.attend(what, l.check)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	return func() {
		leave()
		cancel()
		<-done
	}
}

// observe implements Bus.Observe on any MQTT listener.
func (c *core) observe(ctx context.Context, h Handler, qos byte) error {
	return c.listen(ctx, h, func(newPool func(wire.Kind, int) *pool) (func(), error) {
		// All retained states come at once, so only their bytes are bounded.
		p := newPool(wire.KindState, 1<<30)
		return c.hear(wire.UpFilter(wire.KindState), qos, false, "states", p), nil
	})
}

// Check implements Bus.
func (c *core) Check(ctx context.Context) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.calls.Done()
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	checks := []*ear{{"publishing", c.speaker.check}}
	c.mu.Lock()
	for e := range c.ears {
		checks = append(checks, e)
	}
	c.mu.Unlock()
	errs := make([]error, len(checks))
	var all sync.WaitGroup
	for i, e := range checks {
		all.Go(func() {
			if err := e.check(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", e.what, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Stats implements Bus.
func (c *core) Stats() Stats {
	s := &c.stats
	c.mu.Lock()
	listening := len(c.ears)
	c.mu.Unlock()
	return Stats{
		Listening: listening,
		Delivered: s.delivered.Load(), Odd: s.odd.Load(), Oversize: s.oversize.Load(), Overflow: s.overflow.Load(),
		Published: s.published.Load(), Failed: s.failed.Load(), Links: s.links.Load(),
	}
}

// Close implements Bus.
func (c *core) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.calls.Wait()
	c.speak.Wait()
	return nil
}

// servable says what is wrong with the kinds of a Serve.
func servable(kinds []wire.Kind) error {
	if len(kinds) == 0 {
		return errors.New("no kinds to serve")
	}
	for i, k := range kinds {
		if !slices.Contains(wire.Kinds(wire.Up), k) {
			return fmt.Errorf("racks send no %.40q", string(k))
		}
		if slices.Contains(kinds[:i], k) {
			return fmt.Errorf("kind %s is there twice", k)
		}
	}
	return nil
}
