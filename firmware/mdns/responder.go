package mdns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/time/rate"
)

const (
	probes        = 3
	announcements = 2
	steady        = probes + announcements // a link's step when nothing is left to do

	probeEvery    = 250 * time.Millisecond
	announceEvery = time.Second
	lookEvery     = 5 * time.Second // at interfaces

	maxPacket  = 9000 // bytes, section 17
	maxWaiting = 64   // packets
	answers    = 20   // a second on each link
)

// Options of a Responder.
type Options struct {
	Name    string   // that is wanted: 1 to 60 of a-z, 0-9 and -
	Port    int      // of the page
	Text    []string // of the service, such as "version=1.0"; 255 bytes each at most
	Network Network  // nil: this machine's
	Logger  *slog.Logger
}

// A Responder answers for one name.
type Responder struct {
	options   Options
	log       *slog.Logger
	in        chan packet // from the readers; never closed
	readers   sync.WaitGroup
	links     map[string]*link
	failed    map[string]bool // links that could not be opened, so that it is said once
	suffix    int             // 1 for the name itself
	conflicts int             // since the name was last announced
	disputes  []time.Time     // of names of ours, within disputesIn
	muted     time.Time       // until when no name is tried any more

	mu sync.Mutex
	id identity // guarded by mu for Name; changed by Run alone
	is string
}

// link is a Link in use.
type link struct {
	Link
	socket Socket
	gone   chan struct{} // closed when the link is: its reader stops
	deaf   atomic.Bool   // its socket gives nothing any more
	step   int
	due    time.Time                      // of the step; zero if steady
	owed   map[string]dnsmessage.Resource // shared answers that wait a little
	owedAt time.Time                      // when they are sent; zero if none are
	yields int                            // in a row
	sent   map[string]time.Time           // when a record was multicast last
	budget *rate.Limiter
}

