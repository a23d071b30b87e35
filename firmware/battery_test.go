package firmware_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/factory"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim/android"
)

// leap is the board's clock, which a test can set forward.
type leap struct{ by atomic.Int64 }

func (l *leap) now() time.Duration      { return lease.BootTime() + time.Duration(l.by.Load()) }
func (l *leap) on(d time.Duration)      { l.by.Add(int64(d)) }
func (l *leap) use(o *firmware.Options) { o.Clock = l.now }

// charging reads batteries all the time, and charges by switching ports that cut VBUS.
func charging(o *firmware.Options) {
	cutting(o)
	o.Config.Health.Battery.Interval = health.Duration(100 * time.Millisecond)
	o.Config.Health.Battery.Windows = true
}

// battery changes what the phone's battery is like; whether it has power is for the port to say.
func (s *socket) battery(r android.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.USB = s.on
	s.phone.device.SetBattery(r)
}

// reading is a healthy battery's with changes.
func reading(change func(*android.Reading)) android.Reading {
	r := android.Reading{USB: true, Status: 2, Health: 2, Present: true, Level: 45, Voltage: 3900, Temperature: 286, Counter: 2_000_000}
	if change != nil {
		change(&r)
	}
	return r
}

func level(percent int) android.Reading {
	return reading(func(r *android.Reading) { r.Level = percent })
}

func heat(tenths int) android.Reading {
	return reading(func(r *android.Reading) { r.Temperature = tenths })
}

// also waits until a slot has a further finding.
func (b *bench) also(slot int, code string) action.SlotHealth {
	b.t.Helper()
	var last action.SlotHealth
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, s := range b.slots() {
			if s.Slot != slot {
				continue
			}
			last = s
			for _, f := range s.Others {
				if f.Code == code {
					return s
				}
			}
		}
	}
	b.t.Fatalf("slot %d is %+v, without %s", slot, last, code)
	return last
}

// settled waits until a port was switched like this, and nothing is being done about its phone any more.
func (b *bench) settled(p *socket, slot int, state health.State, switched string) {
	b.t.Helper()
	var s action.SlotHealth
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s = b.slots()[slot-1]; s.State == string(state) && s.Rung == "" && p.switched() == switched {
			return
		}
	}
	b.t.Fatalf("slot %d is %s and was switched %s, not %s and %s: %+v", slot, s.State, p.switched(), state, switched, s)
}

// TestAChargeWindow: power from 30 to 60 percent, read again after 4 hours, whatever the neighbour does.
func TestAChargeWindow(t *testing.T) {
	t.Parallel()
	clock := &leap{}
	var phone *socket
	b, ports := newPorts(t, nil, charging, clock.use, func(o *firmware.Options) {
		phone = o.Outlets[0].Switch.(*socket)
		phone.battery(level(25))
		o.Outlets[1].Switch.(*socket).battery(level(25))
	})
	b.health(1, health.Well)
	time.Sleep(500 * time.Millisecond)
	if got := ports[1].switched(); got != "" {
		t.Fatalf("a battery that is to be charged was switched %s", got)
	}
	phone.battery(level(60))
	b.settled(ports[1], 1, health.Resting, "false")
	if s := b.slots()[0]; s.Main.Code != "resting" || acts(s) != "rest done" {
		t.Errorf("full enough: %+v", s)
	}
	phone.battery(level(55))
	clock.on(3 * time.Hour)
	time.Sleep(300 * time.Millisecond)
	if got := ports[1].switched(); got != "false" {
		t.Errorf("after 3 hours the port was switched %s", got)
	}
	clock.on(time.Hour + time.Minute)
	b.settled(ports[1], 1, health.Resting, "false true false") // it was read, and rests on
	phone.battery(level(30))
	clock.on(4*time.Hour + time.Minute)
	b.health(1, health.Well)
	time.Sleep(500 * time.Millisecond)
	if got := ports[1].switched(); got != "false true false true" {
		t.Errorf("with 30 percent the port was switched %s", got)
	}
	if got := ports[2].switched(); got != "" {
		t.Errorf("the neighbour's port was switched %s", got)
	}
}

