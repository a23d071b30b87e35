package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oklog/ulid/v2"

	"phonerack/cloud/bus"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

const (
	callTime   = 20 * time.Second // of every call but a plan
	planTime   = 20 * time.Minute // above the longest timeout of a profile, taken over once
	answerLife = time.Minute      // exp of what is sent to racks
	maxEarly   = time.Minute      // how far a rack's clock may be ahead of the cloud's, after the welcome
)

// kinds are served by one replica each frame; up/state is observed by all.
var kinds = []wire.Kind{wire.KindSession, wire.KindPlan, wire.KindTask, wire.KindSkill, wire.KindCommand, wire.KindEvent, wire.KindTelemetry}

// Link speaks with racks over a bus.
type Link struct {
	bus     bus.Bus
	office  *enroll.Office
	fleet   *fleet.Fleet
	calls   *Calls
	metrics *Metrics
	clock   func() time.Time
	log     *slog.Logger

	sessions sessions
	repeats  repeats
}

// LinkOptions of [NewLink]. Bus, Office, Fleet and Calls are needed.
type LinkOptions struct {
	Bus     bus.Bus
	Office  *enroll.Office
	Fleet   *fleet.Fleet
	Calls   *Calls
	Metrics *Metrics
	Clock   func() time.Time
	Log     *slog.Logger
}

// NewLink makes a link; [Link.Serve] runs it.
func NewLink(o LinkOptions) *Link {
	l := &Link{bus: o.Bus, office: o.Office, fleet: o.Fleet, calls: o.Calls, metrics: o.Metrics, clock: o.Clock, log: o.Log}
	if l.metrics == nil {
		l.metrics = NewMetrics(nil)
	}
	if l.clock == nil {
		l.clock = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.repeats.clock = l.clock
	return l
}

// Serve hears racks until ctx ends, and waits for what is being answered.
func (l *Link) Serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.bus.Serve(ctx, kinds, l.take) })
	g.Go(func() error { return l.bus.Observe(ctx, l.take) })
	return g.Wait()
}

// take handles one frame.
func (l *Link) take(ctx context.Context, f bus.Frame) {
	in, refused := l.open(ctx, f)
	if refused != "" {
		l.metrics.refused.WithLabelValues(refused).Inc()
		l.log.Debug("a frame was refused", "rack", f.Topic.Rack, "kind", f.Topic.Kind, "reason", refused)
		return
	}
	if in == nil {
		return
	}
	start := l.clock()
	out := l.handle(ctx, in)
	l.metrics.call("mqtt", in.m.Type, out.t, l.clock().Sub(start))
	if out.t != "" {
		l.reply(ctx, in, out)
	}
	l.repeats.done(in.caller, in.m.ID, keep(in.m.Type, out))
}

// incoming is a frame whose sender is proved.
type incoming struct {
	caller enroll.Caller
	topic  wire.Topic
	keys   wire.Keys // those that have signed it, which sign the answers too
	m      *wire.Message
	sess   string // what the answers carry
}

// open proves a frame. A reason means that it is refused: counted, and answered only where its sender can learn from it.
// Without either the frame is a repeated one, and all has been said.
func (l *Link) open(ctx context.Context, f bus.Frame) (*incoming, string) {
	if f.Retained && f.Topic.Kind != wire.KindState {
		return nil, "retained"
	}
	in := &incoming{caller: enroll.Caller{Tenant: f.Topic.Tenant, Rack: f.Topic.Rack}, topic: f.Topic}
	ring, err := l.office.Keys(ctx, in.caller)
	if err != nil {
		l.log.Error("keys cannot be read", "rack", in.caller.Rack, "error", err)
		return nil, "internal"
	}
	in.m, err = wire.Open(f.Topic, func(kid string) (wire.Keys, bool) {
		var ok bool
		in.keys, ok = ring.Find(kid)
		return in.keys, ok
	}, f.Data)
	if reason := reasonOf(err); reason != "" && reason != "content" {
		return nil, reason
	}
	if e := l.office.Proved(ctx, in.caller, ring, in.keys.KID); e != nil {
		return nil, "unknown_key" // it was revoked meanwhile
	}
	if err != nil {
		l.explain(ctx, in, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()}))
		return nil, "content"
	}
	return l.admit(ctx, in)
}

