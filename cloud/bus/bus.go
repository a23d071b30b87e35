package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"phonerack/sync/wire"
)

// MaxPayload is the largest payload that a broker has to carry. A frame is at most [wire.MaxFrame]; the rest is room
// for what brokers add (NATS counts its headers).
const MaxPayload = 1 << 20

// Errors that callers decide on. They come wrapped.
var (
	// ErrRefused: the topic or the frame can never be published: a rack's own topic, an odd id, too many bytes.
	ErrRefused = errors.New("cannot be published")
	// ErrDown: there was no link to the broker within the time; nothing was sent.
	ErrDown = errors.New("no link to the broker")
	// ErrUncertain: the frame was sent, and the link or the time ended before the broker said that it has it.
	ErrUncertain = errors.New("the broker has not confirmed")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("bus is closed")
)

// Frame is what came from a rack. Its MAC is not checked. It belongs to the handler.
type Frame struct {
	Topic wire.Topic // an up topic with valid ids; Topic.String gives the bytes that the MAC covers
	Data  []byte
	// Retained: the broker had stored it, so it tells of the past. Only [Bus.Observe] delivers such frames.
	Retained bool
}

// Handler takes one frame. It runs on a goroutine of the bus and may block: that uses up one of the kind's workers and
// delays nothing else. ctx ends when the Serve or Observe that it belongs to gives up on it, see there.
type Handler func(ctx context.Context, f Frame)

// Bus is a broker as the cloud uses it. All methods may be called from any goroutine.
type Bus interface {
	// Serve hands frames of the kinds, of all tenants and racks, to h until ctx ends: each frame to one replica of
	// the group that has a Serve for its kind. It returns when no handler runs any more: nil after ctx has ended (handlers
	// have Limits.Drain to finish, then their context ends), ErrClosed after Close, another error if the kinds
	// cannot be served. While the broker is away it waits for it; [Bus.Check] tells.
	//
	// Frames of one rack and kind reach the handlers of one replica one after the other, in the order in which the
	// broker delivers them; only plan frames run side by side. Among replicas there is no order: what needs one has
	// numbers in its body. Retained frames do not come here. Delivery is at most once, also when a replica dies.
	Serve(ctx context.Context, kinds []wire.Kind, h Handler) error

	// Observe hands every retained up/state, then each new one, to h until ctx ends, on each replica that calls it.
	// After a loss of the link all retained ones come again. It returns as Serve does.
	Observe(ctx context.Context, h Handler) error

	// Publish sends a frame to a rack: QoS 1, retained exactly if the topic is dn/desired (there an empty frame
	// removes the retained one). It waits for the link and for the broker's word at most until ctx ends, and never
	// longer than Limits.Publish. nil means that the broker has the frame, not that the rack has it: a rack that is
	// away or a permission that is lacking look the same. Errors are ErrRefused, ErrDown, ErrUncertain, ErrClosed.
	Publish(ctx context.Context, t wire.Topic, frame []byte) error

	// Check says what is wrong now: a link that is down, a subscription that does not stand. It asks the broker
	// and is bounded by ctx and five seconds.
	Check(ctx context.Context) error

	// Stats gives the counts since the bus was opened.
	Stats() Stats

	// Close ends every call and all connections. It waits for handlers as Serve does.
	Close() error
}

// Stats counts frames and links.
type Stats struct {
	Delivered uint64 // handed to a handler
	Odd       uint64 // dropped: on a topic that is none of a rack's
	Oversize  uint64 // dropped: more bytes than a frame has
	Overflow  uint64 // dropped: workers and queue were full
	Published uint64 // confirmed by the broker
	Failed    uint64 // publishes that ended in an error
	Links     uint64 // links to the broker that came up, the first ones too
	Listening int    // subscriptions that running calls want now; Check tells whether they stand
}

// Limits bound a bus. The zero value of a field stands for its default.
type Limits struct {
	Workers     int           // handlers that run at once, for each kind of a Serve; 32
	PlanWorkers int           // the same for plan frames, which wait for a model; 256
	Queue       int           // frames that wait for a worker, for each kind of a Serve; 1024
	QueueBytes  int           // their bytes; 64 MiB
	Publish     time.Duration // the longest wait of a Publish; 10 s
	InFlight    int           // publishes that wait for the broker's word at once; 256
	Drain       time.Duration // what handlers get to finish when a Serve ends; 10 s
}

func (l Limits) orDefaults() Limits {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&l.Workers, 32)
	def(&l.PlanWorkers, 256)
	def(&l.Queue, 1024)
	def(&l.QueueBytes, 64<<20)
	def(&l.InFlight, 256)
	if l.Publish <= 0 {
		l.Publish = 10 * time.Second
	}
	if l.Drain <= 0 {
		l.Drain = 10 * time.Second
	}
	return l
}

// Login is what a client shows to the broker when it connects.
type Login struct {
	ClientID string
	Username string
	Password string
	// Certificate is the client's, verified by the listener against its authorities; nil if it showed none.
	Certificate *x509.Certificate
}

// Identity is the rack that a login belongs to.
type Identity struct{ Tenant, Rack string }

// Authenticator decides who may connect. The caller of the bus owns it: it reads the identities that enrolment has issued.
type Authenticator interface {
	// Authenticate tells which rack a login is. An error refuses it; its text goes to the log, never to the client.
	// Whatever it says, a login is refused whose client id is not the rack's id. It is called once a connection, from
	// many goroutines, and must return when ctx ends.
	Authenticate(ctx context.Context, l Login) (Identity, error)
}

// Kicker ends the connections of a rack whose identity was revoked. It is called after the revocation is committed.
type Kicker interface {
	Kick(ctx context.Context, rack string) error
}
