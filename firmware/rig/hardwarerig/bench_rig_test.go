//go:build rig

package hardwarerig_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/hardwarerig"
	"phonerack/firmware/rig/powerrig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/firmware/status"
)

// limit bounds a board's test: on a loaded machine it is several times slower than on an idle one.
const limit = 12 * time.Minute

// Lines of the board's GPIO controller (docs/rig.md).
const (
	green       = 0
	hub1        = 1
	hub2        = 2
	overCurrent = 4
	red         = 5
	button      = 7
)

// boardFile is a rack of three hubs: of three phones and of one, each fed by a line, and of two whose ports are switched.
const boardFile = `
name = "hardware rig"
model = "emulated"

[[hub]]
name = "A"
path = "1-1"
ports = 4
power = "line"
line = "HUB1_PWR"
off_time = "5s"
settle = "1s"
over_current = { line = "OVERCURRENT" }

[[hub]]
name = "B"
path = "1-2"
ports = 4
power = "line"
line = "HUB2_PWR"
off_time = "5s"
settle = "1s"

[[hub]]
name = "C"
path = "1-3"
ports = 4
power = "ports"
off_time = "5s"

[button]
line = "BUTTON"
`

// ports are where the slots are.
var ports = map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-1.3", 4: "1-2.1", 5: "1-3.1", 6: "1-3.2"}

// settings make looks and settling short. Everything else is as it is shipped.
const settings = `
[health.probe]
interval = "5s"
confirm = 1
[health.battery]
interval = "1m"
[health.ladder]
off_time = "5s"
[health.ladder.reopen]
tries = 1
settle = "1s"
[health.ladder.resync]
per_day = 0
[health.ladder.port_cycle]
settle = "15s"
[health.ladder.hub_cycle]
settle = "15s"
[watchdog]
device = "/dev/watchdog0"
[page]
listen = ["127.0.0.1:8080"]
`

// feed is a line that feeds a hub, or the power of a hub's port; line is -1 for the latter.
type feed struct{ line, hub, port int }

func feedOf(c rig.Change) feed { return feed{c.Line, c.Hub, c.Port} }

// lineTo is that of a line.
func lineTo(n int) feed { return feed{line: n} }

// bench is a rack on the emulated board with the hardware around it.
type bench struct {
	*rackrig.Board
	ctx    context.Context
	relays *hardwarerig.Relays
	phones map[int]*hardwarerig.Phone
	asked  map[feed][]bool // of what feeds phones, from the start on
	hubC   int             // by the address that the traces name
	tell   bool            // the phones of hub A could say how their batteries were before it went off
}

