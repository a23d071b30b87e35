package mdns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lan is a cable that everybody is plugged into.
type lan struct {
	mu      sync.Mutex
	members map[*member]bool
	heard   []heard // by the cable
}

type heard struct {
	from, to netip.AddrPort
	m        dnsmessage.Message
	at       time.Time
}

// member is a socket on the cable.
type member struct {
	lan    *lan
	addr   netip.AddrPort
	in     chan frame
	broken chan struct{} // a read fails when it gives something
	closed chan struct{}
	once   sync.Once
}

type frame struct {
	data []byte
	from netip.AddrPort
}

func (l *lan) join(addr string, port uint16) *member {
	m := &member{lan: l, addr: netip.AddrPortFrom(netip.MustParseAddr(addr), port), in: make(chan frame, 100), broken: make(chan struct{}, 1), closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members == nil {
		l.members = map[*member]bool{}
	}
	l.members[m] = true
	return m
}

func (m *member) Read(buf []byte) (int, netip.AddrPort, error) {
	select {
	case f := <-m.in:
		return copy(buf, f.data), f.from, nil
	case <-m.broken:
		return 0, netip.AddrPort{}, errors.New("network is down")
	case <-m.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (m *member) Send(data []byte, to netip.AddrPort) error {
	m.lan.mu.Lock()
	defer m.lan.mu.Unlock()
	var message dnsmessage.Message
	if err := message.Unpack(data); err != nil {
		return err
	}
	m.lan.heard = append(m.lan.heard, heard{m.addr, to, message, time.Now()})
	for other := range m.lan.members {
		if other != m && (!to.IsValid() || other.addr == to) {
			select {
			case other.in <- frame{data, m.addr}:
			default: // nobody reads there
			}
		}
	}
	return nil
}

func (m *member) Close() error {
	m.once.Do(func() { close(m.closed) })
	m.lan.mu.Lock()
	defer m.lan.mu.Unlock()
	delete(m.lan.members, m)
	return nil
}

// host is a Network with one interface on the cable.
type host struct {
	lan *lan

	mu   sync.Mutex
	addr string // "" while the interface is down
}

func (h *host) set(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr = addr
}

func (h *host) Links() ([]Link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.addr == "" {
		return nil, nil
	}
	return []Link{{Interface: "eth0", Index: 2, Addresses: []netip.Prefix{netip.MustParsePrefix(h.addr + "/24")}}}, nil
}

func (h *host) Open(l Link) (Socket, error) {
	if strings.HasSuffix(l.Addresses[0].Addr().String(), ".255") {
		return nil, errors.New("no such device")
	}
	return h.lan.join(l.Addresses[0].Addr().String(), port), nil
}

// plug starts a responder; stop ends it.
func plug(t *testing.T, h *host, name string) (r *Responder, stop func()) {
	t.Helper()
	r, err := New(Options{Name: name, Port: 8080, Text: []string{"version=1.0"}, Network: h, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}
}

// said are the answers that an address has sent, one record a line, since a time.
func (l *lan) said(addr string, since time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, h := range l.heard {
		if h.from.Addr().String() != addr || h.at.Before(since) || !h.m.Response {
			continue
		}
		for _, r := range h.m.Answers {
			lines = append(lines, show(r))
		}
	}
	return strings.Join(lines, "\n")
}

func show(r dnsmessage.Resource) string {
	data := ""
	switch b := r.Body.(type) {
	case *dnsmessage.AResource:
		data = net.IP(b.A[:]).String()
	case *dnsmessage.PTRResource:
		data = b.PTR.String()
	case *dnsmessage.SRVResource:
		data = fmt.Sprint(b.Target, b.Port)
	case *dnsmessage.TXTResource:
		data = strings.Join(b.TXT, " ")
	}
	return fmt.Sprintf("%s %s %d %t %s", r.Header.Name, strings.TrimPrefix(r.Header.Type.String(), "Type"), r.Header.TTL, r.Header.Class&flush != 0, data)
}

const announced = `rack-1.local. A 120 true 192.0.2.7
rack-1._http._tcp.local. SRV 120 true rack-1.local. 8080
rack-1._http._tcp.local. TXT 4500 true version=1.0
_http._tcp.local. PTR 4500 false rack-1._http._tcp.local.
_services._dns-sd._udp.local. PTR 4500 false _http._tcp.local.`

func question(name string, kind dnsmessage.Type, class dnsmessage.Class) *dnsmessage.Message {
	return &dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: class}}}
}

func (m *member) send(t *testing.T, message *dnsmessage.Message) {
	t.Helper()
	data, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(data, netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
}

func TestANameIsProbedAnnouncedAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		_, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		var probed, told int
		for _, h := range l.heard {
			if h.m.Response {
				told++
				continue
			}
			if told > 0 || len(h.m.Questions) != 2 || h.m.Questions[0].Type != dnsmessage.TypeALL || len(h.m.Authorities) != 3 {
				t.Errorf("probe %+v after %d announcements", h.m, told)
			}
			probed++
		}
		if got := l.said("192.0.2.7", time.Time{}); probed != 3 || told != 2 || got != announced+"\n"+announced {
			t.Errorf("%d probes, %d announcements:\n%s", probed, told, got)
		}
		end := time.Now()
		stop()
		if got := l.said("192.0.2.7", end); strings.Count(got, " 0 ") != 5 {
			t.Errorf("at the end: %s", got)
		}
	})
}

