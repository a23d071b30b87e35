package firmware_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/mdns"
	"phonerack/firmware/qrcode"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/led"
	"phonerack/sync/wire"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// browserApp is the app that opens links on the simulated phones.
const browserApp = "com.phonerack.stage"

// ether is a network that notes what is sent to it.
type ether struct {
	mu      sync.Mutex
	packets []dnsmessage.Message // guarded by mu
}

func (e *ether) Links() ([]mdns.Link, error) {
	return []mdns.Link{{Interface: "eth0", Index: 2, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")}}}, nil
}

func (e *ether) Open(mdns.Link) (mdns.Socket, error) {
	return &etherPlug{ether: e, closed: make(chan struct{})}, nil
}

type etherPlug struct {
	ether  *ether
	closed chan struct{}
}

func (p *etherPlug) Read([]byte) (int, netip.AddrPort, error) {
	<-p.closed
	return 0, netip.AddrPort{}, net.ErrClosed
}

func (p *etherPlug) Close() error {
	close(p.closed)
	return nil
}

func (p *etherPlug) Send(packet []byte, _ netip.AddrPort) error {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return err
	}
	p.ether.mu.Lock()
	defer p.ether.mu.Unlock()
	p.ether.packets = append(p.ether.packets, m)
	return nil
}

// announced are the records of the newest announcement.
func (e *ether) announced() []dnsmessage.Resource {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range slices.Backward(e.packets) {
		if m.Response {
			return m.Answers
		}
	}
	return nil
}

// A signBench is a rack whose page listens for other machines, and whose phones have a browser.
type signBench struct {
	*bench
	ether   *ether
	visited chan string
	port    int
}

func newSignBench(t *testing.T, phones int, change ...func(*firmware.Options)) *signBench {
	b := &signBench{bench: newBench(t, phones), ether: &ether{}, visited: make(chan string, 10)}
	for n, p := range b.phones {
		b.phones[n] = b.withBrowser(p.path, fmt.Sprintf("SIM%04d", n), "")
		b.phones[n].plug(t)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	b.change = func(o *firmware.Options) {
		o.Config.Page.Listen, o.Config.Page.PIN = []string{fmt.Sprintf("0.0.0.0:%d", b.port)}, pagePIN
		o.Config.MDNS.Name = "bench"
		o.Addresses = func() ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("169.254.7.9"), netip.MustParseAddr("192.0.2.7")}, nil
		}
		o.Multicast = b.ether
		hasty(o)
		for _, c := range change {
			c(o)
		}
	}
	return b
}

func (b *signBench) withBrowser(path, serial, pin string) *simPhone {
	b.t.Helper()
	p := &simPhone{path: path}
	var err error
	if p.engine, err = screen.New(screen.Config{Width: 360, Height: 800, Density: 160}); err != nil {
		b.t.Fatal(err)
	}
	if p.device, err = android.New(android.Config{
		Serial: serial, Screen: p.engine, Browser: browserApp, Visited: func(url string) { b.visited <- url }, Locked: pin != "", PIN: pin,
	}); err != nil {
		b.t.Fatal(err)
	}
	if p.Phone, err = phonesim.New(phonesim.Config{Android: 14, Serial: serial, System: p.device}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.unplug)
	return p
}

func (b *signBench) way() action.Way {
	b.t.Helper()
	return b.status().Way
}

func (b *signBench) sign(args action.SignArgs) (action.Sign, error) {
	var seen action.Sign
	err := b.Call(b.t.Context(), "sign", args, &seen)
	return seen, err
}

const signPort = 18473 // docs/wayin.md

// page is what the phone's browser gets through the cable.
func (b *signBench) page(slot int) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	c, err := b.phones[slot].DialReverse(ctx, signPort)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		b.t.Fatalf("%d, %v", r.StatusCode, err)
	}
	return string(body)
}

