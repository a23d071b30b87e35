//go:build rig

package controllerrig_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

// limit bounds the board's test: on a loaded machine it is several times slower than on an idle one.
const limit = 12 * time.Minute

// addresses is how many devices QEMU's controller has room for, hubs included: it cannot be given fewer.
const addresses = 64

// boardFile is a rack of three slots: two on a hub whose ports are switched, at full speed, and one on the controller.
const boardFile = `
name = "controller rig"

[[controller]]
name = "qemu-xhci"
buses = [1, 2]
devices = 64

[[hub]]
name = "A"
path = "1-1"
ports = 8
power = "ports"
off_time = "2s"

[[slot]]
number = 1
path = "1-1.1"

[[slot]]
number = 2
path = "1-1.2"

[[slot]]
number = 3
path = "1-2"
`

var ports = map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-2"}

// settings make looks and settling short, and each rung of the ladder is tried once. Everything else is as it is shipped.
const settings = `
[health.probe]
interval = "5s"
confirm = 1
[health.ladder]
off_time = "2s"
[health.ladder.reopen]
tries = 1
settle = "1s"
[health.ladder.resync]
tries = 1
settle = "1s"
[health.ladder.clear_halt]
settle = "1s"
[health.ladder.port_cycle]
settle = "15s"
`

// The devices that fill the controller up: hubs on its own ports from the third on, and mice in the hubs and behind them.
const (
	firstPort  = 3
	fillHubs   = 6
	hubPorts   = 8
	boardPorts = 15
	expected   = 3 // of the board's own: hub A, and the phones of two slots
)

// hubs are hub A and those of the filling. No port of them is taken before the mice come.
func hubs() []rig.Hub {
	all := []rig.Hub{{Path: "1-1", Ports: hubPorts}}
	for i := range fillHubs {
		all = append(all, rig.Hub{Path: fmt.Sprintf("1-%d", firstPort+i), Ports: hubPorts})
	}
	return all
}

// fill plugs mice in until there is room for the board's own devices alone.
func (b *bench) fill(t *testing.T) {
	t.Helper()
	var free []string
	for port := firstPort + fillHubs; port <= boardPorts; port++ {
		free = append(free, fmt.Sprint(port))
	}
	for i := range fillHubs * hubPorts {
		free = append(free, fmt.Sprintf("%d.%d", firstPort+i/hubPorts, 1+i%hubPorts))
	}
	for _, port := range free[:addresses-expected-fillHubs] {
		mouse := map[string]string{"driver": "usb-mouse", "id": name(port), "bus": "xhci.0", "port": port}
		if err := b.Monitor(b.ctx, "device_add", mouse, nil); err != nil {
			t.Fatal(err)
		}
		b.mice = append(b.mice, "1-"+port)
	}
}

// name is a mouse's name for QEMU's monitor.
func name(port string) string { return "fill" + strings.ReplaceAll(port, ".", "-") }

// bench is a rack on the emulated board, and the phones in it.
type bench struct {
	*rackrig.Board
	ctx    context.Context
	phones map[int]*rackrig.Phone
	heard  map[int]*requests
	mice   []string
}

// boot boots the board; rackd does not run yet, and no phone is plugged in.
func boot(t *testing.T) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	forty, err := fortyFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{ctx: ctx, phones: map[int]*rackrig.Phone{}, heard: map[int]*requests{}}
	for n, port := range ports {
		b.heard[n] = &requests{}
		if b.phones[n], err = rackrig.Simulate(rackrig.PhoneSpec{
			Slot: n, Port: port, Serial: fmt.Sprintf("SIM%04d", n), Android: 14, Language: "en", Seed: int64(n),
			Width: 360, Height: 640, Density: 160, // an emulated processor reads its screen
			Logger: slog.New(b.heard[n]),
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.Board, err = rackrig.Boot(ctx, kit, rackrig.BoardSpec{
		Hubs: hubs(), Slots: ports, Board: boardFile, Config: settings, Files: forty, Wires: true,
	})
	if b.Board != nil {
		rig.CloseAfter(t, b.Board.Board)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// requests are those of the bus that a phone has logged.
type requests struct {
	mu     sync.Mutex // guards all below
	clears []string   // endpoints, in hexadecimal
	resets int
}

func (r *requests) Enabled(context.Context, slog.Level) bool { return true }
func (r *requests) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *requests) WithGroup(string) slog.Handler            { return r }

// Handle implements slog.Handler.
func (r *requests) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch record.Message {
	case "host clears a halt":
		record.Attrs(func(a slog.Attr) bool {
			r.clears = append(r.clears, fmt.Sprintf("%02x", a.Value.Uint64()))
			return true
		})
	case "host resets the port":
		r.resets++
	}
	return nil
}

// since gives what has come, and forgets it.
func (r *requests) since() (clears []string, resets int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clears, resets = r.clears, r.resets
	r.clears, r.resets = nil, 0
	return clears, resets
}

// ctl runs rackctl and reads its JSON into result.
func (b *bench) ctl(t *testing.T, result any, args ...string) {
	t.Helper()
	if err := rackrig.Ask(b.ctx, b, result, args...); err != nil {
		t.Fatal(err)
	}
}

// until waits until rackctl slots tells something.
func (b *bench) until(t *testing.T, what string, is func(map[int]action.SlotHealth) bool) map[int]action.SlotHealth {
	t.Helper()
	all, err := rackrig.WaitSlots(b.ctx, b, is)
	if err != nil {
		t.Fatalf("not seen: %s; %v", what, err)
	}
	return all
}

var well = rackrig.Well

// acts are what the ladder has done about a slot, the oldest first.
func acts(s action.SlotHealth) string { return strings.Join(rackrig.Acts(s), ", ") }

// sh runs a command in the board.
func (b *bench) sh(t *testing.T, command string) string {
	t.Helper()
	out, err := b.Sh(b.ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// number is the device number that the kernel has given what is at a port: another one after each reset and each plug.
func (b *bench) number(t *testing.T, port string) string {
	t.Helper()
	return strings.TrimSpace(b.sh(t, "cat /sys/bus/usb/devices/"+port+"/devnum"))
}

// honest fails if a phone saw the host break a rule.
func (b *bench) honest(t *testing.T) {
	t.Helper()
	for n, p := range b.phones {
		if v := p.USB.Violations(); len(v) > 0 {
			t.Errorf("the phone of slot %d has seen %v", n, v)
		}
	}
}
