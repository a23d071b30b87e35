//go:build rig

package hardwarerig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/rig/rackrig"
	"phonerack/hal/power"
	"phonerack/usb/phonesim"
)

// TestHardwareFromOutside is one board from its start until it is shut down; each part goes on from the one before. All the while nothing
// that feeds phones has an edge that nobody has asked for, and the watchdog acts in that part alone that makes it.
func TestHardwareFromOutside(t *testing.T) {
	b := boot(t, limit)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"hubs get their power once at the start", func(*testing.T, *bench) {}},
		{"a line off takes the phones away, and the page and rackctl say so within 2 s", lineOff},
		{"hung phones come back by the power of their own, and no neighbour is touched; a hub with two dead slots is cycled, but not while one of its slots is leased", recovery},
		{"the button sets maintenance and ends it", buttonHeld},
		{"what is off stays off when rackd ends in an orderly way and begins anew", restart},
		{"the button identifies; rackd is killed meanwhile, the light goes off, and what is off stays off", kill},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			began := time.Now()
			part.run(t, b)
			b.edges(t)
			if n := b.watchdogs(); n > 0 {
				t.Errorf("the watchdog has acted %d times", n)
			}
			t.Logf("took %v", time.Since(began).Round(100*time.Millisecond))
		})
		if !ok {
			t.FailNow() // what follows builds upon it
		}
	}
	if t.Run("a rackd that stands still has the board reset", func(t *testing.T) { standstill(t, b) }) {
		t.Run("what is off stays off until the board is shut down, and nothing is switched by that", func(t *testing.T) { shutdown(t, b) })
	}
}

// saysWithin is how soon after a line went off the page says so.
const saysWithin = 2 * time.Second

// slowness is how many times the bound on an idle machine the board may take: 1 while rackctl answers within a second, which
// takes half of one there.
func (b *bench) slowness(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	b.slots(t)
	if took := time.Since(began); took > time.Second {
		return 2 * (took/time.Second + 1)
	}
	return 1
}

func lineOff(t *testing.T, b *bench) {
	slow := b.slowness(t)
	b.tell = slices.ContainsFunc([]int{1, 2, 3}, b.ready(t))
	n := len(b.relays.Changes(line(hub1)))
	b.ask(lineTo(hub1), false)
	off := make(chan string, 1)
	go func() {
		out, exit, err := b.Run(b.ctx, "exec 2>&1; rackctl power off --hub 2")
		off <- fmt.Sprintf("%s, exit code %d, error %v", strings.TrimSpace(out), exit, err)
	}()
	edge1, err := b.relays.Wait(b.ctx, n, line(hub1))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(edge1.At.Add(saysWithin * slow)))
	for _, s := range b.page(t).Slots {
		dark := s.Number <= 3
		if dark != (s.Phone == nil) || dark != (s.State == health.Maintenance) {
			t.Errorf("%v after the line went off the page says of slot %d: %+v", saysWithin*slow, s.Number, s)
		}
	}
	for slot, s := range b.slots(t) {
		dark := slot <= 3
		if dark != (s.Adb == action.Empty) || dark != (s.Left == "power") || dark != (s.State == string(health.Maintenance)) {
			t.Errorf("%v after the line went off slot %d is %+v", saysWithin*slow, slot, s)
		}
	}
	if got := <-off; !strings.HasSuffix(got, ", exit code 0, error <nil>") {
		t.Errorf("rackctl power off: %s", got)
	}
	b.ask(lineTo(hub1), true)
	b.ctl(t, "power", "on", "--hub", "2")
	b.well(t, 1, 2, 3)
}

// ready tells of a slot whether its phone can be used: only such a one says how its battery is before its power is taken.
func (b *bench) ready(t *testing.T) func(slot int) bool {
	all := b.slots(t)
	return func(n int) bool { return all[n].Adb == action.Ready }
}

// judged waits until rackd has taken what the phones of hub A say of the time when its line was off: they ran on battery. On a slow
// board they could not be used yet before, and say nothing.
func (b *bench) judged(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		out := b.status(t).Outlets
		i := slices.IndexFunc(out, func(o action.Outlet) bool { return o.Name == "hub A" })
		if i < 0 {
			t.Fatalf("hub A is no outlet: %+v", out)
		}
		switch is := out[i]; {
		case is.Cut == power.Cuts.String(), !b.tell && is.Cut == power.LeavesBus.String():
			return
		case time.Now().After(end):
			t.Fatalf("of a hub that cuts its phones' power is said: %+v", is)
		}
	}
}

