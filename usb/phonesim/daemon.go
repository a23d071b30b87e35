package phonesim

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// daemonState is how far a host has come with a daemon.
type daemonState uint8

const (
	offline daemonState = iota // no CNXN yet
	waiting                    // CNXN came, a proof of the key did not
	online
)

// daemon is the ADB daemon as one link sees it.
type daemon struct {
	phone   *Phone
	release release
	link    link
	ctx     context.Context

	work   sync.WaitGroup // streams' services and timers
	workMu sync.Mutex     // guards ended
	ended  bool           // no more work starts

	mu         sync.Mutex // guards what follows; may be held while queueing
	state      daemonState
	token      []byte // what a signature has to be of
	maxPayload int
	sums       bool // payloads carry their sum after CNXN
	delayedAck bool
	streams    map[uint32]*stream
	lastID     uint32
	reverse    map[int]string // what the host serves, by the phone's port
}

func newDaemon(ctx context.Context, p *Phone, l link) *daemon {
	d := &daemon{
		phone: p, release: p.release, link: l, ctx: ctx,
		maxPayload: p.release.maxPayload, sums: true, streams: map[uint32]*stream{},
	}
	d.queueStale(p.Faults().StaleFrames)
	p.started(d)
	return d
}

// queueStale puts what a host before this one never fetched into the link.
func (d *daemon) queueStale(n int) {
	for i := range uint32(n) {
		id := 0x1bb + i/2
		if i%2 == 0 {
			d.link.queue(newMessage(cmdWRTE, id, 1, fmt.Appendf(nil, "left over %d\n", i), true), nil)
		} else {
			d.link.queue(newMessage(cmdCLSE, id, 1, nil, true), nil)
		}
	}
}

func (d *daemon) wait() {
	<-d.ctx.Done()
	d.phone.ended(d)
	d.mu.Lock()
	d.closeStreams(false)
	d.mu.Unlock()
	d.phone.dropPrompts(d)
	d.workMu.Lock()
	d.ended = true
	d.workMu.Unlock()
	d.work.Wait()
}

// start runs f beside the daemon, unless that has ended. f ends when the daemon's context does.
func (d *daemon) start(f func()) {
	d.workMu.Lock()
	defer d.workMu.Unlock()
	if !d.ended {
		d.work.Go(f)
	}
}

func (d *daemon) limit() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.maxPayload
}

// receive implements backend.
func (d *daemon) receive(m message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	handshake := m.command == cmdCNXN || m.command == cmdAUTH
	if (handshake || d.sums) && m.sum != sum(m.payload) {
		return violationf(RuleSum, "%s states %d, its payload's sum is %d", m.command, m.sum, sum(m.payload))
	}
	switch m.command {
	case cmdCNXN:
		return d.connect(m)
	case cmdAUTH:
		if d.state == waiting {
			d.authenticate(m)
		}
	case cmdOPEN:
		d.open(m)
	case cmdOKAY, cmdCLSE, cmdWRTE:
		if d.state == online && m.arg1 != 0 {
			return d.streamMessage(m)
		}
	case cmdSTLS:
		return violationf(RuleCommand, "STLS, which was not offered")
	default:
		d.phone.record(violationf(RuleCommand, "unknown command %08x", uint32(m.command)))
	}
	return nil
}

// connect handles CNXN, which starts everything anew at any time.
func (d *daemon) connect(m message) error {
	banner := strings.TrimRight(string(m.payload), "\x00")
	if !strings.HasPrefix(banner, "host:") {
		return violationf(RuleHandshake, "CNXN with banner %q", banner)
	}
	if m.arg0 < versionSums || m.arg1 < handshakePayload {
		return violationf(RuleHandshake, "CNXN with version %08x and payloads of at most %d bytes", m.arg0, m.arg1)
	}
	d.state = offline
	d.reverse = nil
	if d.release.cancelsStale {
		d.link.dropQueued()
	}
	d.closeStreams(true)
	d.maxPayload = int(min(uint32(d.release.maxPayload), m.arg1))
	d.sums = min(m.arg0, d.release.version) < versionNoSums
	d.delayedAck = d.release.has("delayed_ack") && bannerHas(banner, "delayed_ack")
	d.phone.log.Debug("host says CNXN", "banner", banner, "payload", d.maxPayload, "delayed_ack", d.delayedAck)
	if !d.phone.config.Auth.Required && !d.phone.Faults().Unauthorized {
		d.goOnline()
		return nil
	}
	d.state = waiting
	d.sendToken()
	return nil
}

// bannerHas looks for a feature in a banner like "host::features=a,b".
func bannerHas(banner, feature string) bool {
	for part := range strings.SplitSeq(banner, ":") {
		for property := range strings.SplitSeq(part, ";") {
			list, ok := strings.CutPrefix(property, "features=")
			if !ok {
				continue
			}
			for name := range strings.SplitSeq(list, ",") {
				if name == feature {
					return true
				}
			}
		}
	}
	return false
}

