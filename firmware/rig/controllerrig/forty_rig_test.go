//go:build rig

package controllerrig_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
)

// The rack of forty slots: five of the board's hubs, each with eight ports that are switched. A hub has one operation at a time,
// so without the bound all five would settle at once: five times the stagger is no longer than to settle.
const (
	fortyHubs  = 5
	concurrent = 4
	stagger    = 400 * time.Millisecond
	settle     = 2 * time.Second
	// late is how much sooner than the stagger after another a port may be switched: on a loaded machine an order to a hub, which
	// may have to be woken, can take longer than the stagger. The trace has the host's clock, which the board's follows.
	late = 200 * time.Millisecond
)

const (
	guestForty  = "/etc/phonerack/forty.toml"
	fortyConfig = "[rack]\nid = \"rig\"\nboard = \"forty-board.toml\"\nstate = \"/tmp/forty\"\nruntime = \"/run/rackd\"\n" + settings
)

// fortyFiles writes rackd's configuration and board file for this rack, and gives their places on the board.
func fortyFiles(dir string) (map[string]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"forty\"\n[power]\nconcurrent = %d\nstagger = \"%v\"\n", concurrent, stagger)
	fmt.Fprintf(&b, "[[controller]]\nname = \"qemu-xhci\"\nbuses = [1, 2]\ndevices = %d\n", addresses)
	for i, h := range hubs()[:fortyHubs] {
		fmt.Fprintf(&b, "[[hub]]\nname = \"%c\"\npath = %q\nports = %d\npower = \"ports\"\nsettle = \"%v\"\n", 'A'+i, h.Path, h.Ports, settle)
	}
	for i := range fortyHubs * hubPorts {
		fmt.Fprintf(&b, "[[slot]]\nnumber = %d\nhub = \"%c\"\nport = %d\n", i+1, 'A'+i/hubPorts, i%hubPorts+1)
	}
	config, board := filepath.Join(dir, "forty.toml"), filepath.Join(dir, "forty-board.toml")
	return map[string]string{guestForty: config, filepath.Join(filepath.Dir(guestForty), "forty-board.toml"): board},
		errors.Join(os.WriteFile(config, []byte(fortyConfig), 0o644), os.WriteFile(board, []byte(b.String()), 0o644))
}

// outlet is a port as the trace names it.
type outlet struct{ hub, port int }

// fortyPorts has rackd start with forty ports off, two of them with a phone, and follows their power from outside.
func fortyPorts(t *testing.T, b *bench) {
	for _, n := range []int{1, 2} {
		if err := b.PlugPhone(b.ctx, b.phones[n]); err != nil {
			t.Fatal(err)
		}
	}
	b.switched(t, 0, len(hubs())*hubPorts) // by the kernel, when it finds the hubs
	var attributes []string
	for _, h := range hubs()[:fortyHubs] {
		attributes = append(attributes, fmt.Sprintf("/sys/bus/usb/devices/%[1]s:1.0/%[1]s-port*/disable", h.Path))
	}
	all := strings.Join(attributes, " ")
	before := b.Traced()
	b.sh(t, "for f in "+all+"; do echo 1 >$f; done; mkdir -p /tmp/forty")
	off := map[outlet]bool{}
	for _, c := range b.switched(t, before, fortyHubs*hubPorts) {
		if off[outlet{c.Hub, c.Port}] = true; c.On {
			t.Fatalf("while all ports were switched off: %v", c)
		}
	}
	if len(off) != fortyHubs*hubPorts {
		t.Fatalf("%d ports are off: %v", len(off), off)
	}

	before = b.Traced()
	rackd, err := b.Start(b.ctx, "rackd", "rackd", "run", "--config", guestForty)
	if err == nil {
		err = b.WaitRackd(b.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.switched(t, before, len(off))
	b.until(t, "the phones are well", func(all map[int]action.SlotHealth) bool { return well(all, 1, 2) })
	keepsOrder(t, b.switched(t, before, len(off)), off) // with all that came after the last one: nothing is switched once more
	if text := strings.Fields(b.sh(t, "cat "+all)); strings.Join(text, "") != strings.Repeat("0", fortyHubs*hubPorts) {
		t.Errorf("the ports' attributes say %v", text)
	}

	if err := rackd.Signal(b.ctx, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit, err := rackd.Wait(b.ctx); err != nil || exit != 0 {
		t.Fatalf("rackd ends with %d, %v", exit, err)
	}
	for _, n := range []int{1, 2} {
		if err := errors.Join(b.Plugged[ports[n]].Unplug(), b.WaitUnplugged(b.ctx, ports[n])); err != nil {
			t.Fatal(err)
		}
	}
}

// switched waits until the ports' power has changed n times after so many lines of the trace, and gives all changes that there are.
func (b *bench) switched(t *testing.T, before, n int) (changes []rig.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Minute)
	defer cancel()
	for len(changes) < n {
		more, now, err := b.Changes(ctx, before)
		if err != nil {
			t.Fatalf("%v; %d of %d ports were switched: %v", err, len(changes), n, changes)
		}
		for before = now; len(more) > 0; more = more[1:] {
			if more[0].Line < 0 {
				changes = append(changes, more[0])
			}
		}
	}
	return changes
}

// keepsOrder fails unless each port that was off was switched on once, never more of them at once than the board file allows, and
// no sooner one after the other: of any run of them, so that being late once is no excuse for the next.
func keepsOrder(t *testing.T, on []rig.Change, off map[outlet]bool) {
	t.Helper()
	if len(on) != len(off) {
		t.Errorf("%d ports were off, and ports were switched %d times", len(off), len(on))
	}
	most, closest, hurry := 0, time.Hour, time.Duration(0)
	for i, c := range on {
		if !c.On || !off[outlet{c.Hub, c.Port}] {
			t.Errorf("switched twice, or not one of the forty, or off: %v", c)
		}
		delete(off, outlet{c.Hub, c.Port})
		n := 1
		for j, other := range on[:i] {
			apart := c.At.Sub(other.At)
			if apart < settle {
				n++
			}
			hurry = max(hurry, time.Duration(i-j)*stagger-apart)
		}
		if most = max(most, n); i > 0 {
			closest = min(closest, c.At.Sub(on[i-1].At))
		}
	}
	t.Logf("%d ports in %v: %d at once, %v apart, %v sooner than in turn", len(on), on[len(on)-1].At.Sub(on[0].At), most, closest, hurry)
	if most > concurrent || most < 2 { // fewer than two: the test has seen nothing
		t.Errorf("%d ports had their inrush at once, %d may", most, concurrent)
	}
	if hurry > late {
		t.Errorf("ports were switched on %v apart, and %v sooner than in turn: %v", closest, hurry, on)
	}
}
