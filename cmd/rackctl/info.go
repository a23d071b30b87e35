package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"phonerack/agent/phone"
	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/firmware/remembered"
)

type infoCommand struct{ slotArg }

func (c infoCommand) Run(s *session) error {
	return call(s, "phone_info", c.args(), func(info action.PhoneInfo) error {
		t := table.New(s.stdout, "WHAT", "IS")
		t.Row("phone", fmt.Sprintf("%s (%s), Android %s, %dx%d", info.Model, info.Serial, info.Android, info.Width, info.Height))
		if b := info.Battery; b != nil {
			t.Row("battery", batteryWords(*b))
		}
		if h := info.Thermal; h != nil {
			t.Row("heat", thermalWords(*h))
		}
		if d := info.Storage; d != nil {
			t.Row("storage", fmt.Sprintf("%d of %d MB free", d.Free>>20, d.Total>>20))
		}
		if p := info.Power; p != nil {
			t.Row("screen", p.Wakefulness)
		}
		for _, part := range slices.Sorted(maps.Keys(info.Missing)) {
			t.Row(part, "not read: "+info.Missing[part])
		}
		if r := info.Remembered; r != nil {
			rememberedRows(t, *r)
		}
		return t.Flush()
	})
}

// reading is a number that the phone may not tell.
func reading(v int, form func(int) string) string {
	if v == phone.Unknown {
		return "unknown"
	}
	return form(v)
}

func tenths(v int) string { return strconv.FormatFloat(float64(v)/10, 'f', 1, 64) + " °C" }

func batteryWords(b phone.Battery) string {
	words := reading(b.Level, func(v int) string { return strconv.Itoa(v) + " %" }) + ", " + reading(b.Temperature, tenths) + ", " + b.Status
	if b.Faked {
		words += "; the phone was told to report made-up values"
	}
	for _, what := range b.Implausible {
		words += "; its " + what + " cannot be true"
	}
	return words
}

func thermalWords(h phone.Thermal) string {
	levels := []string{"none", "light", "moderate", "severe", "critical", "emergency", "shutdown"}
	if h.Status < 0 || h.Status >= len(levels) {
		return strconv.Itoa(h.Status)
	}
	return "throttling " + levels[h.Status]
}

func rememberedRows(t table.Table, r remembered.Phone) {
	t.Row("first seen", r.FirstSeen.Local().Format(time.DateTime))
	t.Row("key used", r.KeyUsed.Local().Format(time.DateTime))
	if r.Serial == "" {
		t.Row("known by", "its slot: its serial number is missing or not its own")
	}
	if r.Baseline != nil {
		t.Row("apps", fmt.Sprintf("%d before the first task", len(r.Baseline.Packages)))
	}
	if r.Helpers {
		t.Row("helper apps", "wanted")
	}
	if r.Dirty != nil {
		t.Row("not in order", fmt.Sprintf("since task %s, %s", r.Dirty.Task, r.Dirty.Since.Local().Format(time.DateTime)))
	}
	if n := len(r.Battery); n > 0 {
		t.Row("battery history", fmt.Sprintf("%d readings since %s", n, r.Battery[0].At.Local().Format(time.DateTime)))
	}
}
