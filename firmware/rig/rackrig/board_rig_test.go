//go:build rig

package rackrig_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/usb/phonesim"
)

// limit bounds each test: an emulated board on a loaded machine is several times slower than on an idle one.
const limit = 8 * time.Minute

// soakLimit bounds the long runs of make soak.
const soakLimit = 6 * time.Hour

// board is a rack on the emulated board under test.
type board struct {
	t   *testing.T
	ctx context.Context
	*rackrig.Board
}

func bootRack(t *testing.T, spec rackrig.BoardSpec) board {
	t.Helper()
	bound := limit
	if os.Getenv("PHONERACK_SOAK") != "" {
		bound = soakLimit
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := rackrig.BootBoard(ctx, kit, spec)
	if b != nil {
		rig.CloseAfter(t, b.Board)
	}
	if err != nil {
		t.Fatal(err)
	}
	return board{t, ctx, b}
}

// ctl runs rackctl and returns its output, standard error included, and its exit code.
func (b board) ctl(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	exit, err := b.Stream(b.ctx, "exec 2>&1; rackctl "+rackrig.Quote(args...), nil, &out)
	if err != nil {
		t.Fatalf("rackctl %v: %v", args, err)
	}
	return out.String(), exit
}

func (b board) sh(t *testing.T, command string) string {
	t.Helper()
	out, err := b.Sh(b.ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b board) wait(t *testing.T, state action.State, slots ...int) []action.PhoneState {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	phones, err := rackrig.WaitState(ctx, b, state, slots...)
	if err != nil {
		t.Fatal(err)
	}
	return phones
}

// The ten phones of the rack: eight on three hubs, one of them in another; two at high speed on the controller. Two of
// the ten are a real adbd.
var tenSlots = map[int]string{
	1: "1-1.1", 2: "1-1.2", 3: "1-1.3", 4: "1-2.1", 5: "1-2.2", 6: "1-1.8.1", 7: "1-1.8.2", 8: "1-1.8.3", 9: "1-3", 10: "1-4",
}

var realAdbd = map[int]bool{5: true, 10: true}

// specOf describes the simulated phone of a slot: every Android, and serials that name nothing.
func specOf(slot int) rackrig.PhoneSpec {
	s := rackrig.PhoneSpec{
		Slot: slot, Port: tenSlots[slot], Serial: fmt.Sprintf("SIM%04d", slot), Android: []int{7, 9, 11, 14, 15}[slot%5], Seed: int64(slot),
	}
	switch slot {
	case 1, 2: // two phones of one cheap brand
		s.Serial = "0123456789ABCDEF"
	case 3:
		s.Serial, s.USB.Serial = "", phonesim.SerialAbsent
	case 4:
		s.Serial = "??\x01\x1b[31m"
	}
	return s
}

func TestRackOfTenPhones(t *testing.T) {
	b := bootRack(t, rackrig.BoardSpec{
		Hubs:   []rig.Hub{{Path: "1-1", Ports: 8}, {Path: "1-2", Ports: 4}, {Path: "1-1.8", Ports: 4}},
		Slots:  tenSlots,
		Memory: 1024,
	})
	phones := map[int]*rackrig.Phone{}
	kit, err := rig.Prepare(b.ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	adbds, err := kit.StartAdbd(b.ctx, len(realAdbd))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range adbds {
		t.Cleanup(func() { a.Close() })
	}
	devices := map[int]*phonesim.Phone{}
	for slot, port := range tenSlots {
		if realAdbd[slot] {
			bridge, err := phonesim.NewBridge(phonesim.Config{Serial: fmt.Sprintf("REAL%04d", slot), HighSpeed: rackrig.OnController(port)}, adbds[0].Dial)
			if err != nil {
				t.Fatal(err)
			}
			adbds = adbds[1:]
			devices[slot] = bridge
		} else {
			p, err := rackrig.Simulate(specOf(slot))
			if err != nil {
				t.Fatal(err)
			}
			phones[slot], devices[slot] = p, p.USB
		}
		plugged, err := b.Plug(b.ctx, port, devices[slot])
		if err != nil {
			t.Fatal(err)
		}
		b.Plugged[port] = plugged
	}
	sims := []int{1, 2, 3, 4, 6, 7, 8, 9}
	b.wait(t, action.Limited, 5, 10) // a real adbd has no Android behind it: shell and files only
	states := b.wait(t, action.Ready, sims...)

	t.Run("each phone is in its slot", func(t *testing.T) { checkSlots(t, b, states) })
	t.Run("shell passes exit codes on", func(t *testing.T) { checkShell(t, b) })
	t.Run("what was pushed is pulled", func(t *testing.T) { checkFiles(t, b) })
	t.Run("unplug during push", func(t *testing.T) { checkUnplug(t, b, phones[2]) })
	t.Run("a phone that hangs delays no other", func(t *testing.T) { checkHang(t, b, phones[6]) })
	t.Run("rackd stops within five seconds and starts again", func(t *testing.T) { checkRestart(t, b, sims) })
	for slot, d := range devices {
		for _, v := range d.Violations() {
			if slot == 2 && v.Rule == phonesim.RuleMissingZLP {
				continue // its cable was pulled in a push, perhaps just before a zero-length packet
			}
			t.Errorf("slot %d: rackd broke a rule: %+v", slot, v)
		}
	}
}

func checkSlots(t *testing.T, b board, states []action.PhoneState) {
	if len(states) != len(tenSlots) {
		t.Errorf("%d slots, want %d", len(states), len(tenSlots))
	}
	for _, s := range states {
		if s.Port != tenSlots[s.Slot] {
			t.Errorf("slot %d is at port %s, want %s", s.Slot, s.Port, tenSlots[s.Slot])
		}
		if realAdbd[s.Slot] {
			if want := fmt.Sprintf("REAL%04d", s.Slot); s.Serial != want {
				t.Errorf("slot %d has %q, want %q", s.Slot, s.Serial, want)
			}
			continue
		}
		// The model is the phone's own, told over ADB: the right phone answers in the right slot.
		if want := "Sim " + specOf(s.Slot).Serial; s.Slot > 4 && s.Model != want {
			t.Errorf("slot %d: model %q, want %q", s.Slot, s.Model, want)
		}
		if want := fmt.Sprint(specOf(s.Slot).Android); s.Android != want && !strings.HasPrefix(s.Android, want+".") {
			t.Errorf("slot %d: Android %q, want %q", s.Slot, s.Android, want)
		}
		if s.Duplicate != (s.Slot <= 2) {
			t.Errorf("slot %d: duplicate serial is %v", s.Slot, s.Duplicate)
		}
		if strings.ContainsAny(s.Serial, "\x00\x01\x1b\n") {
			t.Errorf("slot %d: the serial %q can forge output", s.Slot, s.Serial)
		}
	}
	if out, _ := b.ctl(t, "phones"); strings.ContainsAny(out, "\x1b\x01") {
		t.Errorf("rackctl prints control characters:\n%q", out)
	}
}

func checkShell(t *testing.T, b board) {
	for slot := range tenSlots {
		want := slot + 20
		out, exit := b.ctl(t, "shell", fmt.Sprint(slot), fmt.Sprintf("echo out; exit %d", want))
		if exit != want || out != "out\n" {
			t.Errorf("slot %d: exit code %d, output %q; want %d", slot, exit, out, want)
		}
	}
}

// checkFiles moves 20 MB in both directions on full and high speed, simulated and real.
func checkFiles(t *testing.T, b board) {
	b.sh(t, "head -c 20000000 /dev/urandom > /tmp/large")
	var moving sync.WaitGroup
	for _, slot := range []int{1, 5, 9, 10} {
		moving.Go(func() {
			remote := fmt.Sprintf("/data/local/tmp/large-%d", slot)
			begin := time.Now()
			if out, exit := b.ctl(t, "push", fmt.Sprint(slot), "/tmp/large", remote); exit != 0 {
				t.Errorf("slot %d: push: exit code %d: %s", slot, exit, out)
				return
			}
			pushed := time.Since(begin)
			begin = time.Now()
			local := fmt.Sprintf("/tmp/back-%d", slot)
			if out, exit := b.ctl(t, "pull", fmt.Sprint(slot), remote, local); exit != 0 {
				t.Errorf("slot %d: pull: exit code %d: %s", slot, exit, out)
				return
			}
			t.Logf("slot %d (%s): push %.2f MB/s, pull %.2f MB/s", slot, tenSlots[slot], 20/pushed.Seconds(), 20/time.Since(begin).Seconds())
			if out, exit, err := b.Run(b.ctx, "cmp /tmp/large "+local+" && rm "+local); err != nil || exit != 0 {
				t.Errorf("slot %d: what came back differs: %s %v", slot, out, err)
			}
			b.ctl(t, "shell", fmt.Sprint(slot), "rm "+remote)
		})
	}
	moving.Wait()
}

// checkUnplug pulls the cable in the middle of a push: an error within two seconds, and the slot works again after replug.
func checkUnplug(t *testing.T, b board, p *rackrig.Phone) {
	type end struct {
		out  string
		exit int
		at   time.Time
	}
	ended := make(chan end, 1)
	p.USB.SetFaults(phonesim.Faults{DelayOKAY: time.Second}) // the push takes a second for each of its writes
	go func() {
		out, exit := b.ctl(t, "push", fmt.Sprint(p.Slot), "/tmp/large", "/data/local/tmp/cut")
		ended <- end{out, exit, time.Now()}
	}()
	time.Sleep(1500 * time.Millisecond)
	plugged := b.Plugged[p.Port]
	pulled := time.Now()
	if err := plugged.Unplug(); err != nil {
		t.Fatal(err)
	}
	e := <-ended
	if e.exit != 1 || !strings.Contains(e.out, fmt.Sprintf("slot %d", p.Slot)) {
		t.Errorf("push ended with exit code %d and %q", e.exit, e.out)
	}
	if took := e.at.Sub(pulled); took > 2*time.Second {
		t.Errorf("the error came %.1f s after the cable was pulled", took.Seconds())
	} else {
		t.Logf("error %.2f s after the cable was pulled: %s", took.Seconds(), strings.TrimSpace(e.out))
	}
	p.USB.SetFaults(phonesim.Faults{})
	if err := plugged.Replug(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.wait(t, action.Ready, p.Slot)
	if out, exit := b.ctl(t, "shell", fmt.Sprint(p.Slot), "echo back"); exit != 0 || out != "back\n" {
		t.Errorf("after replug: exit code %d, %q", exit, out)
	}
}

// checkHang makes a phone answer nothing: the slot says so, the others work, and it recovers by itself.
func checkHang(t *testing.T, b board, p *rackrig.Phone) {
	p.USB.SetFaults(phonesim.Faults{Hang: true})
	if err := b.Plugged[p.Port].Replug(b.ctx); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for slot := range tenSlots {
		if slot == p.Slot {
			continue
		}
		if out, exit := b.ctl(t, "shell", fmt.Sprint(slot), "echo alive"); exit != 0 || out != "alive\n" {
			t.Errorf("slot %d beside a hung phone: exit code %d, %q", slot, exit, out)
		}
	}
	t.Logf("nine other slots answered in %.1f s", time.Since(begin).Seconds())
	for _, s := range b.wait(t, action.Failed, p.Slot) {
		if s.Slot == p.Slot && s.Reason == "" {
			t.Error("the hung slot does not say why")
		}
	}
	p.USB.SetFaults(phonesim.Faults{})
	b.wait(t, action.Ready, p.Slot)
}

func checkRestart(t *testing.T, b board, slots []int) {
	begin := time.Now()
	if err := b.Rackd().Signal(b.ctx, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	exit, err := b.Rackd().Wait(b.ctx)
	took := time.Since(begin)
	if err != nil || exit != 0 || took > 5*time.Second {
		t.Errorf("rackd ended after %.1f s with exit code %d, %v", took.Seconds(), exit, err)
	}
	t.Logf("rackd stopped in %.2f s", took.Seconds())
	if err := b.StartRackd(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.wait(t, action.Ready, slots...)
}

// TestShopInTheGuest puts a kettle into the basket on three phones at once, with the shop's order, the screen and the
// language shuffled by three seeds.
func TestShopInTheGuest(t *testing.T) {
	slots := map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-2"}
	goals := map[string]string{
		"en": "Search the shop for a kettle and put it in the basket",
		"ar": "ابحث في المتجر عن غلاية وضعها في السلة",
		"zh": "在商店搜索水壶并放入购物车",
	}
	b := bootRack(t, rackrig.BoardSpec{Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Slots: slots})
	var phones []*rackrig.Phone
	for slot, port := range slots {
		s := shuffled(int64(slot))
		s.Slot, s.Port, s.Serial = slot, port, fmt.Sprintf("SIM%04d", slot)
		p, err := rackrig.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.PlugPhone(b.ctx, p); err != nil {
			t.Fatal(err)
		}
		phones = append(phones, p)
	}
	b.wait(t, action.Ready, 1, 2, 3)
	var running sync.WaitGroup
	for _, p := range phones {
		running.Go(func() {
			out, exit := b.ctl(t, "task", "run", "--slot", fmt.Sprint(p.Slot), "--steps", "40", "--goal", goals[p.Language])
			if exit != 0 || !p.Did("basket: Kettle x1") {
				t.Errorf("seed %d (%s, %dx%d): exit code %d, the app noted %q\n%s", p.Seed, p.Language, p.Width, p.Height, exit, p.Screen.Journal(), out)
			}
			t.Logf("seed %d: %s, %dx%d, Android %d:\n%s", p.Seed, p.Language, p.Width, p.Height, p.PhoneSpec.Android, out)
		})
	}
	running.Wait()
}

// shuffled draws a phone from a seed: its screen, its language and (by the shop's own use of the seed) the order of things.
func shuffled(seed int64) rackrig.PhoneSpec {
	screens := []rackrig.PhoneSpec{
		{Width: 1080, Height: 2400, Density: 420},
		{Width: 720, Height: 1600, Density: 320},
		{Width: 1440, Height: 3120, Density: 560},
		{Width: 1080, Height: 1920, Density: 480},
	}
	s := screens[(seed*7+3)%int64(len(screens))]
	s.Language = []string{"en", "ar", "zh"}[(seed*5+1)%3]
	s.Android = []int{9, 11, 14, 15}[(seed*3+2)%4]
	s.Seed = seed
	return s
}
