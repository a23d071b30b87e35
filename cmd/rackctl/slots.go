package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
)

type slotsCommand struct {
	Slot int `arg:"" optional:"" help:"Show one slot, with why, what to do and what recovery has done."`
}

func (c slotsCommand) Run(s *session) error {
	return call(s, "slots", action.LangArgs{Lang: s.lang}, func(result action.Slots) error {
		if c.Slot != 0 {
			return s.showSlot(result.Slots, c.Slot)
		}
		t := table.New(s.stdout, "SLOT", "LABEL", "STATE", "FOR", "WHAT", "WHAT TO DO")
		for _, h := range result.Slots {
			t.Row(strconv.Itoa(h.Slot), h.Label, h.State, short(h.For), titles(h), toDo(h))
		}
		return t.Flush()
	})
}

// titles are all that is to be said of a slot, in a few words each.
func titles(h action.SlotHealth) string {
	all := []string{h.Main.Title}
	for _, o := range h.Others {
		all = append(all, o.Title)
	}
	return strings.Join(all, "; ")
}

// toDo is what somebody should do about a slot: of a phone that is well, what else there is to say of it.
func toDo(h action.SlotHealth) string {
	if h.Main.Code == "fine" && len(h.Others) > 0 {
		return h.Others[0].Do
	}
	return h.Main.Do
}

// short rounds a length of time to what a person cares for.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func (s *session) showSlot(all []action.SlotHealth, slot int) error {
	for _, h := range all {
		if h.Slot != slot {
			continue
		}
		t := table.New(s.stdout, "WHAT", "IS")
		t.Row("state", fmt.Sprintf("%s for %s", h.State, short(h.For)))
		t.Row("phone", h.Serial)
		sayingRows(t, h.Main)
		for _, o := range h.Others {
			sayingRows(t, o)
		}
		if h.Rung != "" {
			t.Row("recovery", fmt.Sprintf("%s, next in %s", h.Rung, short(h.Next)))
		}
		if h.Ends > 0 {
			t.Row("left alone", "for another "+short(h.Ends))
		}
		if h.Power != nil {
			outletRow(t, *h.Power)
		}
		for _, a := range h.Acts {
			t.Row(short(a.Ago)+" ago", a.Act+": "+a.Outcome)
		}
		return t.Flush()
	}
	return fmt.Errorf("there is no slot %d: rackctl slots lists them", slot)
}

func sayingRows(t table.Table, say action.Saying) {
	t.Row("what", say.Title)
	t.Row("why", say.Why)
	t.Row("what to do", say.Do)
}

func outletRow(t table.Table, o action.Outlet) {
	is := "off"
	if o.On {
		is = "on"
	}
	for _, more := range []string{o.Busy, o.Cut, o.Fault} {
		if more != "" {
			is += "; " + more
		}
	}
	t.Row(o.Name, is)
}

type statusCommand struct{}

func (statusCommand) Run(s *session) error {
	return call(s, "rack_status", action.LangArgs{Lang: s.lang}, func(st action.RackStatus) error {
		t := table.New(s.stdout, "WHAT", "IS")
		for _, state := range slotStates {
			if n := st.Slots[state]; n > 0 {
				t.Row(state, strconv.Itoa(n))
			}
		}
		if st.Maintenance {
			t.Row("maintenance", "on: nothing is switched or restarted that nobody asks for")
		}
		for _, url := range st.Way.URLs {
			t.Row("page", url)
		}
		if st.Way.Name != "" {
			t.Row("name on the LAN", st.Way.Name)
		}
		for _, x := range st.Way.Signs {
			t.Row("shown on a screen", fmt.Sprintf("slot %d, for another %s", x.Slot, short(x.Ends)))
		}
		for _, f := range st.Findings {
			sayingRows(t, f)
		}
		for _, o := range st.Outlets {
			outletRow(t, o)
		}
		return t.Flush()
	})
}

// slotStates are the states of slots, the ones that need somebody first.
var slotStates = []string{"needs_hands", "quarantined", "attention", "recovering", "unknown", "maintenance", "resting", "starting", "well", "empty"}

type powerCommands struct {
	On    powerOnCommand    `cmd:"" help:"Give a slot its power."`
	Off   powerOffCommand   `cmd:"" help:"Take a slot's power until somebody gives it back; recovery leaves it off."`
	Cycle powerCycleCommand `cmd:"" help:"Take a slot's power for some seconds and give it back."`
}

