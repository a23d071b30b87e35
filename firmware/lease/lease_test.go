package lease

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"phonerack/sync/wire"
)

// A bench is a table whose clock stands still until a test moves it.
type bench struct {
	*Table
	now time.Duration
}

func newBench() *bench {
	b := &bench{now: time.Hour}
	wall := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	b.Table = NewTable(Options{
		Now:  func() time.Duration { return b.now },
		Wall: func() time.Time { return wall.Add(b.now - time.Hour) },
	})
	return b
}

func hold(who string) Holder { return Holder{Kind: Hold, Who: who} }

func task(id, who string) Holder { return Holder{Kind: Task, Who: who, TaskID: id, Attempt: 1} }

func TestHoldBlocksOthersAndNamesItself(t *testing.T) {
	b := newBench()
	l, err := b.Acquire(7, hold("lee"), 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Acquire(7, task("t1", "kim"), time.Minute)
	want := "Slot 7 is busy because it is held by lee until 2026-08-01T12:10:00Z; wait until then, or ask the holder to release it."
	if !wire.Is(err, wire.SlotBusy) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, _, err := b.Borrow(7, "kim", time.Second); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("borrow: %v", err)
	}
	if _, err := b.Acquire(8, task("t1", "kim"), time.Minute); err != nil {
		t.Errorf("another slot: %v", err)
	}
	l.Release()
	if _, err := b.Acquire(7, task("t2", "kim"), time.Minute); err != nil {
		t.Errorf("after release: %v", err)
	}
	if err := l.Check(); !wire.Is(err, wire.NotLeased) {
		t.Errorf("released lease: %v", err)
	}
}

