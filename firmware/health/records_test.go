package health

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/store"
)

func open(t *testing.T, path string) (*store.Store, *Records) {
	t.Helper()
	s, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := s.Bucket(BucketName)
	if err != nil {
		t.Fatal(err)
	}
	return s, OpenRecords(bucket)
}

// keeper is one on records, whose boot clock stands at now.
func keeper(t *testing.T, r *Records, now time.Duration) *Keeper {
	t.Helper()
	k, err := New(Options{
		Config: Defaults(), Memory: r,
		Places: []Place{{Slot: 1, Hub: "1-1", PortPower: true}, {Slot: 2, Hub: "1-1", PortPower: true}},
		Now:    func() time.Duration { return now },
		Wall:   func() (time.Time, bool) { return start.Add(now), true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestLedgerAndQuarantineSurviveKill runs itself in a child that gives out orders and quarantines until it is killed.
// What the child said before it died is what its successor has to know.
func TestLedgerAndQuarantineSurviveKill(t *testing.T) {
	const marker = "PHONERACK_HEALTH_KILL"
	if dir := os.Getenv(marker); dir != "" {
		s, r := open(t, filepath.Join(dir, "db"))
		defer s.Close()
		for i := range 10_000 {
			k := keeper(t, r, time.Duration(i+1)*time.Minute)
			for range 2 {
				k.Look(1, fine(1)())
				k.Look(2, Look{Bus: BusEmpty})
			}
			if i == 0 {
				k.Look(2, fine(2)())
				if _, err := k.Orders(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := k.Quarantine(1, time.Hour, "lee", fmt.Sprint("round ", i)); err != nil {
				t.Fatal(err)
			}
			fmt.Println("quarantine", i)
			orders, err := k.Orders()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range orders {
				fmt.Println("order", o.Slot, o.Rung)
			}
		}
		return
	}
	for round := range 3 {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLedgerAndQuarantineSurviveKill$", "-test.timeout=30s")
		child.Env = append(os.Environ(), marker+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		last, orders := 0, 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "order") {
				orders++
			}
			if n, _ := fmt.Sscanf(lines.Text(), "quarantine %d", &last); n == 1 && last == 12+round*7 {
				child.Process.Kill()
			}
		}
		child.Wait()
		if last < 12 {
			t.Fatalf("the child came to round %d", last)
		}
		s, r := open(t, filepath.Join(dir, "db"))
		got, err := r.Load()
		if err != nil {
			t.Fatal(err)
		}
		var i int
		if n, _ := fmt.Sscanf(got.Phones["serial:S001"].Reason, "round %d", &i); n != 1 || i < last {
			t.Errorf("the quarantine of %d was said, and %+v is remembered", last, got.Phones)
		}
		if n := len(got.Slots[2].Acts); n < orders || orders == 0 || n > Defaults().Ladder.PortCycle.PerDay {
			t.Errorf("%d orders were given out, and %d are remembered", orders, n)
		}
		k := keeper(t, r, time.Hour)
		if st, _ := k.Status(1); st.State != Quarantined {
			k.Look(1, fine(1)())
			st, _ = k.Status(1)
			if st.State != Quarantined {
				t.Errorf("after the restart slot 1 is %s", st.State)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordsAreBounded(t *testing.T) {
	s, r := open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	many := Remembered{Phones: map[string]PhoneRecord{}, Slots: map[int]SlotRecord{}}
	for i := range maxPhones + 50 {
		p := PhoneRecord{Level: 1}
		if i < 20 {
			p.Left = 60
		}
		many.Phones[fmt.Sprintf("serial:%05d", i)] = p
	}
	if err := r.Save(many); err != nil {
		t.Fatal(err)
	}
	got, err := r.Load()
	if err != nil || len(got.Phones) != maxPhones {
		t.Fatalf("%d phones, %v", len(got.Phones), err)
	}
	for i := range 20 {
		if got.Phones[fmt.Sprintf("serial:%05d", i)].Left != 60 {
			t.Errorf("the quarantine of phone %d was dropped before phones that nothing is decided about", i)
		}
	}
	// The largest record of a slot.
	full := SlotRecord{Phone: "serial:" + strings.Repeat("x", 64), Model: strings.Repeat("m", 64)}
	for range ledgerMax {
		full.Acts = append(full.Acts, ActRecord{"battery_reset", start.Unix(), Refused})
	}
	if err := r.Save(Remembered{Slots: map[int]SlotRecord{1: full}}); err != nil {
		t.Error(err)
	}
	if err := r.Save(Remembered{Slots: map[int]SlotRecord{1: {Phone: strings.Repeat("x", maxRecord)}}}); err == nil {
		t.Error("a record beyond its bound was written")
	}
	// A zero record is deleted.
	if err := r.Save(Remembered{Phones: map[string]PhoneRecord{"serial:00000": {}}}); err != nil {
		t.Error(err)
	}
	if got, _ := r.Load(); len(got.Phones) != maxPhones-1 || len(got.Slots[1].Acts) != ledgerMax {
		t.Errorf("%d phones, %d acts", len(got.Phones), len(got.Slots[1].Acts))
	}
}

func TestRecordsThatCannotBeReadAreLeftOut(t *testing.T) {
	s, r := open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	err := r.bucket.Update(func(b *bolt.Bucket) error {
		for k, v := range map[string]string{
			"slot:1": `{"phone":`, "slot:x": `{}`, "phone:a": `[]`, "junk": "x",
			"slot:2":         `{"phone":"serial:B","acts":[{"a":"teleport","t":1},{"a":"reboot","t":-9223372036854775808},{"a":"port_cycle","t":9223372036854775807}]}`,
			"phone:serial:B": `{"left":9223372036854775807,"until":9223372036854775807,"level":-5}`,
		} {
			if err := b.Put([]byte(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	k := keeper(t, r, time.Hour)
	if l := k.Ledger(2); len(l) != 2 {
		t.Errorf("ledger %+v", l)
	}
	if st, _ := k.Status(2); st.Ends-time.Hour > LongestQuarantine {
		t.Errorf("%+v", st)
	}
	if st, _ := k.Status(1); st.State != Starting {
		t.Errorf("%+v", st)
	}
}

func TestAKeeperMayBeUsedByMany(t *testing.T) {
	s, r := open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	k := keeper(t, r, time.Hour)
	var all sync.WaitGroup
	for n := 1; n <= 2; n++ {
		all.Go(func() {
			for range 50 {
				k.Look(n, fine(n)())
				k.Look(n, Look{Bus: BusEmpty})
				k.Look(n, Look{Bus: BusEmpty})
				k.Battery(n, charge(50, 300))
				k.All()
			}
		})
	}
	all.Go(func() {
		for range 10 {
			orders, err := k.Orders()
			if err != nil {
				t.Error(err)
			}
			for _, o := range orders {
				k.Done(o, Done)
			}
		}
	})
	all.Go(func() {
		for range 10 {
			k.Quarantine(1, time.Hour, "lee", "") // an error while there is no phone yet
			k.Release(1)
		}
	})
	all.Wait()
}

// bytesWritten saves the records in a database and gives how much the kernel was told to write.
func bytesWritten(t *testing.T, saves []Remembered) int64 {
	t.Helper()
	s, r := open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	before := wchar(t)
	for _, save := range saves {
		if err := r.Save(save); err != nil {
			t.Fatal(err)
		}
	}
	return wchar(t) - before
}

// wchar is what this process has written so far, proc(5).
func wchar(t *testing.T) (n int64) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if _, err := fmt.Sscanf(line, "wchar: %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("no wchar")
	return 0
}

// TestWhatTheDiskRefusedOnceIsWrittenDownLater, without another reason to write.
func TestWhatTheDiskRefusedOnceIsWrittenDownLater(t *testing.T) {
	full := errors.New("disk full")
	refuseOnce := func(b *bench, what func(Remembered) bool) (refused *bool) {
		refused = new(bool)
		b.memory.meanwhile = func(r Remembered) {
			if b.memory.fault = nil; !*refused && what(r) {
				b.memory.fault, *refused = full, true
			}
		}
		return refused
	}
	slots := func(r Remembered) bool { return len(r.Slots) > 0 }

	b := rack(t, 1)
	refused := refuseOnce(b, slots)
	b.pass(time.Minute)
	if got := b.memory.kept.Slots[1].Phone; !*refused || got != "serial:S001" {
		t.Errorf("refused %v: the phone of the slot is written down as %q", *refused, got)
	}

	refused = refuseOnce(b, slots)
	b.phones[1] = gone(1)
	if err := b.Forget(1); !errors.Is(err, full) {
		t.Errorf("that it is forgotten was not written down, and it says %v", err)
	}
	b.pass(time.Minute)
	if got := b.memory.kept.Slots[1].Phone; !*refused || got != "" {
		t.Errorf("refused %v: the phone that was forgotten is written down as %q", *refused, got)
	}

	b = rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = hung(1)
	refused = refuseOnce(b, func(r Remembered) bool { return len(r.Phones) > 0 })
	b.pass(15 * time.Minute)
	if got := b.memory.kept.Phones["serial:S001"]; !*refused || got.Left == 0 || b.state(1) != Quarantined {
		t.Errorf("refused %v: it is %s, and written down is %+v", *refused, b.state(1), got)
	}
}
