package firmware_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/led"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// identifyBench is a rack with lights of some slots (0: the rack's own) and a button, and one phone, in slot 1.
func identifyBench(t *testing.T, lit []string, change ...func(*firmware.Options)) (*bench, *gpiotest.Kernel, *simPhone) {
	t.Helper()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "RACK", "FIRST", "BUTTON"}})
	kernel.Preset("HUB1_PWR", true)
	kernel.Drive("BUTTON", true)
	text := lineBoard + "[button]\nline = \"BUTTON\"\nactive_low = true\n"
	for _, led := range []string{"[[led]]\nname = \"rack\"\nlight = { line = \"RACK\" }\n", "[[led]]\nname = \"first\"\nslot = 1\nlight = { line = \"FIRST\" }\n"} {
		if slices.ContainsFunc(lit, func(line string) bool { return strings.Contains(led, `"`+line+`"`) }) {
			text += led
		}
	}
	c := newCable()
	gpio := func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} }
	b := newUSBBench(t, c, append([]func(*firmware.Options){hasty, onBoard(t, text), gpio}, change...)...)
	phone := newSimPhone(t, "", "SIM0001", 14, phonesim.Auth{})
	c.plug("1-1.1", 5, phone, "SIM0001")
	b.health(1, health.Well)
	return b, kernel, phone
}

// occupy has a task take the phone, and fails the test if its screen goes dark until it is let go.
func occupy(t *testing.T, b *bench, phone *simPhone) (letGo func()) {
	t.Helper()
	held, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Task, Who: "kim", TaskID: "t1"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan bool, 1) // takes the answer also when nobody asks for it
	go func() {
		bright := true
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			bright = bright && phone.engine.ScreenOn()
		}
		watched <- bright
	}()
	return func() {
		t.Helper()
		cancel()
		if !<-watched || held.Check() != nil {
			t.Errorf("the task was disturbed: its lease says %v", held.Check())
		}
		held.Release()
	}
}

// blinks counts how often a line went on since it was counted last.
func blinks(kernel *gpiotest.Kernel, line string, before int) (since, all int) {
	for _, e := range kernel.Edges() {
		if strings.Contains(e.String(), line+": low to high") {
			all++
		}
	}
	return all - before, all
}

// TestAPhoneThatSomebodyHasIsShownByLights, for the whole time, whoever asks for it; its screen is left alone.
func TestAPhoneThatSomebodyHasIsShownByLights(t *testing.T) {
	t.Parallel()
	serve, v := withPage(t, io.Discard)
	b, kernel, phone := identifyBench(t, []string{"RACK", "FIRST"}, serve)
	v.signIn("kim")
	_, first := blinks(kernel, "FIRST", 0)
	_, rack := blinks(kernel, "RACK", 0)
	shown := func(asked string) { // by both lights: they went dark and on again
		t.Helper()
		var f, r int
		f, first = blinks(kernel, "FIRST", first)
		r, rack = blinks(kernel, "RACK", rack)
		if f == 0 || r == 0 {
			t.Errorf("%s: the slot's LED went on %d times, and the rack's %d times", asked, f, r)
		}
	}
	letGo := occupy(t, b, phone)
	busy := func(asked string, seen action.Identified, took time.Duration) {
		t.Helper()
		if len(seen.Slots) != 0 || !seen.Light || !seen.LED || seen.Refusal == nil || seen.Refusal.Code != wire.SlotBusy {
			t.Errorf("%s answers %+v", asked, seen)
		}
		if took < 2*time.Second {
			t.Errorf("%s ended after %v", asked, took)
		}
		shown(asked)
	}

	began := time.Now()
	var seen action.Identified
	if err := b.Call(t.Context(), "identify", action.IdentifyArgs{RackSlotArgs: action.RackSlotArgs{Slot: 1}, Seconds: 2}, &seen); err != nil {
		t.Error(err)
	}
	busy("rackctl", seen, time.Since(began))

	began, seen = time.Now(), action.Identified{}
	report, err := firmware.Order(t.Context(), b.rack, wire.Command{Name: "identify", Target: wire.CommandTarget{Slot: 1}, Args: json.RawMessage(`{"seconds":2}`)})
	if err != nil || json.Unmarshal(report.Detail, &seen) != nil {
		t.Errorf("the cloud: %s, %v", report.Detail, err)
	}
	busy("the cloud", seen, time.Since(began))

	if _, page := v.ask("GET", "/slot/1", "", true); !strings.Contains(page, `<button id="b-identify" aria-describedby="w-identify">`) || !strings.Contains(page, "its screen stays as it is") {
		t.Error("the page does not say that only lights will blink")
	}
	if code, body := v.act("identify", 1); code != http.StatusOK { // goes on for half a minute
		t.Errorf("the page: %d %s", code, body)
	}
	shown("the page")
	if firmware.ShownBy(b.rack) != led.Identify {
		t.Error("the light ended before the page's half minute")
	}
	letGo()
	b.within("the page's act ends with the rack", func() bool { return b.stop() < 5*time.Second })
}

