package firmware_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/control"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
)

// A cable is a bus of two ports on the board file and one beside it, with simulated phones behind pipes.
type cable struct {
	events chan bus.Event
	served sync.WaitGroup

	mu     sync.Mutex
	phones map[string]*simPhone // guarded by mu, by port path, as is opens
	opens  map[string]int
	stuck  map[string]bool // opening these does not return before its context ends
}

func newCable() *cable {
	return &cable{events: make(chan bus.Event, 16), phones: map[string]*simPhone{}, opens: map[string]int{}, stuck: map[string]bool{}}
}

// Open implements firmware.Dialer.
func (c *cable) Open(ctx context.Context, d bus.Device) (adb.Link, error) {
	c.mu.Lock()
	p, stuck := c.phones[d.Path], c.stuck[d.Path]
	c.opens[d.Path]++
	c.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, fmt.Errorf("open port %s: %w", d.Path, ctx.Err())
	}
	if p == nil {
		return nil, errors.New("the ADB interface is held by another process (is an adb server running?)")
	}
	near, far := net.Pipe()
	c.served.Go(func() { p.ServeStream(context.Background(), far) })
	return adb.NewStreamLink(near), nil
}

// watch gives the events until ctx ends; a second call begins with what is plugged in, as the real watcher does.
func (c *cable) watch(ctx context.Context) <-chan bus.Event {
	events := make(chan bus.Event)
	go func() {
		defer close(events)
		for {
			select {
			case e := <-c.events:
				events <- e
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

func (c *cable) plug(path string, address int, p *simPhone, serial string) bus.Device {
	d := bus.Device{Path: path, Bus: 1, Address: address, Serial: serial, Product: "Pixel 7", Speed: 480}
	c.mu.Lock()
	c.phones[path] = p
	c.mu.Unlock()
	c.events <- bus.Event{Kind: bus.Added, Device: d}
	return d
}

const usbBoard = `name = "two ports"
[[slot]]
number = 1
path = "1-1.1"
label = "left"
[[slot]]
number = 2
path = "1-1.2"
`

func newUSBBench(t *testing.T, c *cable, change ...func(*firmware.Options)) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "rack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sysfs := filepath.Join(dir, "sys/module/usbcore/parameters")
	if err := os.MkdirAll(sysfs, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(sysfs, "usbfs_memory_mb"): "16\n",
		filepath.Join(dir, "board.toml"):        usbBoard,
		filepath.Join(dir, "rackd.toml"):        "[rack]\nid = \"usb\"\nboard = \"board.toml\"\nstate = \"state\"\nruntime = \"run\"\n[usb]\nsysfs = \"sys\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := config.Load(filepath.Join(dir, "rackd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	o := firmware.Options{
		Config: conf, Planner: conf.Scripted, Dialer: c, Watch: c.watch, Kernel: &dmesg{}, Logger: logger(t),
	}
	for _, fn := range change {
		fn(&o)
	}
	b := &bench{t: t, config: conf, Client: &control.Client{Socket: conf.Control.Socket}}
	b.run(o)
	t.Cleanup(func() {
		b.stop()
		c.served.Wait()
	})
	return b
}

// run starts a rack of these options, the first one or the one after.
func (b *bench) run(o firmware.Options) {
	b.t.Helper()
	ready := make(chan struct{})
	o.OnReady = func() { close(ready) }
	rack, err := firmware.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rack.Run(ctx) }()
	b.rack, b.cancel, b.ended = rack, cancel, ended
	select {
	case <-ready:
	case err := <-ended:
		b.cancel = nil
		b.t.Fatalf("the rack ends before it is ready: %v", err)
	}
}

func TestPhonesOnTheBus(t *testing.T) {
	t.Parallel()
	c := newCable()
	b := newUSBBench(t, c)
	twin := func() *simPhone { return newSimPhone(t, "", "0123456789ABCDEF", 14, phonesim.Auth{}) }
	first := c.plug("1-1.1", 5, twin(), "0123456789ABCDEF")
	c.plug("1-1.2", 6, twin(), "0123456789ABCDEF")
	c.plug("1-1.4", 7, nil, "STRAY")
	b.await(1, action.Ready)
	b.await(2, action.Ready)

	var phones action.Phones
	if err := b.Call(t.Context(), "phones", nil, &phones); err != nil || len(phones.Phones) != 3 {
		t.Fatalf("%+v, %v", phones, err)
	}
	left, right, stray := phones.Phones[0], phones.Phones[1], phones.Phones[2]
	if !left.Duplicate || !right.Duplicate || left.Slot != 1 || left.Label != "left" || right.Slot != 2 {
		t.Errorf("twins: %+v, %+v", left, right)
	}
	if stray.Slot != 0 || stray.Port != "1-1.4" || stray.Serial != "STRAY" || !strings.Contains(stray.Reason, "is not on the board file") {
		t.Errorf("stray: %+v", stray)
	}

	c.events <- bus.Event{Kind: bus.Removed, Device: first}
	b.await(1, action.Empty)
	c.plug("1-1.1", 9, twin(), "OTHER")
	if state := b.await(1, action.Ready); state.Serial != "OTHER" || state.Duplicate {
		t.Errorf("after a replug: %+v", state)
	}
	if out, _, err := b.shell(2, "echo two", ""); out != "two\n" || err != nil {
		t.Errorf("slot 2: %q %v", out, err)
	}
}

// TestASlotIsEmptyWhoeverNoticedFirst: a link breaks a moment before the bus shows that its phone is gone, and the slot's owner
// is in a pause by then.
func TestASlotIsEmptyWhoeverNoticedFirst(t *testing.T) {
	t.Parallel()
	c := newCable()
	b := newUSBBench(t, c)
	d := c.plug("1-1.1", 5, nil, "BUSY")
	b.await(1, action.Failed)
	c.events <- bus.Event{Kind: bus.Removed, Device: d}
	b.await(1, action.Empty)
}

// TestAPhoneThatComesUpAtSuperSpeedHasTheSlotOfItsPort: a USB 3 hub has two halves, and the phone is on the other one then.
func TestAPhoneThatComesUpAtSuperSpeedHasTheSlotOfItsPort(t *testing.T) {
	t.Parallel()
	c := newCable()
	b := newUSBBench(t, c, onBoard(t, usbBoard+"[[hub]]\nname = \"A\"\npath = \"1-1\"\ncompanion = \"2-1\"\n"))
	d := c.plug("2-1.2", 5, newSimPhone(t, "", "SIM0002", 14, phonesim.Auth{}), "SIM0002")
	if s := b.await(2, action.Ready); s.Serial != "SIM0002" || s.Port != "1-1.2" {
		t.Errorf("%+v", s)
	}
	var all action.Phones
	if err := b.Call(t.Context(), "phones", nil, &all); err != nil || len(all.Phones) != 2 {
		t.Errorf("%d phones are listed, %v", len(all.Phones), err)
	}
	c.events <- bus.Event{Kind: bus.Removed, Device: d}
	b.await(2, action.Empty)
}

func TestPhoneThatCannotBeOpenedBacksOffAlone(t *testing.T) {
	t.Parallel()
	c := newCable()
	c.stuck["1-1.2"] = true
	b := newUSBBench(t, c)
	c.plug("1-1.1", 5, nil, "BUSY")
	c.plug("1-1.2", 6, nil, "STUCK")
	state := b.await(1, action.Failed)
	if !strings.Contains(state.Reason, "held by another process") {
		t.Errorf("state %+v", state)
	}
	_, _, err := b.shell(1, "true", "")
	if r := wire.From(err); r.Code != wire.PhoneOffline || !strings.Contains(fmt.Sprint(r.Args["detail"]), "held by another process") {
		t.Errorf("shell: %v %v", err, r.Args)
	}
	time.Sleep(4 * time.Second)
	c.mu.Lock()
	opens := c.opens["1-1.1"]
	c.mu.Unlock()
	if opens < 2 || opens > 4 {
		t.Errorf("%d attempts in four seconds: no back-off", opens)
	}
	c.plug("1-1.1", 7, newSimPhone(t, "", "GOOD", 14, phonesim.Auth{}), "GOOD")
	b.await(1, action.Ready)
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