// leadsIn wants the QR code of a phone's page to have a pass for the rack's own page, which is not written out anywhere.
func (b *signBench) leadsIn(code, url, page string) {
	b.t.Helper()
	drawn, err := qrcode.Draw(code)
	if err != nil || !strings.Contains(page, drawn.Path) {
		b.t.Errorf("the phone's page has another QR code than one of %q, %v", code, err)
	}
	pass, ok := strings.CutPrefix(code, url+"P/")
	if !ok || len(pass) < 26 || strings.Contains(page, pass) {
		b.t.Errorf("the code says %q", code)
	}
	w := httptest.NewRecorder()
	firmware.PageOf(b.rack).ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/P/"+pass, nil))
	if cookies := w.Result().Cookies(); w.Code != http.StatusSeeOther || len(cookies) != 1 || cookies[0].Name != "rack_pass" || cookies[0].Value != pass {
		b.t.Errorf("the rack's page answers the code with %d and %v", w.Code, cookies)
	}
}

// deaf tells whether the phone's port is closed.
func (b *signBench) deaf(slot int) bool {
	c, err := b.phones[slot].DialReverse(b.t.Context(), signPort)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, phonesim.ErrNoListener)
}

func (b *signBench) front(slot int) string {
	pkg, _ := b.phones[slot].engine.Focus()
	return pkg
}

const homeApp = "com.android.launcher3"

// TestAFreePhoneShowsTheWayAndGivesWay: the first that is free and well; until a person ends it, its time is over, or somebody
// else wants the phone.
func TestAFreePhoneShowsTheWayAndGivesWay(t *testing.T) {
	t.Parallel()
	b := newSignBench(t, 2)
	b.start()
	b.health(1, health.Well)
	b.health(2, health.Well)
	lee, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Hold, Who: "lee"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer lee.Release()
	urls := []string{fmt.Sprintf("http://192.0.2.7:%d/", b.port), fmt.Sprintf("http://169.254.7.9:%d/", b.port), fmt.Sprintf("http://bench.local:%d/", b.port)}

	seen, err := b.sign(action.SignArgs{})
	if err != nil || seen.Slot != 2 || !slices.Equal(seen.URLs, urls) || seen.Ends < time.Minute || seen.Ends > 2*time.Minute {
		t.Fatalf("%+v, %v", seen, err)
	}
	if got := <-b.visited; got != "http://127.0.0.1:18473/" || b.front(2) != browserApp {
		t.Errorf("the phone was sent to %s and shows %s", got, b.front(2))
	}
	if page := b.page(2); !strings.Contains(page, "<li>"+urls[0]+"<li>"+urls[1]+"<li>"+urls[2]) || !strings.Contains(page, "<svg") {
		t.Errorf("the page is %s", page)
	}
	b.leadsIn(firmware.CodeOf(b.rack, 2), urls[0], b.page(2))
	if way := b.way(); way.Name != "bench.local" || !slices.Equal(way.URLs, urls) || len(way.Signs) != 1 || way.Signs[0].Slot != 2 {
		t.Errorf("the status tells %+v", way)
	}
	if s := b.state(2); s.Lease != nil {
		t.Errorf("to others the slot is not free: %+v", s.Lease)
	}
	if again, err := b.sign(action.SignArgs{Seconds: 600}); err != nil || again.Slot != 2 || again.Ends < 5*time.Minute || len(b.visited) != 0 {
		t.Errorf("asked for again: %+v, %v, %d visits", again, err, len(b.visited))
	}
	if err := b.Call(t.Context(), "sign_end", action.SignEndArgs{Slot: 2}, nil); err != nil {
		t.Fatal(err)
	}
	b.within("the home screen when a person ends it", func() bool { return b.front(2) == homeApp && b.deaf(2) && len(b.way().Signs) == 0 })

	if _, err := b.sign(action.SignArgs{Slot: 2, Seconds: 1}); err != nil {
		t.Fatal(err)
	}
	b.within("the home screen when the time is over", func() bool { return b.front(2) == homeApp && b.deaf(2) && len(b.way().Signs) == 0 })

	if _, err := b.sign(action.SignArgs{Slot: 2}); err != nil {
		t.Fatal(err)
	}
	task, err := firmware.LeasesOf(b.rack).Acquire(2, lease.Holder{Kind: lease.Task, Who: "kim", TaskID: "t1"}, time.Minute)
	if err != nil {
		t.Fatalf("a task does not get the phone: %v", err)
	}
	b.within("the end when a task has the phone", func() bool { return b.deaf(2) && len(b.way().Signs) == 0 })
	if b.front(2) != browserApp || task.Check() != nil {
		t.Errorf("the task's phone shows %s, and its lease says %v", b.front(2), task.Check())
	}
	if _, err := b.sign(action.SignArgs{Slot: 2}); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("a phone that a task has: %v", err)
	}
	if _, err := b.sign(action.SignArgs{}); !wire.Is(err, wire.NoFreePhone) {
		t.Errorf("no free phone: %v", err)
	}
	if _, err := b.sign(action.SignArgs{Slot: 3}); !wire.Is(err, wire.SlotUnknown) {
		t.Errorf("no such slot: %v", err)
	}
	task.Release()
	if _, err := b.sign(action.SignArgs{Slot: 2}); err != nil {
		t.Fatal(err)
	}
	b.phones[2].unplug()
	b.within("the end when the phone goes", func() bool { return len(b.way().Signs) == 0 })
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the rack stopped after %v", took)
	}
}

