package adb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Conn is a connection to one phone. Its methods may be called from any
// goroutine.
type Conn struct {
	link       Link
	o          Options
	log        *slog.Logger
	banner     Banner
	version    uint32 // the lower of both sides
	sendMax    int    // largest payload to send
	delayedAck bool   // both sides do delayed_ack
	key        *Key   // see Key

	mu          sync.Mutex         // guards the fields up to the blank line
	streams     map[uint32]*Stream // open and opening, by our id
	lastID      uint32
	reverse     map[string]*ReverseListener // by the name of the service that the phone opens
	lastReverse int                         // number in the last such name
	control     []Packet                    // waiting to be written before any data
	err         error                       // why the connection ended
	repeats     int                         // answers to repeated CNXNs that are still to be expected

	wake chan struct{}      // cap 1: control has something
	data chan *outgoing     // one WRTE at a time; never closed
	done chan struct{}      // closed by fail
	stop context.CancelFunc // ends reads and writes on the link
	work sync.WaitGroup     // reader, writer, closer
}

// outgoing is what the writer takes from a stream. Exactly one field is set.
type outgoing struct {
	write *writeBuffer
	last  chan struct{} // closed by the writer when all before it is written; it writes nothing after it
}

type writeBuffer struct {
	packet Packet
	buf    []byte // backing store of the payload
}

const (
	// maxControl bounds the answers owed to a phone that sends but does not
	// read.
	maxControl = 4096
	// closeGrace is how long Close lets the writer finish: a packet that is
	// cut short swallows the next CNXN.
	closeGrace = 1500 * time.Millisecond
)

// newConn starts a connection after the handshake. repeats is how many more
// answers to CNXN may come.
func newConn(ctx context.Context, stop context.CancelFunc, link Link, o Options, connect Packet, repeats int) *Conn {
	c := &Conn{
		link: link, o: o, log: o.Logger,
		banner:  ParseBanner(connect.Payload),
		version: min(connect.Arg0, VersionSkipChecksum),
		sendMax: int(min(connect.Arg1, uint32(o.MaxPayload))),
		streams: make(map[uint32]*Stream),
		wake:    make(chan struct{}, 1),
		data:    make(chan *outgoing),
		done:    make(chan struct{}),
		stop:    stop,
		repeats: repeats,
	}
	c.delayedAck = !o.NoDelayedAck && c.banner.Has(FeatureDelayedAck)
	c.work.Go(func() { c.readLoop(ctx) })
	c.work.Go(func() { c.writeLoop(ctx) })
	c.work.Go(func() {
		<-c.done
		if err := c.link.Close(); err != nil {
			c.log.Debug("closing the link", "err", err)
		}
	})
	return c
}

// Banner returns what the phone said of itself.
func (c *Conn) Banner() Banner { return c.banner }

// Key returns the key that the phone proved to know by taking its signature; nil
// if it did not ask for one, or if a person has just let the key in: perhaps not
// for the next time.
func (c *Conn) Key() *Key { return c.key }

// HasFeature reports whether the phone announced a feature. It says nothing
// about whether this package uses it.
func (c *Conn) HasFeature(name string) bool { return c.banner.Has(name) }

// MaxPayload returns the negotiated payload limit in bytes.
func (c *Conn) MaxPayload() int { return c.sendMax }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection lives, then why it ended: an
// ErrDisconnected, ErrProtocol or ErrTimeout, or net.ErrClosed after Close.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes all streams, lets a packet that is being written get out, closes
// the link and waits for the connection's goroutines. It blocks for a second and a
// half plus what the link's Close takes, at most.
func (c *Conn) Close() error {
	c.mu.Lock()
	streams := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		streams = append(streams, s)
	}
	c.mu.Unlock()
	for _, s := range streams {
		_ = s.Close()
	}
	c.finish(closeGrace)
	c.fail(net.ErrClosed)
	c.work.Wait()
	return nil
}