type powerArgs struct {
	slotArg
	Hub bool `help:"The whole hub that the slot is behind, with all its phones."`
}

func (a powerArgs) do(s *session, name string) error {
	return act(s, name, action.PowerArgs{SlotArgs: a.args(), Hub: a.Hub})
}

type powerOnCommand struct{ powerArgs }

func (c powerOnCommand) Run(s *session) error { return c.do(s, "power_on") }

type powerOffCommand struct{ powerArgs }

func (c powerOffCommand) Run(s *session) error { return c.do(s, "power_off") }

type powerCycleCommand struct{ powerArgs }

func (c powerCycleCommand) Run(s *session) error { return c.do(s, "power_cycle") }

type quarantineCommand struct {
	slotArg
	For     time.Duration `help:"How long, 10m to 168h; an hour if not given." placeholder:"DURATION" xor:"end"`
	Reason  string        `help:"Why, for whoever looks at the slot next."`
	Release bool          `help:"Take the phone back into service." xor:"end"`
}

func (c quarantineCommand) Run(s *session) error {
	if c.Release {
		return act(s, "quarantine_end", c.args())
	}
	return act(s, "quarantine", action.QuarantineArgs{SlotArgs: c.args(), Seconds: seconds(c.For), Reason: c.Reason})
}

type maintenanceCommand struct {
	To   string `arg:"" enum:"on,off" help:"on while hands are inside, off afterwards."`
	Slot int    `arg:"" optional:"" help:"Number of the slot; the whole rack if not given."`
}

func (c maintenanceCommand) Run(s *session) error {
	return act(s, "maintenance", action.MaintenanceArgs{RackSlotArgs: action.RackSlotArgs{Slot: c.Slot}, Off: c.To == "off"})
}

type identifyCommand struct {
	Slot int           `arg:"" optional:"" help:"Number of the slot; the rack's light and each free phone if not given."`
	For  time.Duration `help:"How long, at most 10m." placeholder:"DURATION"`
}

func (c identifyCommand) Run(s *session) error {
	args := action.IdentifyArgs{RackSlotArgs: action.RackSlotArgs{Slot: c.Slot}, Seconds: seconds(c.For)}
	return call(s, "identify", args, func(seen action.Identified) error {
		_, err := fmt.Fprintln(s.stdout, identified(seen, s.lang))
		return err
	})
}

// identified says what has shown itself, and why the phone that was asked for has not.
func identified(seen action.Identified, lang string) string {
	var by []string
	if seen.Light {
		by = append(by, "the rack's light")
	}
	if seen.LED {
		by = append(by, "the slot's LED")
	}
	for _, n := range seen.Slots {
		by = append(by, fmt.Sprintf("the phone in slot %d", n))
	}
	line := "shown by " + strings.Join(by, ", ")
	if len(by) == 0 {
		line = "shown by nothing: there is no light, and no phone is free"
	}
	if seen.Refusal != nil {
		line += "; not by the phone: " + seen.Refusal.Sentence(lang)
	}
	return line
}

type signCommand struct {
	Slot int           `arg:"" optional:"" help:"Number of the slot; the first whose phone is free and well if not given."`
	For  time.Duration `help:"How long, at most 10m; 2m if not given." placeholder:"DURATION" xor:"end"`
	End  bool          `help:"Put the phone, or all that show it, back to the home screen." xor:"end"`
}

func (c signCommand) Run(s *session) error {
	if c.End {
		return act(s, "sign_end", action.SignEndArgs{Slot: c.Slot})
	}
	return call(s, "sign", action.SignArgs{Slot: c.Slot, Seconds: seconds(c.For)}, func(seen action.Sign) error {
		_, err := fmt.Fprintf(s.stdout, "shown by slot %d for %s: %s\n", seen.Slot, short(seen.Ends), strings.Join(seen.URLs, " "))
		return err
	})
}

type retryCommand struct{ slotArg }

func (c retryCommand) Run(s *session) error { return act(s, "slot_retry", c.args()) }

type forgetCommand struct{ slotArg }

func (c forgetCommand) Run(s *session) error { return act(s, "slot_forget", c.args()) }