// TestTheButtonsLightNeedsNoPhone: it stays although no phone is free to show the way.
func TestTheButtonsLightNeedsNoPhone(t *testing.T) {
	t.Parallel()
	serve, _ := withPage(t, io.Discard)
	b, kernel, phone := identifyBench(t, []string{"RACK"}, serve)
	letGo := occupy(t, b, phone)
	b.within("the light", func() bool { // a press that a busy machine sees as a long one is none
		kernel.Drive("BUTTON", true)
		time.Sleep(300 * time.Millisecond) // the button is read, and is up
		kernel.Drive("BUTTON", false)
		time.Sleep(200 * time.Millisecond)
		kernel.Drive("BUTTON", true)
		time.Sleep(200 * time.Millisecond)
		return firmware.ShownBy(b.rack) == led.Identify
	})
	// What somebody asks for meanwhile, for less, does not end it, be it that they go away or that it is over.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := b.Call(ctx, "identify", action.IdentifyArgs{Seconds: 1}, nil); err == nil {
		t.Error("identify ended early, and said nothing")
	}
	if err := b.Call(t.Context(), "identify", action.IdentifyArgs{RackSlotArgs: action.RackSlotArgs{Slot: 1}, Seconds: 1}, nil); err != nil {
		t.Error(err)
	}
	if firmware.ShownBy(b.rack) != led.Identify {
		t.Error("the light ended before the minute of the button")
	}
	letGo()
}

// TestTheScreenOfAFreePhoneBlinksBesideTheLights, and without a light an act that shows nothing is refused.
func TestTheScreenOfAFreePhoneBlinksBesideTheLights(t *testing.T) {
	t.Parallel()
	b, _, phone := identifyBench(t, nil)
	letGo := occupy(t, b, phone)
	args := action.IdentifyArgs{RackSlotArgs: action.RackSlotArgs{Slot: 1}, Seconds: 1}
	if err := b.Call(t.Context(), "identify", args, nil); !wire.Is(err, wire.SlotBusy) {
		t.Errorf("a phone that somebody has, and no light: %v", err)
	}
	letGo()
	dark := make(chan struct{})
	go func() {
		defer close(dark)
		for phone.engine.ScreenOn() && t.Context().Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	var seen action.Identified
	if err := b.Call(t.Context(), "identify", args, &seen); err != nil || !slices.Equal(seen.Slots, []int{1}) || seen.Light || seen.LED || seen.Refusal != nil {
		t.Errorf("a free phone: %+v, %v", seen, err)
	}
	select {
	case <-dark:
	default:
		t.Error("the screen did not go dark")
	}
	if !phone.engine.ScreenOn() {
		t.Error("the screen stayed dark")
	}
}