// finish lets the writer write what is queued so far, for d at most, and nothing more: a packet that
// it began meanwhile would be cut short by what ends the connection.
func (c *Conn) finish(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	written := make(chan struct{})
	select {
	case c.data <- &outgoing{last: written}:
	case <-timer.C:
		return
	case <-c.done:
		return
	}
	select {
	case <-written:
	case <-timer.C:
	case <-c.done:
	}
}

// fail ends the connection; the first reason counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	c.stop()
	if !errors.Is(err, net.ErrClosed) {
		c.log.Debug("connection ended", "err", err)
	}
}

// Open asks the phone for a service, such as "shell,v2,raw:id" or
// "exec:screencap", and blocks until the phone accepts or refuses it
// (ErrRefused), ctx ends, OpenTimeout passes (ErrTimeout) or the connection
// ends. ctx bounds only the opening; the stream lives until it is closed.
func (c *Conn) Open(ctx context.Context, service string) (*Stream, error) {
	if service == "" {
		return nil, errors.New("adb: empty service name")
	}
	if len(service) >= c.sendMax {
		return nil, fmt.Errorf("%w: service name of %d bytes, at most %d allowed", ErrTooLarge, len(service), c.sendMax-1)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.newStream(service)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(c.o.OpenTimeout)
	defer timer.Stop()
	select {
	case <-s.answered:
		if s.accepted() {
			return s, nil
		}
		return nil, fmt.Errorf("%w: %s", ErrRefused, serviceKind(service))
	case <-ctx.Done():
		err = fmt.Errorf("adb: opening %s: %w", serviceKind(service), ctx.Err())
	case <-timer.C:
		err = fmt.Errorf("%w: no answer to opening %s", ErrTimeout, serviceKind(service))
	case <-c.done:
		err = c.Err()
	}
	// If the phone accepts it after all, the OKAY of an unknown stream closes it.
	_ = s.Close()
	return nil, err
}

// Exec opens "exec:" with a command: its raw output, without exit code or a
// separate stderr. See Open.
func (c *Conn) Exec(ctx context.Context, cmd string) (*Stream, error) {
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	return c.Open(ctx, "exec:"+cmd)
}

// serviceKind is the part of a service name that holds no arguments: what
// follows may be a command with secrets.
func serviceKind(service string) string {
	kind, _, _ := strings.Cut(service, ":")
	kind, _, _ = strings.Cut(kind, ",")
	if len(kind) > 32 {
		kind = kind[:32]
	}
	return kind
}

// newStream registers a stream and queues its OPEN.
func (c *Conn) newStream(service string) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	s := newStream(c, c.freeID())
	c.streams[s.id] = s
	open := Packet{Command: CommandOpen, Arg0: s.id, Payload: append([]byte(service), 0)}
	if c.delayedAck {
		open.Arg1 = uint32(c.o.Window)
	}
	if c.queueLocked(open) {
		delete(c.streams, s.id)
		return nil, protocolError("the phone sends but does not read")
	}
	return s, nil
}

// freeID returns an id for a stream; mu is held. Ids count up, so that late
// packets of a closed stream meet no new one.
func (c *Conn) freeID() uint32 {
	for {
		c.lastID++
		if c.lastID != 0 && c.streams[c.lastID] == nil {
			return c.lastID
		}
	}
}

// remove forgets a stream; packets for it are late from now on.
func (c *Conn) remove(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
	}
}

func (c *Conn) stream(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// queue hands a small packet to the writer. It never blocks: the reader calls
// it, and a reader that waits for the writer would stop all streams.
func (c *Conn) queue(p Packet) {
	c.mu.Lock()
	tooMany := c.queueLocked(p)
	c.mu.Unlock()
	if tooMany {
		c.fail(protocolError("the phone sends but does not read"))
	}
}

func (c *Conn) queueLocked(p Packet) (tooMany bool) {
	if c.err != nil {
		return false
	}
	if len(c.control) >= maxControl {
		return true
	}
	c.control = append(c.control, p)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return false
}