func TestQuestionsAreAnswered(t *testing.T) {
	const ptr = "_http._tcp.local. PTR 4500 false rack-1._http._tcp.local."
	known := question("_http._tcp.local.", dnsmessage.TypePTR, dnsmessage.ClassINET)
	known.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("_http._tcp.local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET, TTL: 3000},
		Body:   &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName("rack-1._http._tcp.local.")},
	}}
	response := question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET)
	response.Header.OpCode = 1
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		_, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		person, resolver, stranger := l.join("192.0.2.9", port), l.join("192.0.2.9", 4000), l.join("203.0.113.1", port)
		time.Sleep(4 * time.Second)
		for name, c := range map[string]struct {
			asker *member
			ask   *dnsmessage.Message
			want  string
		}{
			"services":             {person, question("_http._tcp.local.", dnsmessage.TypePTR, dnsmessage.ClassINET), ptr},
			"a known answer":       {person, known, ""},
			"address, other case":  {person, question("RACK-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET), "rack-1.local. A 120 true 192.0.2.7"},
			"address, to one":      {person, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET|flush), "rack-1.local. A 120 true 192.0.2.7"},
			"by a plain resolver":  {resolver, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET), "rack-1.local. A 10 false 192.0.2.7"},
			"from another network": {stranger, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET), ""},
			"another name":         {person, question("rack-2.local.", dnsmessage.TypeA, dnsmessage.ClassINET), ""},
			"another type":         {person, question("rack-1.local.", dnsmessage.TypeAAAA, dnsmessage.ClassINET), ""},
			"another class":        {person, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassCHAOS), ""},
			"another operation":    {person, response, ""},
		} {
			began := time.Now()
			c.asker.send(t, c.ask)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got := l.said("192.0.2.7", began); got != c.want {
				t.Errorf("%s: %q", name, got)
			}
		}
		asked := question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET)
		asked.ID = 77
		resolver.send(t, asked)
		synctest.Wait()
		if last := l.heard[len(l.heard)-1]; last.to != resolver.addr || last.m.ID != 77 || len(last.m.Questions) != 1 || len(last.m.Additionals) != 2 {
			t.Errorf("a plain resolver hears %+v", last)
		}
		began := time.Now()
		for range 100 {
			person.send(t, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET))
			resolver.send(t, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET))
			synctest.Wait()
		}
		if n := strings.Count(l.said("192.0.2.7", began), "\n") + 1; n > answers {
			t.Errorf("%d answers to a flood", n)
		}
		for _, bad := range [][]byte{nil, {1}, make([]byte, 8000)} {
			for other := range l.members {
				if other.addr.Addr() == netip.MustParseAddr("192.0.2.7") {
					other.in <- frame{bad, person.addr}
				}
			}
		}
		synctest.Wait()
	})
}

func TestANameThatIsTakenIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		first, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		time.Sleep(4 * time.Second)
		second, stopSecond := plug(t, &host{lan: l, addr: "192.0.2.8"}, "rack-1")
		defer stopSecond()
		time.Sleep(10 * time.Second)
		if first.Name() != "rack-1" || second.Name() != "rack-1-2" {
			t.Errorf("they are called %s and %s", first.Name(), second.Name())
		}
		if got := l.said("192.0.2.8", time.Time{}); strings.Contains(got, "rack-1.local.") || !strings.Contains(got, "rack-1-2.local. A 120 true 192.0.2.8") {
			t.Errorf("the second said %s", got)
		}
	})
}

// Two racks that are switched on together: one gives way and takes another name.
func TestTwoThatBeginTogetherGetTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		first, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		second, stopSecond := plug(t, &host{lan: l, addr: "192.0.2.8"}, "rack-1")
		defer stopSecond()
		time.Sleep(20 * time.Second)
		names := []string{first.Name(), second.Name()}
		slices.Sort(names)
		if !slices.Equal(names, []string{"rack-1", "rack-1-2"}) {
			t.Errorf("they are called %v", names)
		}
	})
}

func TestAHeavierProbeIsGivenWay(t *testing.T) {
	for address, waits := range map[[4]byte]bool{{255, 255, 255, 255}: true, {0, 0, 0, 1}: false} {
		synctest.Test(t, func(t *testing.T) {
			l := &lan{}
			began := time.Now()
			_, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
			defer stop()
			other := l.join("192.0.2.9", port)
			time.Sleep(300 * time.Millisecond) // the first probe is out
			probe := question("rack-1.local.", dnsmessage.TypeALL, dnsmessage.ClassINET)
			probe.Authorities = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("rack-1.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 120},
				Body:   &dnsmessage.AResource{A: address},
			}}
			other.send(t, probe)
			time.Sleep(1200*time.Millisecond - time.Since(began))
			synctest.Wait()
			if told := l.said("192.0.2.7", began) != ""; told == waits {
				t.Errorf("%v: announced after 1.2 s: %t", address, told)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if l.said("192.0.2.7", began) == "" {
				t.Errorf("%v: never announced", address)
			}
		})
	}
}

// TestANeighbourThatDisputesEachName, by answers or by heavier probes: a few names are tried, then none is announced for an hour.
func TestANeighbourThatDisputesEachName(t *testing.T) {
	for _, probes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &lan{}
			began := time.Now()
			r, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
			defer stop()
			time.Sleep(4 * time.Second)
			other := l.join("192.0.2.9", port)
			names := map[string]bool{}
			var muted time.Duration
			for time.Since(began) < 50*time.Minute {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				name := r.Name()
				if names[name] = true; name == "" {
					if muted == 0 {
						muted = time.Since(began)
					}
					name = "rack-1"
				}
				own := dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name + ".local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 120},
					Body:   &dnsmessage.AResource{A: [4]byte{255, 255, 255, 255}},
				}
				m := &dnsmessage.Message{Header: response, Answers: []dnsmessage.Resource{own}}
				if probes && len(names) > 1 { // an answer has it probe again
					m = question(name+".local.", dnsmessage.TypeALL, dnsmessage.ClassINET)
					m.Authorities = []dnsmessage.Resource{own}
				}
				other.send(t, m)
			}
			if len(names) > maxDisputes+1 || !names[""] || muted > 10*time.Minute {
				t.Errorf("probes %v: %d names were tried, none after %v", probes, len(names), muted)
			}
			if r.Name() != "" {
				t.Errorf("probes %v: after 50 minutes its name is %s", probes, r.Name())
			}
			other.Close()
			before := time.Now()
			time.Sleep(time.Until(began.Add(muted + disputesIn + 5*time.Second)))
			synctest.Wait()
			if got := l.said("192.0.2.7", before); r.Name() != "rack-1" || !strings.Contains(got, "rack-1.local. A 120 true 192.0.2.7") {
				t.Errorf("probes %v: afterwards its name is %q: %s", probes, r.Name(), got)
			}
		})
	}
}

// TestANameIsNotGivenUpForOnePacket: it is probed for again, and its owner would answer that.
func TestANameIsNotGivenUpForOnePacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		r, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		time.Sleep(4 * time.Second)
		began := time.Now()
		l.join("192.0.2.9", port).send(t, &dnsmessage.Message{Header: response, Answers: []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("rack-1.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 120},
			Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 9}},
		}}})
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := l.said("192.0.2.7", began); r.Name() != "rack-1" || !strings.Contains(got, "rack-1.local. A 120 true 192.0.2.7") {
			t.Errorf("it is called %s, and said %s", r.Name(), got)
		}
	})
}

func TestAnInterfaceThatChangesBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		h := &host{lan: l}
		_, stop := plug(t, h, "rack-1")
		defer stop()
		time.Sleep(20 * time.Second)
		if len(l.heard) != 0 {
			t.Errorf("%d packets without an interface", len(l.heard))
		}
		h.set("192.0.2.255") // cannot be opened
		time.Sleep(20 * time.Second)
		for _, addr := range []string{"169.254.3.4", "192.0.2.7"} { // link-local first, then a DHCP server appears
			h.set(addr)
			began := time.Now()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := l.said(addr, began); strings.Count(got, "rack-1.local. A 120 true "+addr) != 2 {
				t.Errorf("with %s: %s", addr, got)
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.members) != 1 {
			t.Errorf("%d sockets are open", len(l.members))
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no name": {Port: 80}, "a dot": {Name: "a.b", Port: 80}, "a hyphen first": {Name: "-a", Port: 80},
		"too long": {Name: strings.Repeat("a", 61), Port: 80}, "no port": {Name: "a"}, "a long text": {Name: "a", Port: 80, Text: []string{strings.Repeat("x", 256)}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The kernel's side: every link of this machine can be opened, closed and read, and a closed one's reader ends.
func TestTheKernelsLinksOpen(t *testing.T) {
	links, err := kernel{}.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		s, err := kernel{}.Open(l)
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			continue
		}
		done := make(chan error, 1)
		go func() {
			for {
				if _, _, err := s.Read(make([]byte, maxPacket)); err != nil {
					done <- err
					return
				}
			}
		}()
		s.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the reader ended with %v", l.Interface, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	packed, err := question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET).Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		if err == nil && (len(m.Questions) > maxQuestions || len(m.Answers)+len(m.Authorities)+len(m.Additionals) > maxRecords) {
			t.Errorf("%d questions and many records", len(m.Questions))
		}
	})
}

// TestASocketThatFailsIsOpenedAnew: its interface is there all the time.
func TestASocketThatFailsIsOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		_, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		time.Sleep(4 * time.Second)
		l.mu.Lock()
		for m := range l.members {
			m.broken <- struct{}{}
		}
		l.mu.Unlock()
		time.Sleep(lookEvery + 4*time.Second)
		began := time.Now()
		l.join("192.0.2.9", port).send(t, question("rack-1.local.", dnsmessage.TypeA, dnsmessage.ClassINET))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := l.said("192.0.2.7", began); !strings.Contains(got, "rack-1.local. A 120 true 192.0.2.7") {
			t.Errorf("asked for its address it says %q", got)
		}
	})
}

// TestOnlyTheServicesPortDisputesAName: any program of a host may send from another (RFC 6762, section 6).
func TestOnlyTheServicesPortDisputesAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lan{}
		r, stop := plug(t, &host{lan: l, addr: "192.0.2.7"}, "rack-1")
		defer stop()
		time.Sleep(4 * time.Second)
		began := time.Now()
		l.join("192.0.2.9", 40000).send(t, &dnsmessage.Message{Header: response, Answers: []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("rack-1.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 120},
			Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 9}},
		}}})
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := l.said("192.0.2.7", began); got != "" || r.Name() != "rack-1" {
			t.Errorf("it is called %s, and says %q", r.Name(), got)
		}
	})
}

func TestAMessageOfFarTooMuchIsNotRead(t *testing.T) {
	for _, c := range []struct {
		questions, records int
		read               bool
	}{{maxQuestions, 0, true}, {maxQuestions + 1, 0, false}, {0, maxRecords, true}, {0, maxRecords + 1, false}} {
		m := dnsmessage.Message{Header: response}
		for range c.questions {
			m.Questions = append(m.Questions, dnsmessage.Question{Name: dnsmessage.MustNewName("x."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET})
		}
		for n := range c.records {
			r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("x."), Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{}}
			if n%2 == 0 {
				m.Answers = append(m.Answers, r)
			} else {
				m.Additionals = append(m.Additionals, r)
			}
		}
		data, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(data); (err == nil) != c.read {
			t.Errorf("%d questions and %d records: %v", c.questions, c.records, err)
		}
	}
}