// goOnline greets the host; d.mu is held.
func (d *daemon) goOnline() {
	d.state = online
	d.token = nil
	var b strings.Builder
	b.WriteString("device::")
	for _, name := range []string{"ro.product.name", "ro.product.model", "ro.product.device"} {
		fmt.Fprintf(&b, "%s=%s;", name, bannerSafe.Replace(d.phone.config.System.Property(name)))
	}
	b.WriteString("features=" + strings.Join(d.release.features, ","))
	d.link.queue(newMessage(cmdCNXN, d.release.version, uint32(d.maxPayload), []byte(b.String()), true), nil)
}

// bannerSafe keeps a property from ending its field.
var bannerSafe = strings.NewReplacer(";", "_", ":", "_", "=", "_")

// sendToken asks for a signature of new random bytes; d.mu is held.
func (d *daemon) sendToken() {
	d.token = make([]byte, tokenSize)
	rand.Read(d.token) // never fails
	d.link.queue(newMessage(cmdAUTH, authToken, 0, d.token, true), nil)
}

// authenticate handles AUTH; d.mu is held.
func (d *daemon) authenticate(m message) {
	switch m.arg0 {
	case authSignature:
		if !d.phone.Faults().Unauthorized && d.phone.keys.verify(d.token, m.payload) {
			d.goOnline()
			return
		}
		d.sendToken()
	case authPublicKey:
		key, err := parseOfferedKey(m.payload)
		if err != nil {
			d.phone.record(violationf(RulePublicKey, "%v", err))
			return
		}
		d.phone.prompt(d, key)
	default:
		d.phone.record(violationf(RuleHandshake, "AUTH of kind %d", m.arg0))
	}
}

// accepted lets the host in whose key the user has just accepted.
func (d *daemon) accepted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == waiting && d.ctx.Err() == nil {
		d.goOnline()
	}
}

// open handles OPEN; d.mu is held.
func (d *daemon) open(m message) {
	if d.state != online {
		d.phone.record(violationf(RuleOpen, "OPEN before the phone was online"))
		return
	}
	if m.arg0 == 0 {
		d.phone.record(violationf(RuleOpen, "OPEN with id 0"))
		return
	}
	refuse := func() { d.queueClose(0, m.arg0) }
	if (m.arg1 != 0) != d.delayedAck {
		d.phone.record(violationf(RuleOpen, "OPEN with window %d, delayed acknowledgement is %t", m.arg1, d.delayedAck))
		if d.release.has("delayed_ack") {
			refuse()
		}
		return
	}
	name := string(m.payload)
	if d.release.needsNUL && !strings.HasSuffix(name, "\x00") {
		d.phone.record(violationf(RuleDestination, "OPEN of %q without NUL at its end", name))
		refuse()
		return
	}
	serve := d.service(strings.TrimRight(name, "\x00"))
	if serve == nil {
		refuse()
		return
	}
	d.lastID++
	s := newStream(d, d.lastID, m.arg0, m.arg1)
	d.streams[s.id] = s
	if d.delayedAck {
		s.credit.Store(int64(d.phone.config.Window))
		d.queueMessage(cmdOKAY, s.id, s.peer, binary.LittleEndian.AppendUint32(nil, uint32(d.phone.config.Window)), nil)
	} else {
		d.queueMessage(cmdOKAY, s.id, s.peer, nil, nil)
	}
	d.start(func() {
		serve(s.ctx, s)
		s.finish()
	})
}

// streamMessage handles OKAY, CLSE and WRTE; d.mu is held.
func (d *daemon) streamMessage(m message) error {
	s := d.streams[m.arg1]
	if s != nil && s.peer == 0 {
		return d.answered(s, m)
	}
	if s != nil && s.peer != m.arg0 && (m.command != cmdCLSE || m.arg0 != 0) {
		s = nil
	}
	switch {
	case s == nil:
		if m.command == cmdOKAY {
			d.queueClose(m.arg1, m.arg0)
		}
	case m.command == cmdOKAY:
		return s.acknowledged(m.payload)
	case m.command == cmdWRTE:
		return s.deliver(m.payload)
	default:
		d.closeStream(s, true)
	}
	return nil
}

// closeStream ends a stream and tells the host, or not; d.mu is held.
func (d *daemon) closeStream(s *stream, tell bool) {
	if d.streams[s.id] != s {
		return
	}
	delete(d.streams, s.id)
	s.close()
	if tell && s.peer != 0 {
		d.queueClose(s.id, s.peer)
	}
}

// closeStreams ends all streams; d.mu is held.
func (d *daemon) closeStreams(tell bool) {
	for _, s := range d.streams {
		d.closeStream(s, tell)
	}
}

func (d *daemon) queueClose(id, peer uint32) {
	d.queueMessage(cmdCLSE, id, peer, nil, nil)
	if d.release.doubleClose && id != 0 {
		d.queueMessage(cmdCLSE, id, peer, nil, nil)
	}
}

// queueMessage sends a message that is not part of the handshake; d.mu is held.
func (d *daemon) queueMessage(c command, arg0, arg1 uint32, payload []byte, sent func()) {
	d.link.queue(newMessage(c, arg0, arg1, payload, d.sums), sent)
}