// TestARackThatStopsPutsItsSignsDown, and a phone that asks for a PIN is left alone.
func TestARackThatStopsPutsItsSignsDown(t *testing.T) {
	t.Parallel()
	b := newSignBench(t, 2)
	b.phones[1].unplug()
	b.phones[1] = b.withBrowser(b.phones[1].path, "SIM0001", "4829")
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	b.health(2, health.Well)
	if _, err := b.sign(action.SignArgs{Slot: 1}); !wire.Is(err, wire.PhoneLocked) {
		t.Errorf("a phone with a PIN: %v", err)
	}
	lee, err := firmware.LeasesOf(b.rack).Acquire(2, lease.Holder{Kind: lease.Hold, Who: "lee"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.sign(action.SignArgs{}); !wire.Is(err, wire.PhoneLocked) {
		t.Errorf("of the free phones none can show it, and nobody says why: %v", err)
	}
	lee.Release()
	if seen, err := b.sign(action.SignArgs{}); err != nil || seen.Slot != 2 {
		t.Errorf("the next phone: %+v, %v", seen, err)
	}
	b.stop()
	b.within("the home screen after the end", func() bool { return b.front(2) == homeApp })
}

// TestARackWithoutAPageShowsNoWay, and is not announced.
func TestARackWithoutAPageShowsNoWay(t *testing.T) {
	t.Parallel()
	b := newSignBench(t, 1, func(o *firmware.Options) { o.Config.Page.Listen = nil })
	b.start()
	b.health(1, health.Well)
	for slot := range 2 {
		if _, err := b.sign(action.SignArgs{Slot: slot}); !wire.Is(err, wire.PageClosed) {
			t.Errorf("slot %d: %v", slot, err)
		}
	}
	if way := b.way(); way.Name != "" || len(way.URLs) != 0 || b.ether.announced() != nil {
		t.Errorf("%+v, and announced", way)
	}
}

// TestTheRackIsAnnouncedWithThePortOfItsPage: name, port, version and id.
func TestTheRackIsAnnouncedWithThePortOfItsPage(t *testing.T) {
	t.Parallel()
	b := newSignBench(t, 1, func(o *firmware.Options) {
		o.Config.MDNS.Name, o.Config.Rack.ID = "rack-7", "hall-2-rack-7"
	})
	b.start()
	var port uint16
	var text []string
	b.within("an announcement", func() bool {
		for _, r := range b.ether.announced() {
			switch body := r.Body.(type) {
			case *dnsmessage.SRVResource:
				if r.Header.Name.String() == "rack-7._http._tcp.local." && body.Target.String() == "rack-7.local." {
					port = body.Port
				}
			case *dnsmessage.TXTResource:
				text = body.TXT
			}
		}
		return port != 0
	})
	if int(port) != b.port || len(text) != 3 || text[0] != "path=/" || text[1] != "rack=hall-2-rack-7" || !strings.HasPrefix(text[2], "version=") {
		t.Errorf("port %d, text %q", port, text)
	}
	b.stop()
	if last := b.ether.announced(); len(last) == 0 || last[0].Header.TTL != 0 {
		t.Errorf("the name is not taken back: %v", last)
	}
}

// TestAShortPressOfTheButtonShowsTheWay, besides the light: hands at the rack need nothing else.
func TestAShortPressOfTheButtonShowsTheWay(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"BUTTON"}})
	kernel.Drive("BUTTON", true)
	const text = "name = \"a button\"\n[[slot]]\nnumber = 11\npath = \"1-1.1\"\n[button]\nline = \"BUTTON\"\nactive_low = true\n"
	b := newSignBench(t, 1, onBoard(t, text), func(o *firmware.Options) {
		o.GPIO, o.Watch = kernel, func(ctx context.Context) <-chan bus.Event {
			events := make(chan bus.Event)
			context.AfterFunc(ctx, func() { close(events) })
			return events
		}
	})
	b.start()
	b.health(1, health.Well)
	time.Sleep(300 * time.Millisecond) // the button is read, and is up
	kernel.Drive("BUTTON", false)
	time.Sleep(200 * time.Millisecond)
	kernel.Drive("BUTTON", true)
	b.within("the way on the phone's screen", func() bool { return len(b.way().Signs) == 1 && b.front(1) == browserApp })
	if s := b.way().Signs[0]; s.Slot != 1 || s.Ends > led.IdentifyFor {
		t.Errorf("%+v", s)
	}
}