// admit asks what a frame's MAC does not say: whether it is of now, of this session, and new.
func (l *Link) admit(ctx context.Context, in *incoming) (*incoming, string) {
	m, now := in.m, l.clock()
	if m.Type == wire.TypeHello { // its sender may have no clock yet, and generation and session guard it
		var h wire.Hello
		if wire.Unmarshal(m.Body, &h) == nil && len(h.Nonce) <= 80 {
			in.sess = h.Nonce
		}
		return in, ""
	}
	if f := in.topic.Kind; f == wire.KindState || f == wire.KindTelemetry {
		return in, "" // ordered by what they say; never answered
	}
	reason, err := l.sessions.check(ctx, l.fleet, in)
	if err != nil {
		l.log.Error("the session cannot be read", "rack", in.caller.Rack, "error", err)
		return nil, "internal"
	}
	if reason != "" {
		return nil, reason
	}
	if m.Expired(now) {
		l.explain(ctx, in, wire.Refuse(wire.Expired, map[string]any{"exp": time.UnixMilli(m.Exp).UTC()}))
		return nil, "expired"
	}
	if m.Exp > now.Add(wire.MaxLife+maxEarly).UnixMilli() {
		l.explain(ctx, in, wire.Refuse(wire.BadRequest, map[string]any{"reason": "its times are ahead of the cloud's clock"}))
		return nil, "early"
	}
	first, known := l.repeats.begin(in.caller, m.ID, m.Type)
	if first {
		return in, ""
	}
	l.metrics.repeated.Inc()
	if known.t != "" {
		l.reply(ctx, in, known)
	}
	return nil, ""
}

// reasonOf names an error of wire.Open.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, wire.ErrTooLarge):
		return "too_large"
	case errors.Is(err, wire.ErrUnknown):
		return "unknown_key"
	case errors.Is(err, wire.ErrMAC):
		return "mac"
	case errors.Is(err, wire.ErrContent):
		return "content"
	}
	return "malformed"
}

// explain answers a frame that is refused, if its sender can make sense of it.
func (l *Link) explain(ctx context.Context, in *incoming, r *wire.Refusal) {
	if in.m == nil || in.topic.Kind == wire.KindState || in.topic.Kind == wire.KindTelemetry {
		return
	}
	if _, err := ulid.ParseStrict(in.m.ID); err != nil {
		return
	}
	if in.sess == "" {
		var err error
		if in.sess, err = l.fleet.Session(ctx, in.caller); err != nil {
			return
		}
	}
	l.reply(ctx, in, encoded(answer{t: wire.TypeError, body: r}))
}