// boot boots the board, with rackd under the manager, and waits until all phones can be used.
func boot(t *testing.T, within time.Duration, change ...func(*rackrig.BoardSpec)) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	manager, disk := filepath.Join(dir, "manager"), filepath.Join(dir, "disk")
	if err := rig.BuildPortable(ctx, manager, "build", "phonerack/firmware/rig/hardwarerig/manager"); err != nil {
		t.Fatal(err)
	}
	if err := powerrig.MakeImage(ctx, disk); err != nil {
		t.Fatal(err)
	}
	spec := rackrig.BoardSpec{
		Hubs: []rig.Hub{{Path: "1-1", Ports: 4}, {Path: "1-2", Ports: 4}, {Path: "1-3", Ports: 4}}, Slots: ports,
		Board: boardFile, Config: settings, Disk: &rig.Drive{Path: disk, Cache: "writeback"}, Memory: 1024, Wires: true,
		Files: map[string]string{"/bin/manager": manager}, Under: []string{"manager"},
		Modules: []string{"i6300esb", "ledtrig_transient"}, QEMU: []string{"-device", "i6300esb", "-action", "watchdog=pause"},
	}
	for n := range len(ports) {
		spec.Board += fmt.Sprintf("\n[[slot]]\nnumber = %d\npath = %q\n", n+1, ports[n+1])
	}
	for _, f := range change {
		f(&spec)
	}
	raw, err := rackrig.Boot(ctx, kit, spec)
	if raw != nil {
		rig.CloseAfter(t, raw.Board)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		Board: raw, ctx: ctx, phones: map[int]*hardwarerig.Phone{},
		// The machine's own reset, and then the board file's default.
		asked: map[feed][]bool{lineTo(hub1): {false, true}, lineTo(hub2): {false, true}},
	}
	for n, port := range ports {
		if b.phones[n], err = hardwarerig.NewPhone(n, port); err != nil {
			t.Fatal(err)
		}
	}
	b.relays = hardwarerig.Follow(raw, map[int][]*hardwarerig.Phone{
		hub1: {b.phones[1], b.phones[2], b.phones[3]}, hub2: {b.phones[4]},
	}, map[int][]*hardwarerig.Phone{1: {b.phones[5]}, 2: {b.phones[6]}})
	t.Cleanup(func() {
		if err := b.relays.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, n := range []int{5, 6} {
		if err := b.relays.Plug(ctx, b.phones[n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.StartRackd(ctx); err != nil {
		t.Fatal(err)
	}
	b.well(t, 1, 2, 3, 4, 5, 6)
	for _, c := range b.relays.Changes(portPower) { // the kernel gives each port its power when it finds the hub, hub C last
		b.ask(feedOf(c), true)
		b.hubC = c.Hub
	}
	return b
}

// ctl runs rackctl.
func (b *bench) ctl(t *testing.T, args ...string) {
	t.Helper()
	b.sh(t, "rackctl "+rackrig.Quote(args...))
}

// sh runs a command in the board.
func (b *bench) sh(t *testing.T, command string) string {
	t.Helper()
	out, err := b.Sh(b.ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// slots is what rackctl slots tells.
func (b *bench) slots(t *testing.T) map[int]action.SlotHealth {
	t.Helper()
	all, err := rackrig.Slots(b.ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// page is the technician's page, as JSON.
func (b *bench) page(t *testing.T) (p status.Snapshot) {
	t.Helper()
	// The board's wget looks up names of services, which a static program cannot.
	out := b.sh(t, `printf 'GET / HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nAccept: application/json\r\n\r\n' | nc 127.0.0.1 8080`)
	head, body, _ := strings.Cut(out, "\r\n\r\n")
	if err := json.Unmarshal([]byte(body), &p); err != nil || !strings.Contains(head, " 200 OK") {
		t.Fatalf("the page: %v\n%s", err, out)
	}
	return p
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

// line picks the changes of one line.
func line(n int) func(rig.Change) bool { return func(c rig.Change) bool { return c.Line == n } }

// portPower picks the changes of ports' power.
func portPower(c rig.Change) bool { return c.Line < 0 }

// feeds picks the changes of all that phones are fed by.
func feeds(c rig.Change) bool { return c.Line == hub1 || c.Line == hub2 || portPower(c) }

// port is a port of hub C: slot 5 is at the first, slot 6 at the second.
func (b *bench) port(n int) feed { return feed{-1, b.hubC, n} }

// edges waits until the edges that were asked for have been seen, and fails if there is any other.
func (b *bench) edges(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	for f, asked := range b.asked {
		if _, err := b.relays.Wait(ctx, len(asked)-1, func(c rig.Change) bool { return feedOf(c) == f }); err != nil {
			t.Errorf("an edge of %+v that was asked for does not come: %v", f, err)
		}
	}
	got := map[feed][]bool{}
	for _, c := range b.relays.Changes(feeds) {
		got[feedOf(c)] = append(got[feedOf(c)], c.On)
	}
	if !maps.EqualFunc(got, b.asked, slices.Equal[[]bool]) {
		t.Errorf("what phones are fed by has changed so:\n%v\nand this was asked for:\n%v\nall of it:\n%v", got, b.asked, b.relays.Changes(feeds))
	}
}

// ask notes edges that are asked for from now on.
func (b *bench) ask(f feed, levels ...bool) { b.asked[f] = append(b.asked[f], levels...) }

var ended = regexp.MustCompile(`^rackd: manager: ended `)

var started = regexp.MustCompile(`^rackd: manager: started (\d+)$`)

// process is rackd's number in the board, as the manager has told after the first n lines of the console.
func (b *bench) process(t *testing.T, n int) int {
	t.Helper()
	text, err := b.WaitLineAfter(b.ctx, n, started)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(started.FindStringSubmatch(text)[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// names are those of QEMU's events.
func (b *bench) names() (all []string) {
	for _, e := range b.Events() {
		all = append(all, e.Name)
	}
	return all
}

// watchdogs counts what the watchdog has done.
func (b *bench) watchdogs() int { return b.happened("WATCHDOG") }

// happened counts QEMU's events of a name.
func (b *bench) happened(name string) (n int) {
	for _, e := range b.Events() {
		if e.Name == name {
			n++
		}
	}
	return n
}

// greeted is how often each phone's link was opened.
func (b *bench) greeted() map[int]int {
	all := map[int]int{}
	for n, p := range b.phones {
		all[n] = p.Greeted()
	}
	return all
}

// status is what rackctl status tells.
func (b *bench) status(t *testing.T) (st action.RackStatus) {
	t.Helper()
	if err := rackrig.Ask(b.ctx, b, &st, "status"); err != nil {
		t.Fatal(err)
	}
	return st
}

// findings are what rackctl status tells of the controller: each as its code and its sentence.
func (b *bench) findings(t *testing.T) string {
	t.Helper()
	var codes []string
	for _, f := range b.status(t).Findings {
		codes = append(codes, f.Code+": "+f.Why)
	}
	return strings.Join(codes, "; ")
}