// well waits until slots are well and their phones there.
func (b *bench) well(t *testing.T, slots ...int) map[int]action.SlotHealth {
	t.Helper()
	return b.until(t, fmt.Sprintf("slots %v are well", slots), func(all map[int]action.SlotHealth) bool {
		return rackrig.Well(all, slots...)
	})
}

// recovery has slot 4, alone on its line, and slot 5, on a port of a hub with a neighbour, hang at the same time, and slots 1 and 2
// die on the hub of slot 3, which somebody has. Meanwhile the light tells of over-current and of a full disk.
func recovery(t *testing.T, b *bench) {
	before := b.greeted()
	b.ask(lineTo(hub2), false, true)
	b.ask(b.port(1), false, true)
	for _, n := range []int{4, 5} {
		b.phones[n].USB.SetFaults(phonesim.Faults{Hang: true})
	}
	b.until(t, "slots 4 and 5 hang", func(all map[int]action.SlotHealth) bool {
		return all[4].State == string(health.Recovering) && all[5].State == string(health.Recovering)
	})
	b.overCurrents(t)
	b.ctl(t, "hold", "3", "--for", "10m")
	for _, n := range []int{1, 2} {
		if err := b.relays.Pull(b.phones[n]); err != nil {
			t.Fatal(err)
		}
	}
	b.until(t, "slots 1 and 2 are dead", func(all map[int]action.SlotHealth) bool {
		return all[1].Main.Code == string(health.Dead) && all[2].Main.Code == string(health.Dead)
	})
	b.fullDisk(t) // takes more than two looks
	all := b.well(t, 4, 5)
	for _, n := range []int{4, 5} {
		if got := rackrig.Acts(all[n]); !slices.Equal(got, []string{"reopen done", "port_cycle done"}) {
			t.Errorf("slot %d was recovered by %q", n, got)
		}
	}
	hung := b.greeted()
	for n, greeted := range hung {
		if ill := n == 4 || n == 5; ill != (greeted > before[n]) {
			t.Errorf("the phone of slot %d was greeted %d times, before %d", n, greeted, before[n])
		}
	}
	b.edges(t) // none of hub A
	b.heat()
	b.ask(lineTo(hub1), false, true)
	b.ctl(t, "hold", "3", "--release")
	all = b.well(t, 1, 2, 3)
	if got := append(rackrig.Acts(all[1]), rackrig.Acts(all[2])...); !slices.Contains(got, "hub_cycle done") {
		t.Errorf("recovery has done %q", got)
	}
	after := b.greeted()
	for _, n := range []int{4, 5, 6} {
		if after[n] != hung[n] {
			t.Errorf("slot %d on another hub was opened anew", n)
		}
	}
	b.judged(t)
}

// heat makes the phone of slot 6 too hot: its port goes off when its battery is read, within a minute.
func (b *bench) heat() {
	r := b.phones[6].Android.Battery()
	r.Temperature = 400
	b.phones[6].Android.SetBattery(r)
	b.ask(b.port(2), false)
}

// press holds the button for a time.
func (b *bench) press(t *testing.T, d time.Duration) {
	t.Helper()
	for _, down := range []bool{true, false} {
		if err := b.SetInput(b.ctx, button, down); err != nil {
			t.Fatal(err)
		}
		if down {
			time.Sleep(d)
		}
	}
}

func buttonHeld(t *testing.T, b *bench) {
	for _, is := range []bool{true, false} {
		b.press(t, 4*time.Second)
		b.until(t, fmt.Sprintf("maintenance: %v", is), func(all map[int]action.SlotHealth) bool { return is == (all[4].State == string(health.Maintenance)) })
	}
}

// count stands for a port of hub C in sysfs.
const count = "'/sys/bus/usb/devices/1-3:1.0/1-3-port2/over_current_count'"

// overCurrents has hub A say by its line that it takes too much, and hub C by the kernel's count, in a file that stands for it.
func (b *bench) overCurrents(t *testing.T) {
	b.sh(t, "echo 1 >/tmp/count; mount --bind /tmp/count "+count)
	if err := b.SetInput(b.ctx, overCurrent, true); err != nil {
		t.Fatal(err)
	}
	b.found(t, true, "hub_overload: Hub A says")
	b.found(t, true, "hub_overload: Hub C says")
	b.shows(t, threeFlashes)
}