type packet struct {
	link *link
	data []byte
	from netip.AddrPort
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,58}[a-z0-9])?$`)

// Valid tells whether a rack can have the name.
func Valid(name string) bool { return validName.MatchString(name) }

// New checks the options.
func New(o Options) (*Responder, error) {
	if !Valid(o.Name) {
		return nil, fmt.Errorf("mdns: %.80q is no name: use 1 to 60 of a-z, 0-9 and -, not - at an end", o.Name)
	}
	if o.Port < 1 || o.Port > 65535 {
		return nil, fmt.Errorf("mdns: %d is no port", o.Port)
	}
	for _, t := range o.Text {
		if len(t) > 255 {
			return nil, errors.New("mdns: a text of a service is longer than 255 bytes")
		}
	}
	if len(o.Text) == 0 {
		o.Text = []string{""} // RFC 6763, section 6.1: never no string
	}
	if o.Network == nil {
		o.Network = kernel{}
	}
	r := &Responder{options: o, log: o.Logger, in: make(chan packet, maxWaiting), links: map[string]*link{}, failed: map[string]bool{}, suffix: 1}
	return r, r.call(o.Name)
}

// call takes a name.
func (r *Responder) call(name string) error {
	id, err := newIdentity(name, r.options.Port, r.options.Text)
	if err != nil {
		return fmt.Errorf("mdns: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id, r.is = id, name
	return nil
}

// Name is the name in force: that of the options unless another machine has it, "" while others dispute each. NAME.local is the host.
func (r *Responder) Name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is
}

// Run answers until ctx ends, and then takes the records back. A network that cannot be used now is tried again.
func (r *Responder) Run(ctx context.Context) error {
	defer r.readers.Wait()
	defer r.closeAll()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	r.look()
	for {
		timer := time.NewTimer(r.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case p := <-r.in:
			if r.links[p.link.key()] == p.link {
				r.receive(p)
			}
		case <-look.C:
			r.look()
		case <-timer.C:
		}
		timer.Stop()
		r.work(time.Now())
	}
}

// untilDue is how long nothing has to be done.
func (r *Responder) untilDue() time.Duration {
	next := time.Now().Add(time.Hour)
	for _, l := range r.links {
		for _, t := range []time.Time{l.due, l.owedAt} {
			if !t.IsZero() && t.Before(next) {
				next = t
			}
		}
	}
	return max(time.Until(next), 0)
}

// look opens links that are new or whose socket has failed, and closes those that are gone.
func (r *Responder) look() {
	links, err := r.options.Network.Links()
	if err != nil {
		r.log.Warn("the network interfaces cannot be listed", "err", err)
		return
	}
	now := map[string]bool{}
	for _, l := range links {
		key := l.key()
		now[key] = true
		if known := r.links[key]; known != nil {
			if !known.deaf.Load() {
				continue
			}
			r.close(known)
		}
		s, err := r.options.Network.Open(l)
		if err != nil {
			if !r.failed[key] {
				r.log.Warn("the rack's name is not announced on an interface", "interface", l.Interface, "err", err)
			}
			r.failed[key] = true
			continue
		}
		delete(r.failed, key)
		opened := &link{Link: l, socket: s, gone: make(chan struct{}), owed: map[string]dnsmessage.Resource{}, sent: map[string]time.Time{}, budget: rate.NewLimiter(answers, answers)}
		opened.begin(max(rand.N(probeEvery), time.Until(r.muted)))
		r.links[key] = opened
		r.readers.Go(func() { r.read(opened) })
	}
	for key, l := range r.links {
		if !now[key] {
			r.close(l)
		}
	}
	for key := range r.failed {
		if !now[key] {
			delete(r.failed, key)
		}
	}
}

// begin probes anew.
func (l *link) begin(after time.Duration) {
	l.step, l.due = 0, time.Now().Add(after)
	l.owedAt = time.Time{}
	clear(l.owed)
	clear(l.sent)
}

// read passes packets on until the link is closed. A socket that fails otherwise is opened anew by the next look at interfaces.
func (r *Responder) read(l *link) {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := l.socket.Read(buf)
		if err != nil {
			l.deaf.Store(true)
			<-l.gone
			return
		}
		select {
		case r.in <- packet{l, append([]byte(nil), buf[:n]...), from}:
		case <-l.gone:
			return
		default: // somebody floods the link
		}
	}
}

func (r *Responder) close(l *link) {
	close(l.gone)
	l.socket.Close()
	delete(r.links, l.key())
}

// closeAll takes the records back where they were announced.
func (r *Responder) closeAll() {
	for _, l := range r.links {
		if l.step > probes {
			records := r.id.records(l.Addresses)
			for i := range records {
				records[i].Header.TTL = 0
			}
			r.send(l, dnsmessage.Message{Header: response, Answers: records}, netip.AddrPort{})
		}
		r.close(l)
	}
}

var response = dnsmessage.Header{Response: true, Authoritative: true}

// work does what is due.
func (r *Responder) work(now time.Time) {
	if !r.muted.IsZero() && !now.Before(r.muted) {
		r.unmute()
	}
	for _, l := range r.links {
		if !l.due.IsZero() && !now.Before(l.due) {
			r.advance(l, now)
		}
		if !l.owedAt.IsZero() && !now.Before(l.owedAt) {
			l.owedAt = time.Time{}
			var records []dnsmessage.Resource
			for _, o := range l.owed {
				records = append(records, o)
			}
			clear(l.owed)
			r.multicast(l, records, now)
		}
	}
}

// advance sends the link's next probe or announcement.
func (r *Responder) advance(l *link, now time.Time) {
	if l.step < probes {
		r.probe(l)
		l.due = now.Add(probeEvery)
	} else {
		clear(l.sent)
		r.multicast(l, r.id.records(l.Addresses), now)
		l.due = now.Add(announceEvery)
	}
	if l.step++; l.step == steady {
		l.due, l.yields = time.Time{}, 0
		if r.conflicts > 0 {
			r.log.Warn("the rack has another name on the network, because its own was taken", "name", r.is)
		}
		r.conflicts = 0
	}
}

// probe asks who has the names, and says what they are wanted for.
func (r *Responder) probe(l *link) {
	const unicast = dnsmessage.ClassINET | flush
	m := dnsmessage.Message{Questions: []dnsmessage.Question{
		{Name: r.id.host, Type: dnsmessage.TypeALL, Class: unicast}, {Name: r.id.instance, Type: dnsmessage.TypeALL, Class: unicast},
	}}
	for _, own := range r.id.records(l.Addresses) {
		if r.id.owns(own.Header.Name) {
			own.Header.Class &= classMask
			m.Authorities = append(m.Authorities, own)
		}
	}
	r.send(l, m, netip.AddrPort{})
}

// multicast sends records that were not sent within a second.
func (r *Responder) multicast(l *link, records []dnsmessage.Resource, now time.Time) {
	m := dnsmessage.Message{Header: response}
	for _, own := range records {
		data, _ := rdata(own.Body)
		key := fmt.Sprint(own.Header.Name, own.Header.Type, data)
		if last, ok := l.sent[key]; ok && now.Sub(last) < time.Second {
			continue
		}
		l.sent[key] = now
		m.Answers = append(m.Answers, own)
	}
	if len(m.Answers) > 0 {
		r.send(l, m, netip.AddrPort{})
	}
}

func (r *Responder) send(l *link, m dnsmessage.Message, to netip.AddrPort) {
	data, err := pack(m)
	if err == nil {
		err = l.socket.Send(data, to)
	}
	if err != nil {
		r.log.Debug("mDNS was not sent", "interface", l.Interface, "err", err)
	}
}
