//go:build rig

package rackrig_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

// TestSoakReplug pulls and plugs phones of a rack in a seeded order. After each round the phone is ready in its slot and
// runs a command, and rackd has the file descriptors it had at first.
func TestSoakReplug(t *testing.T) {
	slots := map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-2"}
	b := bootRack(t, rackrig.BoardSpec{Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Slots: slots})
	for slot, port := range slots {
		p, err := rackrig.Simulate(rackrig.PhoneSpec{Slot: slot, Port: port, Serial: fmt.Sprintf("SIM%04d", slot), Width: 360, Height: 640, Density: 160})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.PlugPhone(b.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	b.wait(t, action.Ready, 1, 2, 3)
	random := rand.New(rand.NewPCG(3, 4))
	n := rounds(t, 6, 80)
	begin := time.Now()
	var first, last string
	var slowest time.Duration
	for i := range n {
		slot := 1 + random.IntN(len(slots))
		before := since(t, b, slot)
		pulled := time.Now()
		if err := b.Plugged[slots[slot]].Replug(b.ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := b.WaitPlugged(b.ctx, slots[slot], fmt.Sprintf("SIM%04d", slot)); err != nil {
			t.Fatal(err)
		}
		for since(t, b, slot).Equal(before) { // rackd has not noticed yet
			time.Sleep(100 * time.Millisecond)
		}
		b.wait(t, action.Ready, slot)
		slowest = max(slowest, time.Since(pulled))
		if out, exit := b.ctl(t, "shell", fmt.Sprint(slot), "echo round"); exit != 0 || out != "round\n" {
			t.Fatalf("round %d, slot %d: exit code %d, %q", i, slot, exit, out)
		}
		last = b.sh(t, fmt.Sprintf("ls /proc/%d/fd | wc -l", b.Rackd().PID))
		if i == 2 { // by then each part has opened what it keeps
			first = last
		}
	}
	if atoi(t, first) < 10 {
		t.Errorf("rackd with three phones has %s file descriptors: is it rackd that was counted?", first)
	}
	if leak := atoi(t, last) - atoi(t, first); leak > 4 {
		t.Errorf("rackd has %d file descriptors more after %d rounds", leak, n)
	}
	fmt.Printf("soak replug %d rounds, slowest %.1f s from pull to ready, %.0f s\n", n, slowest.Seconds(), time.Since(begin).Seconds())
}

// since tells when the slot entered the state it is in.
func since(t *testing.T, b board, slot int) time.Time {
	t.Helper()
	states, err := rackrig.Phones(b.ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Slot == slot {
			return s.Since
		}
	}
	t.Fatalf("no slot %d", slot)
	return time.Time{}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatalf("%q is no number: %v", s, err)
	}
	return n
}