// TestHeatStopsChargingAndTasks: from 37 degrees, until 35; without charge windows too.
func TestHeatStopsChargingAndTasks(t *testing.T) {
	t.Parallel()
	clock := &leap{}
	var phone *socket
	b, ports := newPorts(t, nil, charging, clock.use, func(o *firmware.Options) {
		o.Config.Health.Battery.Windows = false
		phone = o.Outlets[0].Switch.(*socket)
		phone.battery(heat(369))
	})
	b.health(1, health.Well)
	time.Sleep(500 * time.Millisecond)
	if got := ports[1].switched(); got != "" {
		t.Fatalf("at 36.9 degrees the port was switched %s", got)
	}
	phone.battery(heat(370))
	b.settled(ports[1], 1, health.Resting, "false")
	for what, err := range map[string]error{
		"a person":          b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1)}, nil),
		"a task of rackctl": b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: shopGoal}, nil),
	} {
		if !wire.Is(err, wire.PhoneHot) {
			t.Errorf("%s: %v", what, err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	if got := ports[1].switched(); got != "false" {
		t.Errorf("a hot phone that somebody wants was switched %s", got)
	}
	phone.battery(heat(351))
	clock.on(16 * time.Minute)
	b.settled(ports[1], 1, health.Resting, "false true false") // it was read, and is too warm
	phone.battery(heat(350))
	clock.on(16 * time.Minute)
	b.health(1, health.Well)
	if got := ports[1].switched(); got != "false true false true" {
		t.Errorf("at 35 degrees: %s", got)
	}
}

// TestARestingPhoneIsWokenByWhoWantsIt: a request of a person and tasks; and it rests again when nobody has used it for 10 minutes, or for as long
// as the configuration says.
func TestARestingPhoneIsWokenByWhoWantsIt(t *testing.T) {
	t.Parallel()
	var c *scriptedCloud
	for name, want := range map[string]func(t *testing.T, b *bench){
		"a person": func(t *testing.T, b *bench) {
			err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1)}, nil)
			if !wire.Is(err, wire.PhoneResting) {
				t.Errorf("the first request: %v", err)
			}
		},
		"a task of rackctl": func(t *testing.T, b *bench) {
			err := b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: shopGoal}, nil)
			if !wire.Is(err, wire.PhoneResting) {
				t.Errorf("the first request: %v", err)
			}
		},
		"a task of the cloud": func(t *testing.T, _ *bench) {
			c.grant(wire.Task{TaskID: "t1", Goal: shopGoal}, 1, 2*time.Minute)
			if r := await[wire.Result](t, c, wire.TypeResult, 0); r.TaskID != "t1" || r.Outcome != wire.Succeeded {
				t.Errorf("the task has ended as %+v", r)
			}
			claims := c.Heard(wire.TypeClaim)
			if len(claims) == 0 {
				t.Error("nothing was claimed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := strings.HasSuffix(name, "cloud")
			if !cloud {
				t.Parallel()
			}
			clock := &leap{}
			b, ports := newPorts(t, nil, func(o *firmware.Options) {
				if cloud {
					joined := &bench{t: t, config: o.Config}
					c = joined.join(config.Script)
					o.Config, o.Planner = joined.config, nil
					hasty(o)
				}
				charging(o)
				clock.use(o)
				if name == "a person" {
					o.Config.Health.Battery.WantedFor = health.Duration(30 * time.Minute)
				}
				o.Outlets[0].Switch.(*socket).battery(level(85))
				o.Outlets[1].Switch.(*socket).absent = true
			})
			b.settled(ports[1], 1, health.Resting, "false")
			want(t, b)
			b.health(1, health.Well)
			b.await(1, action.Ready)
			if err := b.Call(t.Context(), "observe", action.ObserveArgs{SlotArgs: slotArgs(1)}, nil); err != nil {
				t.Errorf("awake: %v", err)
			}
			time.Sleep(500 * time.Millisecond)
			if got := ports[1].switched(); got != "false true" {
				t.Errorf("the port of a phone that is wanted was switched %s", got)
			}
			clock.on(11 * time.Minute)
			if name == "a person" {
				time.Sleep(500 * time.Millisecond)
				if got := ports[1].switched(); got != "false true" {
					t.Errorf("within the 30 minutes of the configuration the port was switched %s", got)
				}
				clock.on(20 * time.Minute)
			}
			b.health(1, health.Resting)
		})
	}
}

