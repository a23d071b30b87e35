//go:build rig

package hardwarerig_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/hardwarerig"
	"phonerack/firmware/rig/powerrig"
	"phonerack/firmware/rig/rackrig"
)

// limit bounds a board's test: on a loaded machine it is several times slower than on an idle one.
const limit = 12 * time.Minute

// Lines of the board's GPIO controller (docs/rig.md).
const (
	hub1 = 1
	hub2 = 2
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
off_time = "2s"
settle = "1s"
over_current = { line = "OVERCURRENT" }

[[hub]]
name = "B"
path = "1-2"
ports = 4
power = "line"
line = "HUB2_PWR"
off_time = "2s"
settle = "1s"

[[hub]]
name = "C"
path = "1-3"
ports = 4
power = "ports"
off_time = "2s"

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
[health.ladder]
off_time = "2s"
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
`

// edge is a change of a hub's line that was asked for.
type edge struct {
	line int
	on   bool
}

// bench is a rack on the emulated board with the hardware around it.
type bench struct {
	*rackrig.Board
	ctx    context.Context
	relays *hardwarerig.Relays
	phones map[int]*hardwarerig.Phone
	asked  []edge // of the hubs' lines, from the start on
}

// boot boots the board, with rackd under the manager, and waits until all phones can be used.
func boot(t *testing.T, change ...func(*rackrig.BoardSpec)) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
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
		t.Cleanup(func() {
			if t.Failed() {
				rig.Dump(t, raw.Board)
			}
			if err := raw.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		Board: raw, ctx: ctx, phones: map[int]*hardwarerig.Phone{},
		// The machine's own reset, and then the board file's default.
		asked: []edge{{hub1, false}, {hub2, false}, {hub1, true}, {hub2, true}},
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
	return b
}

// ctl runs rackctl.
func (b *bench) ctl(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	exit, err := b.Stream(b.ctx, "exec 2>&1; rackctl "+rackrig.Quote(args...), nil, &out)
	if err != nil || exit != 0 {
		t.Fatalf("rackctl %v: exit code %d, %v\n%s", args, exit, err, &out)
	}
	return out.String()
}

// slots is what rackctl slots tells.
func (b *bench) slots(t *testing.T) map[int]action.SlotHealth {
	t.Helper()
	var told action.Slots
	if err := json.Unmarshal([]byte(b.ctl(t, "slots", "--json")), &told); err != nil {
		t.Fatal(err)
	}
	all := map[int]action.SlotHealth{}
	for _, s := range told.Slots {
		all[s.Slot] = s
	}
	return all
}

// until waits until rackctl slots tells something.
func (b *bench) until(t *testing.T, what string, is func(map[int]action.SlotHealth) bool) map[int]action.SlotHealth {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for {
		all := b.slots(t)
		if is(all) {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("not seen: %s; the slots are %+v", what, all)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// line picks the changes of one line.
func line(n int) func(rig.Change) bool { return func(c rig.Change) bool { return c.Line == n } }

// hubs picks the changes of the lines that feed hubs.
func hubs(c rig.Change) bool { return c.Line == hub1 || c.Line == hub2 }

// edges waits until the edges that were asked for have been seen, and fails if there is any other.
func (b *bench) edges(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if _, err := b.relays.Wait(ctx, len(b.asked)-1, hubs); err != nil {
		t.Errorf("an edge that was asked for does not come: %v", err)
	}
	seen := b.relays.Changes(hubs)
	got := make([]edge, len(seen))
	for i, c := range seen {
		got[i] = edge{c.Line, c.On}
	}
	if !slices.Equal(got, b.asked) {
		t.Errorf("the hubs' lines have changed so:\n%v\nand this was asked for: %v", seen, b.asked)
	}
}

// ask notes edges that are asked for from now on.
func (b *bench) ask(edges ...edge) { b.asked = append(b.asked, edges...) }

// watchdogs counts what the watchdog has done.
func (b *bench) watchdogs() (n int) {
	for _, e := range b.Events() {
		if e.Name == "WATCHDOG" {
			n++
		}
	}
	return n
}