// TestASignGivesWay: to everybody else the slot is free, and whoever takes it ends the sign.
func TestASignGivesWay(t *testing.T) {
	for name, take := range map[string]func(*bench) error{
		"a task":       func(b *bench) error { _, err := b.Acquire(7, task("t1", "kim"), time.Minute); return err },
		"a hold":       func(b *bench) error { _, err := b.Acquire(7, hold("kim"), time.Minute); return err },
		"recovery":     func(b *bench) error { _, err := b.Acquire(7, Holder{Kind: Recovery}, time.Minute); return err },
		"another sign": func(b *bench) error { _, err := b.Acquire(7, Holder{Kind: Sign}, time.Minute); return err },
		"an act": func(b *bench) error {
			_, giveBack, err := b.Borrow(7, "kim", time.Minute)
			if err == nil {
				giveBack()
			}
			return err
		},
	} {
		b := newBench()
		changes, end := b.Watch()
		l, err := b.Acquire(7, Holder{Kind: Sign, Who: "sign"}, time.Minute)
		if err != nil || l.Check() != nil {
			t.Fatal(err, l.Check())
		}
		if c := <-changes; c.State != nil {
			t.Errorf("%s: watchers see %+v", name, c.State)
		}
		if state, held := b.Lookup(7); held {
			t.Errorf("%s: the sign is in the way: %+v", name, state)
		}
		if err := b.Table.Release(7, "kim"); err != nil || l.Check() != nil {
			t.Errorf("%s: a release of what nobody holds: %v, %v", name, err, l.Check())
		}
		if err := take(b); err != nil || !wire.Is(l.Check(), wire.NotLeased) {
			t.Errorf("%s: %v, and the sign's lease says %v", name, err, l.Check())
		}
		select {
		case <-l.Done():
		default:
			t.Errorf("%s: the sign does not hear of it", name)
		}
		end()
	}
	b := newBench()
	if _, err := b.Acquire(7, hold("kim"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(7, Holder{Kind: Sign, Who: "sign"}, time.Minute); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("a sign on a phone that somebody holds: %v", err)
	}
}

func TestExpiredLeaseRefusesAndFreesTheSlot(t *testing.T) {
	b := newBench()
	l, err := b.Acquire(7, task("t1", "kim"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.now += time.Minute - 1
	if err := l.Renew(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.now += time.Minute
	if err := l.Check(); !wire.Is(err, wire.NotLeased) {
		t.Errorf("expired lease: %v", err)
	}
	if err := l.Renew(time.Minute); !wire.Is(err, wire.NotLeased) {
		t.Errorf("renewal of an expired lease: %v", err)
	}
	select {
	case <-l.Done():
	default:
		t.Error("an expired lease is not done")
	}
	if _, err := b.Acquire(7, hold("lee"), time.Minute); err != nil {
		t.Errorf("after expiry: %v", err)
	}
}

func TestHoldIsRenewedByItsHolderWithinTheBound(t *testing.T) {
	b := newBench()
	first, err := b.Acquire(7, hold("lee"), 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.now += 5 * time.Minute
	again, err := b.Acquire(7, hold("lee"), 15*time.Minute)
	if err != nil || again != first {
		t.Fatalf("renewal: %v", err)
	}
	if got := again.State().Until.Format(time.TimeOnly); got != "12:20:00" {
		t.Errorf("until %s", got)
	}
	if _, err := b.Acquire(7, hold("lee"), time.Hour); !wire.Is(err, wire.BadRequest) {
		t.Errorf("too long: %v", err)
	}
	if err := b.Table.Release(7, "kim"); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("release by another: %v", err)
	}
	if err := b.Table.Release(7, "lee"); err != nil {
		t.Errorf("release: %v", err)
	}
	if _, held := b.Lookup(7); held {
		t.Error("still held")
	}
}

func TestTaskCoversItsOwnersHold(t *testing.T) {
	b := newBench()
	h, err := b.Acquire(7, hold("lee"), 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Acquire(7, task("t1", "lee"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(); !wire.Is(err, wire.NotLeased) {
		t.Errorf("covered hold: %v", err)
	}
	if _, _, err := b.Borrow(7, "lee", time.Second); !wire.Is(err, wire.SlotBusy) || !strings.Contains(err.Error(), "task t1, started by lee") {
		t.Errorf("act of the holder during the task: %v", err)
	}
	l.Release()
	if err := h.Check(); err != nil {
		t.Errorf("hold after the task: %v", err)
	}
}

func TestActsBorrowTheHold(t *testing.T) {
	b := newBench()
	short, giveBack, err := b.Borrow(7, "lee", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	second, giveBackSecond, err := b.Borrow(7, "lee", time.Second)
	if err != nil || second != short {
		t.Fatalf("second act: %v", err)
	}
	giveBack()
	giveBack() // twice is once
	if err := second.Check(); err != nil {
		t.Errorf("the first act's end took the second's lease: %v", err)
	}
	giveBackSecond()
	if _, held := b.Lookup(7); held {
		t.Error("the slot is held after the acts")
	}

	h, err := b.Acquire(7, hold("lee"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, giveBack, err = b.Borrow(7, "lee", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	giveBack()
	if err := h.Check(); err != nil {
		t.Errorf("an act's end took the hold: %v", err)
	}
}

func TestLongActNeitherLengthensNorIsCutByTheHold(t *testing.T) {
	b := newBench()
	h, err := b.Acquire(7, hold("lee"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, giveBack, err := b.Borrow(7, "lee", 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	giveBack()
	if got := h.State().Until.Format(time.TimeOnly); got != "12:01:00" {
		t.Errorf("after the act the hold lasts until %s", got)
	}
	_, giveBack, err = b.Borrow(7, "lee", 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(7, hold("lee"), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	b.now += 10 * time.Minute
	if err := h.Check(); err != nil {
		t.Errorf("the hold's end cut the act: %v", err)
	}
	if _, _, err := b.Borrow(7, "kim", time.Second); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("another person during the act: %v", err)
	}
	giveBack()
	if _, held := b.Lookup(7); held {
		t.Error("the hold outlasts both its time and the act")
	}
}

func TestWatchersSeeEachChange(t *testing.T) {
	b := newBench()
	changes, stop := b.Watch()
	l, err := b.Acquire(7, hold("lee"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	if _, err := b.Acquire(8, hold("lee"), time.Minute); err != nil {
		t.Fatal(err)
	}
	b.now += time.Hour
	b.Sweep()
	stop()
	stop()
	var got []string
	for c := range changes {
		got = append(got, fmt.Sprint(c.Slot, c.State != nil))
	}
	if want := "[7 true 7 false 8 true 8 false]"; fmt.Sprint(got) != want {
		t.Errorf("saw %v, want %v", got, want)
	}
}

// TestNeverTwoValidLeases plays random histories against the one promise that everything else stands on.
func TestNeverTwoValidLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench()
		var leases []*Lease
		var giveBacks []func()
		people := rapid.SampledFrom([]string{"lee", "kim", "ida"})
		slots := rapid.IntRange(1, 3)
		term := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second
		})
		keep := func(l *Lease, err error) {
			if err == nil {
				leases = append(leases, l)
			} else if !wire.Is(err, wire.SlotBusy) {
				t.Fatalf("refused with %v", err)
			}
		}
		// Those who release and renew may do so with the first lease from the start; it is one that was there before.
		first, err := b.Acquire(9, hold("ole"), time.Minute)
		keep(first, err)
		_, giveBack, err := b.Borrow(8, "ole", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		giveBacks = append(giveBacks, giveBack)
		pick := func(t *rapid.T) *Lease { return rapid.SampledFrom(leases).Draw(t, "lease") }
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				keep(b.Acquire(slots.Draw(t, "slot"), hold(people.Draw(t, "who")), term.Draw(t, "term")))
			},
			"task": func(t *rapid.T) {
				keep(b.Acquire(slots.Draw(t, "slot"), task("t", people.Draw(t, "who")), term.Draw(t, "term")))
			},
			"recovery": func(t *rapid.T) {
				keep(b.Acquire(slots.Draw(t, "slot"), Holder{Kind: Recovery, Who: "rackd"}, term.Draw(t, "term")))
			},
			"sign": func(t *rapid.T) {
				keep(b.Acquire(slots.Draw(t, "slot"), Holder{Kind: Sign, Who: "sign"}, term.Draw(t, "term")))
			},
			"borrow": func(t *rapid.T) {
				l, giveBack, err := b.Borrow(slots.Draw(t, "slot"), people.Draw(t, "who"), term.Draw(t, "term"))
				keep(l, err)
				if err == nil {
					giveBacks = append(giveBacks, giveBack)
				}
			},
			"give back": func(t *rapid.T) {
				giveBacks[rapid.IntRange(0, len(giveBacks)-1).Draw(t, "borrowed")]()
			},
			"release":        func(t *rapid.T) { pick(t).Release() },
			"release person": func(t *rapid.T) { _ = b.Table.Release(slots.Draw(t, "slot"), people.Draw(t, "who")) },
			"renew":          func(t *rapid.T) { _ = pick(t).Renew(term.Draw(t, "term")) },
			"time":           func(t *rapid.T) { b.now += term.Draw(t, "passing") },
			"sweep":          func(*rapid.T) { b.Sweep() },
			"": func(t *rapid.T) {
				valid := map[int]*Lease{}
				for _, l := range leases {
					if l.Check() != nil {
						continue
					}
					if other := valid[l.slot]; other != nil && other != l {
						t.Fatalf("slot %d has two valid leases: %v and %v", l.slot, other.holder, l.holder)
					}
					valid[l.slot] = l
					if state, held := b.Lookup(l.slot); held == (l.holder.Kind == Sign) || held && state.Holder != l.holder {
						t.Fatalf("the table does not show the valid lease of slot %d", l.slot)
					}
				}
			},
		})
	})
}