// found waits until the controller's findings have a text, or have it no more.
func (b *bench) found(t *testing.T, is bool, text string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		got := b.findings(t)
		if strings.Contains(got, text) == is {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("whether %q is found should be %v: %s", text, is, got)
		}
	}
}

// fullDisk fills the disk with rackd's state, and empties it. The over-current ends.
func (b *bench) fullDisk(t *testing.T) {
	if err := b.SetInput(b.ctx, overCurrent, false); err != nil {
		t.Fatal(err)
	}
	b.sh(t, "umount "+count+"; fallocate -l $(($(df -k /var/lib | awk 'END {print $4}') * 1024 / 100 * 93)) /var/lib/full")
	b.found(t, true, "disk_full")
	b.shows(t, fast)
	b.sh(t, "rm /var/lib/full")
	b.found(t, false, "hub_overload: Hub A says")
}

// restartRackd starts rackd again, once it has ended, and waits until it answers.
func (b *bench) restartRackd(t *testing.T) {
	t.Helper()
	n := b.Lines()
	b.sh(t, fmt.Sprintf("kill -USR1 %d", b.Rackd().PID))
	b.process(t, n)
	if err := b.WaitRackd(b.ctx); err != nil {
		t.Fatal(err)
	}
}

// end has rackd end by a signal.
func (b *bench) end(t *testing.T, signal string) {
	t.Helper()
	n := b.Lines()
	b.sh(t, "kill -"+signal+" $(pidof rackd)")
	if _, err := b.WaitLineAfter(b.ctx, n, ended); err != nil {
		t.Fatal(err)
	}
}

func restart(t *testing.T, b *bench) {
	b.ask(lineTo(hub2), false)
	b.ctl(t, "power", "off", "4")
	b.edges(t) // by now slot 6 too has no power
	b.end(t, "TERM")
	b.restartRackd(t)
	b.stillOff(t)
}

// stillOff sees that after a restart all phones are well but the one that a person has switched off and the one that was too hot.
func (b *bench) stillOff(t *testing.T) {
	t.Helper()
	all := b.well(t, 1, 2, 3, 5)
	if s := all[4]; s.Left != "power" || s.Power == nil || s.Power.On {
		t.Errorf("slot 4, which a person has switched off, after the restart: %+v", s)
	}
	if s := all[6]; s.State != string(health.Resting) || s.Power == nil || s.Power.On {
		t.Errorf("slot 6, which was too hot, after the restart: %+v", s)
	}
}

// kill kills rackd while one of its lamps is lit: identifying shows them in turn.
func kill(t *testing.T, b *bench) {
	b.press(t, 500*time.Millisecond)
	b.shows(t, identify)
	b.end(t, "KILL")
	b.dark(t, time.Now())
	b.restartRackd(t)
	b.stillOff(t)
}

// resetWithin is how long after its last feeding the watchdog may take, with some room for an emulated processor.
const resetWithin = 25 * time.Second

// standstill stops rackd. The watchdog pauses the machine where it would reset a real one, so that the board can be ended in an orderly
// way after it.
func standstill(t *testing.T, b *bench) {
	b.sh(t, "kill -STOP $(pidof rackd)")
	began := time.Now()
	for b.watchdogs() == 0 {
		if time.Since(began) > resetWithin {
			t.Fatalf("the board would not be reset: %v", b.Events())
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("reset after %v", time.Since(began).Round(100*time.Millisecond))
	b.edges(t)
	if err := b.Monitor(b.ctx, "cont", nil, nil); err != nil {
		t.Fatal(err)
	}
	b.end(t, "KILL")
	b.sh(t, "echo V >/dev/watchdog0") // QEMU's has disarmed itself, of which the driver knows nothing
	b.restartRackd(t)
}

// shutdown ends rackd with its manager, then the machine.
func shutdown(t *testing.T, b *bench) {
	b.stillOff(t)
	n := b.Lines()
	b.sh(t, fmt.Sprintf("kill -TERM %d", b.Rackd().PID))
	if _, err := b.WaitLineAfter(b.ctx, n, ended); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(b.ctx, "poweroff", "sh", "-c", "sleep 1; poweroff -f"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Done():
	case <-time.After(time.Minute):
		t.Fatalf("the board does not power off: %v", b.Events())
	}
	b.edges(t)
}
