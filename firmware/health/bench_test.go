package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/phone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Memory that outlives a keeper, and notes what is saved.
type memory struct {
	kept      Remembered
	saves     []Remembered
	fault     error
	meanwhile func(Remembered) // runs in Save; nil for nothing
}

func (m *memory) Load() (Remembered, error) { return m.kept, nil }

func (m *memory) Save(r Remembered) error {
	if m.meanwhile != nil {
		m.meanwhile(r)
	}
	if m.fault != nil {
		return m.fault
	}
	m.saves = append(m.saves, r)
	if m.kept.Slots == nil {
		m.kept = Remembered{map[int]SlotRecord{}, map[string]PhoneRecord{}}
	}
	for n, s := range r.Slots {
		m.kept.Slots[n] = s
	}
	for p, q := range r.Phones {
		m.kept.Phones[p] = q
	}
	return nil
}

// bench is a rack whose time stands still until a test moves it.
type bench struct {
	*Keeper
	t       testing.TB
	conf    Config
	places  []Place
	memory  *memory
	now     time.Duration
	wall    time.Time
	trusted bool
	phones  map[int]func() Look // what a look at a slot sees
	helps   func(Order) Outcome // carries out an order; nil: Done
	acts    []string            // "30s slot 1 reopen (offline)"
	quiet   map[int]bool        // slots that are not looked at
	off     map[int]bool        // ports without power
	uncut   bool                // the ports cut nothing
	looks   map[int][]time.Duration
	step    time.Duration // of pass
}

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// rack makes hubs of four slots with power for each port and hub.
func rack(t testing.TB, slots int, change ...func(*bench)) *bench {
	t.Helper()
	b := &bench{
		t: t, step: 5 * time.Second, conf: Defaults(), memory: &memory{}, wall: start, trusted: true,
		phones: map[int]func() Look{}, quiet: map[int]bool{}, off: map[int]bool{}, looks: map[int][]time.Duration{},
	}
	for n := 1; n <= slots; n++ {
		b.places = append(b.places, Place{Slot: n, Hub: fmt.Sprintf("1-%d", (n-1)/4+1), PortPower: true, HubPower: true})
		b.phones[n] = fine(n)
	}
	for _, c := range change {
		c(b)
	}
	if f := b.conf.Faults(); len(f) > 0 {
		t.Fatalf("the configuration: %v", f)
	}
	b.restart(0)
	return b
}

// restart makes a new keeper on the same memory, as after kill -9, off is how long the board was off.
func (b *bench) restart(off time.Duration) {
	b.t.Helper()
	b.wall = b.wall.Add(off)
	if off > 0 {
		b.now = 0
	}
	k, err := New(Options{
		Config: b.conf, Places: b.places, Memory: b.memory,
		Now:  func() time.Duration { return b.now },
		Wall: func() (time.Time, bool) { return b.wall, b.trusted },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Keeper = k
}

// pass moves the time on in steps, looks when looks are due, and carries out orders.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for end := b.now + d; b.now < end; {
		due, _ := b.Due()
		for _, n := range due {
			b.looks[n] = append(b.looks[n], b.now)
			switch {
			case b.off[n]:
				b.Look(n, Look{Bus: BusEmpty})
			case !b.quiet[n]:
				b.Look(n, b.phones[n]())
			}
		}
		orders, err := b.Orders()
		if err != nil && !errors.Is(err, b.memory.fault) {
			b.t.Fatal(err)
		}
		for _, o := range orders {
			b.acts = append(b.acts, fmt.Sprintf("%v slot %d %s (%s)", b.now, o.Slot, o.Rung, o.Why))
			how := Done
			if b.helps != nil {
				how = b.helps(o)
			}
			if how != "" {
				b.Done(o, how)
			}
			if how == Done && (o.Rung == Rest || o.Rung == Wake) {
				b.off[o.Slot] = o.Rung == Rest && !b.uncut
			}
		}
		b.now += b.step
		b.wall = b.wall.Add(b.step)
	}
}

func (b *bench) state(slot int) State {
	b.t.Helper()
	st, ok := b.Status(slot)
	if !ok {
		b.t.Fatalf("no slot %d", slot)
	}
	return st.State
}

func (b *bench) has(slot int, code string) bool {
	st, _ := b.Status(slot)
	return st.Main.Code == code || slices.ContainsFunc(st.Others, func(f Finding) bool { return f.Code == code })
}

// rungsOf lists the acts without their times.
func (b *bench) rungsOf(slot int) string {
	var all []string
	for _, a := range b.acts {
		if _, rest, _ := strings.Cut(a, " slot "); strings.HasPrefix(rest, fmt.Sprint(slot, " ")) {
			all = append(all, strings.Fields(rest)[1])
		}
	}
	return strings.Join(all, " ")
}

func fine(n int) func() Look {
	return func() Look {
		return Look{Bus: BusADB, Open: OpenOK, Greet: GreetOK, Shell: ShellOK, Kind: "device", Booted: true, Phone: fmt.Sprintf("S%03d", n), Model: "Pixel"}
	}
}

func with(n int, change func(*Look)) func() Look {
	return func() Look {
		l := fine(n)()
		change(&l)
		return l
	}
}

func gone(int) func() Look { return func() Look { return Look{Bus: BusEmpty} } }

func offline(n int) func() Look {
	return with(n, func(l *Look) { l.Greet, l.Shell = GreetSilent, "" })
}

func hung(n int) func() Look { return with(n, func(l *Look) { l.Shell = ShellSilent }) }

// charge is a battery's reading.
func charge(percent, tenths int) phone.Battery {
	return phone.Battery{Level: percent, Temperature: tenths, Voltage: 4000, Status: "charging", Health: "good", Plugged: "usb", Present: true}
}