// disputing is a network with a neighbour who answers for each name that is probed for.
type disputing struct{}

func (disputing) Links() ([]mdns.Link, error) { return (&ether{}).Links() }

func (disputing) Open(mdns.Link) (mdns.Socket, error) {
	return &disputed{said: make(chan []byte, 10), closed: make(chan struct{})}, nil
}

type disputed struct {
	said   chan []byte
	closed chan struct{} // closed by Close
}

func (d *disputed) Read(p []byte) (int, netip.AddrPort, error) {
	select {
	case m := <-d.said:
		return copy(p, m), netip.MustParseAddrPort("192.0.2.9:5353"), nil
	case <-d.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (d *disputed) Close() error {
	close(d.closed)
	return nil
}

func (d *disputed) Send(packet []byte, _ netip.AddrPort) error {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil || m.Response {
		return err
	}
	answer := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}, Answers: []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 120},
		Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 9}},
	}}}
	raw, err := answer.Pack()
	d.said <- raw
	return err
}

// TestARackWhoseNamesAreDisputedSaysSo, and is reached by its addresses as before.
func TestARackWhoseNamesAreDisputedSaysSo(t *testing.T) {
	t.Parallel()
	b := newSignBench(t, 1, func(o *firmware.Options) { o.Multicast = disputing{} })
	b.start()
	b.within("no name", func() bool { return b.way().Name == "" })
	if urls := strings.Join(b.way().URLs, " "); urls != fmt.Sprintf("http://192.0.2.7:%d/ http://169.254.7.9:%d/", b.port, b.port) {
		t.Errorf("the page is at %s", urls)
	}
	b.within("a finding", func() bool { return b.says("name_disputed", "bench.local") })
}
