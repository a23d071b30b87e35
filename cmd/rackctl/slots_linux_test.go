package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

func TestSlotsAreShownWithWhatToDo(t *testing.T) {
	b := start(t)
	const table = `SLOT  LABEL  STATE       FOR  WHAT  WHAT TO DO
1     A1     recovering  0s   phone hangs in zh  wait
2     -      empty       0s   no phone           -
`
	if out, _, code := b.rackctl("", "--lang", "zh", "slots"); code != 0 || columns(out) != columns(table) {
		t.Errorf("slots, %d:\n%s", code, out)
	}
	out, _, code := b.rackctl("", "slots", "1")
	for _, want := range []string{"recovering for", "phone hangs in en", "it does not answer", "reopen, next in 30s", "hub A port 1 on"} {
		if code != 0 || !strings.Contains(columns(out), want) {
			t.Errorf("slot 1 lacks %q, %d:\n%s", want, code, out)
		}
	}
	if _, said, code := b.rackctl("", "slots", "9"); code != exitRefused || !strings.Contains(said, "there is no slot 9") {
		t.Errorf("slot 9: %d %s", code, said)
	}
	if out, _, code := b.rackctl("", "status"); code != 0 || !strings.Contains(columns(out), "recovering 1") || !strings.Contains(out, "disk almost full") || strings.Contains(out, "well") {
		t.Errorf("status, %d:\n%s", code, out)
	}
	const way = "\npage http://192.0.2.7/\npage http://169.254.7.9/\nname on the LAN rack-1.local\nshown on a screen slot 1, for another 1m30s\n"
	if out, _, code := b.rackctl("", "status"); code != 0 || !strings.Contains(columns(out), way) {
		t.Errorf("how the page is reached is not told, %d:\n%s", code, columns(out))
	}
}

// columns leaves one blank of the padding.
func columns(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestActionsAreListedWithWhatTheyNeed: who may, what must be free, whether twice is as once, how long, and with what.
func TestActionsAreListedWithWhatTheyNeed(t *testing.T) {
	out, said, code := start(t).rackctl("", "actions")
	if code != 0 {
		t.Fatal(code, said)
	}
	for _, want := range []string{
		"power_cycle operator all slots on the power no 2m0s slot [hub] take the power",
		"reboot operator the slot no 5m0s slot restart",
		"sign operator - as once 1m30s [seconds] [slot] have a free phone's screen",
		"ping viewer - as once 10s - tell that",
		"screenshot viewer - as once 1m0s slot take a picture",
		"quarantine operator - as once 10s slot [reason] [seconds] leave",
	} {
		if !strings.Contains(columns(out), "\n"+want) {
			t.Errorf("no %q in\n%s", want, columns(out))
		}
	}
}

func TestWhatToDoIsNeverNothingWhereThereIsSomething(t *testing.T) {
	fine, hung := action.Saying{Code: "fine", Do: "nothing"}, action.Saying{Code: "hung", Do: "wait"}
	full, left := action.Saying{Code: "storage_low", Do: "make room"}, action.Saying{Code: "quarantined", Do: "mend it"}
	for want, h := range map[string]action.SlotHealth{
		"nothing":   {Main: fine},
		"make room": {Main: fine, Others: []action.Saying{full, left}},
		"mend it":   {Main: fine, Others: []action.Saying{left}},
		"wait":      {Main: hung, Others: []action.Saying{left}},
	} {
		if got := toDo(h); got != want {
			t.Errorf("%+v: %s, want %s", h, got, want)
		}
	}
}

func TestWhatHasShownItselfIsSaid(t *testing.T) {
	busy := wire.Refuse(wire.SlotBusy, map[string]any{"slot": 1, "holder": "task t1", "until": time.Unix(0, 0)})
	for want, seen := range map[string]action.Identified{
		"shown by the rack's light, the phone in slot 2, the phone in slot 7":                 {Light: true, Slots: []int{2, 7}},
		"shown by the slot's LED, the phone in slot 1":                                        {LED: true, Slots: []int{1}},
		"shown by the rack's light, the slot's LED; not by the phone: " + busy.Sentence("en"): {Light: true, LED: true, Refusal: busy},
		"shown by nothing: there is no light, and no phone is free":                           {},
	} {
		if got := identified(seen, "en"); got != want {
			t.Errorf("%+v: %s, want %s", seen, got, want)
		}
	}
}

func TestOrdersAboutSlots(t *testing.T) {
	b := start(t)
	for _, c := range []struct{ args, want string }{
		{"power cycle 1", "cycle 1 hub false"},
		{"power off 1 --hub", "power 1 hub true on false"},
		{"power on 1", "power 1 hub false on true"},
		{"quarantine 1 --for 8h", "quarantine 1 for 8h0m0s by"},
		{"quarantine 1 --release", "end quarantine 1"},
		{"maintenance on", "maintenance 0 true"},
		{"maintenance off 2", "maintenance 2 false"},
		{"identify 1 --for 500ms", "identify 1 for 1s"},
		{"sign", "sign 0 for 2m0s"},
		{"sign 2 --for 30s", "sign 2 for 30s"},
		{"sign --end", "end sign 0"},
		{"sign 1 --end", "end sign 1"},
		{"reboot 1", "reboot 1"},
		{"retry 1", "retry 1"},
		{"forget 2", "forget 2"},
	} {
		out, said, code := b.rackctl("", strings.Fields(c.args)...)
		log := strings.Split(b.rack.Log(), "\n")
		if code != 0 || !strings.HasPrefix(log[len(log)-1], c.want) {
			t.Errorf("rackctl %s: %d %s%s did %q, want %q", c.args, code, out, said, log[len(log)-1], c.want)
		}
	}
	if out, said, code := b.rackctl("", "ping"); code != 0 || out != "rackd is there with 2 slots, start 4-522d5a50\n" {
		t.Errorf("ping: %d %s%s", code, out, said)
	}
	file := filepath.Join(t.TempDir(), "screen.jpg")
	for _, more := range []string{"", "--json"} {
		out, said, code := b.rackctl("", strings.Fields("screenshot 1 "+file+" "+more)...)
		raw, err := os.ReadFile(file)
		if code != 0 || err != nil || string(raw) != "jpeg" || strings.Contains(out, "image") {
			t.Errorf("screenshot %s: %d %s%s, %q %v", more, code, out, said, raw, err)
		}
		os.Remove(file)
	}
	if _, said, code := b.rackctl("", "maintenance", "perhaps"); code != exitUsage {
		t.Errorf("maintenance perhaps: %d %s", code, said)
	}
}