// TestWhatABatterySaysAndWhatIsDone: each reading with its finding. Nothing of this switches power.
func TestWhatABatterySaysAndWhatIsDone(t *testing.T) {
	t.Parallel()
	set := func(r android.Reading) func(*bench, *simPhone) {
		return func(_ *bench, p *simPhone) { p.device.SetBattery(r) }
	}
	for _, test := range []struct {
		name    string
		tell    func(b *bench, p *simPhone)
		finding string
		acts    string
		ends    func(b *bench, p *simPhone) // makes it good again; nil: it is mended by the rack
	}{
		{"over-voltage", set(reading(func(r *android.Reading) { r.Health = 5 })), "battery_swelling", "", set(level(45))},
		{"dead", set(reading(func(r *android.Reading) { r.Health = 4 })), "battery_swelling", "", set(level(45))},
		{"no battery", set(reading(func(r *android.Reading) { r.Present = false })), "battery_missing", "", set(level(45))},
		{"no level on a phone that answers", set(level(0)), "battery_unreadable", "", set(level(45))},
		{"no power although the port is on", set(reading(func(r *android.Reading) { r.USB, r.Status = false, 3 })), "cable_no_power", "", set(level(45))},
		{"it empties although it is powered", func(b *bench, p *simPhone) {
			time.Sleep(400 * time.Millisecond) // 45 percent were read
			p.device.SetBattery(level(40))
		}, "cable_weak", "", set(level(46))},
		{"faked", func(b *bench, _ *simPhone) {
			if _, _, err := b.shell(1, "dumpsys battery set level 50", ""); err != nil {
				b.t.Error(err)
			}
		}, "battery_faked", "battery_reset done", nil},
		{"adbd listens on the network", func(b *bench, _ *simPhone) {
			if _, _, err := b.shell(1, "setprop service.adb.tcp.port 5555", ""); err != nil {
				b.t.Error(err)
			}
		}, "tcp_open", "close_tcp done", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, ports := newPorts(t, nil, charging, func(o *firmware.Options) {
				o.Config.Health.Battery.Windows = false
				for _, out := range o.Outlets {
					out.Switch.(*socket).battery(level(45))
				}
				o.Outlets[1].Switch.(*socket).absent = true
			})
			b.health(1, health.Well)
			test.tell(b, ports[1].phone)
			if test.ends != nil {
				if s := b.also(1, test.finding); s.State != string(health.Attention) {
					t.Errorf("the slot is %+v", s)
				}
				test.ends(b, ports[1].phone)
			}
			var s action.SlotHealth
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if s = b.slots()[0]; s.State == string(health.Well) && acts(s) == test.acts {
					break
				}
			}
			if s.State != string(health.Well) || acts(s) != test.acts {
				t.Errorf("afterwards: %s by %q, want %q; %+v", s.State, acts(s), test.acts, s)
			}
			if got := ports[1].switched(); got != "" {
				t.Errorf("the port was switched %s", got)
			}
		})
	}
}

// TestAKeyThatLapsesIsSaid: Android forgets it 7 days after the last connection; a phone that rests is spoken to long before.
func TestAKeyThatLapsesIsSaid(t *testing.T) {
	t.Parallel()
	clock := &leap{}
	b, ports := newPorts(t, nil, charging, clock.use, func(o *firmware.Options) {
		for _, out := range o.Outlets {
			out.Switch.(*socket).battery(level(85))
		}
	})
	b.settled(ports[1], 1, health.Resting, "false")
	b.settled(ports[2], 2, health.Resting, "false")
	if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	clock.on(3 * 24 * time.Hour)
	b.settled(ports[1], 1, health.Resting, "false true false")
	clock.on(3*24*time.Hour + time.Minute)
	b.settled(ports[1], 1, health.Resting, "false true false true false")
	if s := b.also(2, "key_lapsing"); !strings.Contains(fmt.Sprint(s.Others), "Android") {
		t.Errorf("said: %+v", s.Others)
	}
	if s := b.slots()[0]; strings.Contains(fmt.Sprint(s.Others), "key_laps") {
		t.Errorf("the phone that was spoken to: %+v", s.Others)
	}
	clock.on(24 * time.Hour)
	b.also(2, "key_lapsed")
}

// TestAPortThatIsDarkOnPurposeStaysSoOverRestartsAndKills of rackd, and a reset: it is switched when what it is dark for is over, and
// by nothing before.
func TestAPortThatIsDarkOnPurposeStaysSoOverRestartsAndKills(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reading android.Reading
		over    time.Duration
	}{
		"a charge window": {level(85), 4*time.Hour + time.Minute},
		"heat":            {heat(380), 16 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &leap{}
			var again firmware.Options
			b, ports := newPorts(t, nil, charging, clock.use, func(o *firmware.Options) {
				o.Outlets[0].Switch.(*socket).battery(test.reading)
				o.Outlets[1].Switch.(*socket).battery(level(25))
				again = *o
			})
			b.settled(ports[1], 1, health.Resting, "false")
			b.health(2, health.Well)
			restart := func(how string, between func()) {
				state := b.config.Rack.State + "-" + how
				copyState(t, b.config.Rack.State, state) // as a kill leaves it
				b.stop()
				if how != "kill" {
					state = b.config.Rack.State
				}
				b.config.Rack.State = state
				between()
				b.run(again)
				ports[2].plug()
				b.health(2, health.Well)
				time.Sleep(500 * time.Millisecond) // ten rounds
				b.settled(ports[1], 1, health.Resting, "false")
			}
			restart("kill", func() {})
			restart("restart", func() {})
			restart("reset", func() {
				if err := factory.Ask(b.config.Rack.State, "", factory.Mark{By: "kim"}); err != nil {
					t.Fatal(err)
				}
				if did, err := firmware.FinishReset(b.config, "", slog.New(slog.DiscardHandler)); !did || err != nil {
					t.Fatal(did, err)
				}
			})
			ports[1].battery(level(25))
			clock.on(test.over)
			b.settled(ports[1], 1, health.Well, "false true")
			if got := ports[2].switched(); got != "" {
				t.Errorf("the neighbour's port was switched %s", got)
			}
		})
	}
}