// handle runs the call and encodes its answer.
func (l *Link) handle(ctx context.Context, in *incoming) reply {
	limit := callTime
	r := &request{caller: in.caller, id: in.m.ID, body: in.m.Body, picture: in.m.Attachment(wire.ScreenAttachment)}
	sent := make(chan struct{}) // closed by the goroutine that sends the interim answers
	interim := make(chan reply, 4)
	if in.m.Type == wire.TypePlanRequest {
		limit = planTime
		r.interim = func(t wire.Type, body any) {
			select {
			case interim <- encoded(answer{t: t, body: body}):
			default: // the rack has been told often enough
			}
		}
		go func() {
			defer close(sent)
			for out := range interim {
				l.reply(ctx, in, out)
			}
		}()
	} else {
		close(sent)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := l.calls.run(ctx, in.m.Type, r)
	close(interim)
	<-sent // the last answer comes last
	if err != nil {
		if wire.Is(err, wire.Internal) {
			l.log.Error("a call failed", "rack", in.caller.Rack, "type", in.m.Type, "error", errors.Unwrap(err))
		}
		if in.topic.Kind == wire.KindState || in.topic.Kind == wire.KindTelemetry {
			return reply{}
		}
		switch {
		case wire.Is(err, wire.Unsupported):
			l.metrics.refused.WithLabelValues("unsupported").Inc()
		case wire.Is(err, wire.Conflict) && in.m.Type == wire.TypeHello:
			l.metrics.refused.WithLabelValues("session").Inc()
		}
		a = answer{t: wire.TypeError, body: wire.From(err)}
	}
	if in.m.Type == wire.TypeHello && err == nil {
		l.sessions.set(in.caller, in.sess)
	}
	return encoded(a)
}

// reply is an answer as JSON.
type reply struct {
	t    wire.Type
	body json.RawMessage
	data []byte // an attachment, of an answer that is not kept
	// lasting: a repeated request gets it again. What may be another time better is not kept.
	lasting bool
}

func encoded(a answer) reply {
	if a.t == "" {
		return reply{lasting: true}
	}
	lasting := true
	if r, ok := a.body.(*wire.Refusal); ok {
		lasting = !r.Retryable && r.Code != wire.Internal
	}
	raw, err := wire.Marshal(a.body)
	if err != nil {
		raw, _ = json.Marshal(wire.Refuse(wire.Internal, nil))
		return reply{t: wire.TypeError, body: raw}
	}
	return reply{t: a.t, body: raw, data: a.data, lasting: lasting}
}

// reply sends an answer to the rack that asked.
func (l *Link) reply(ctx context.Context, in *incoming, out reply) {
	if err := l.send(ctx, in.caller, in.keys, in.sess, in.m.ID, in.topic.Kind, out); err != nil {
		l.metrics.unsent.Inc()
		l.log.Warn("an answer was not sent, the rack will ask again", "rack", in.caller.Rack, "type", out.t, "error", err)
	}
}

func (l *Link) send(ctx context.Context, to enroll.Caller, keys wire.Keys, sess, corr string, kind wire.Kind, out reply) error {
	if kind == wire.KindEvent {
		kind = wire.KindSession // there is no dn/event
	}
	topic := wire.Topic{Tenant: to.Tenant, Rack: to.Rack, Direction: wire.Down, Kind: kind}
	m, err := wire.NewMessage(out.t, l.clock(), answerLife, out.body)
	if err != nil {
		return err
	}
	m.Corr, m.Sess = corr, sess
	if len(out.data) > 0 {
		m.Attach(wire.BlobAttachment, "application/json", out.data)
	}
	frame, err := wire.Seal(topic, keys, m)
	if errors.Is(err, wire.ErrTooLarge) && out.t != wire.TypeError {
		return l.send(ctx, to, keys, sess, corr, kind, encoded(answer{t: wire.TypeError, body: wire.Refuse(wire.Internal, nil).Because(err)}))
	}
	if err != nil {
		return err
	}
	return l.bus.Publish(context.WithoutCancel(ctx), topic, frame)
}

// Push implements fleet.Pusher: a message of the cloud's own accord. Without a session there is nobody to hear it, but
// for a configuration, which the broker keeps.
func (l *Link) Push(ctx context.Context, to enroll.Caller, t wire.Type, body any) error {
	if t == wire.TypeDesired {
		return l.desire(ctx, to, body)
	}
	sess, err := l.fleet.Session(ctx, to)
	if err != nil {
		return err
	}
	ring, err := l.office.Keys(ctx, to)
	if err != nil {
		return err
	}
	keys, ok := ring.Newest()
	if !ok || sess == "" {
		return errors.New("the rack has no session")
	}
	kind := wire.KindTask
	switch t {
	case wire.TypeExecute:
		kind = wire.KindCommand
	case wire.TypeSkillChanged:
		kind = wire.KindSkill
	}
	raw, err := wire.Marshal(body)
	if err != nil {
		return err
	}
	return l.send(ctx, to, keys, sess, "", kind, reply{t: t, body: raw})
}

// desire publishes a configuration: retained, of no session, never expired. Its version guards it. Without a body it
// removes the one that the broker keeps.
func (l *Link) desire(ctx context.Context, to enroll.Caller, body any) error {
	topic := wire.Topic{Tenant: to.Tenant, Rack: to.Rack, Direction: wire.Down, Kind: wire.KindDesired}
	if body == nil {
		return l.bus.Publish(ctx, topic, nil)
	}
	ring, err := l.office.Keys(ctx, to)
	if err != nil {
		return err
	}
	keys, ok := ring.Newest()
	if !ok {
		return errors.New("the rack has no live credentials")
	}
	m, err := wire.NewMessage(wire.TypeDesired, l.clock(), 0, body)
	if err != nil {
		return err
	}
	frame, err := wire.Seal(topic, keys, m)
	if err != nil {
		return err
	}
	return l.bus.Publish(ctx, topic, frame)
}
