package main

import (
	"log/slog"
	"strings"
	"testing"

	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/logbook"
)

// logRack is a rack whose log can be read.
type logRack struct {
	*actiontest.Rack
	book *logbook.Book
}

func (l logRack) Log() *logbook.Book { return l.book }

func TestTheLogIsShown(t *testing.T) {
	rack := logRack{actiontest.New(), logbook.New(logbook.Bounds{})}
	b := serve(t, rack)
	log := slog.New(rack.book.Handler(nil))
	log.Info("rack runs")
	log.Warn("slot changed", "slot", 7, "reason", "\x1b[2J<b>")
	log.Info("last")
	for args, want := range map[string][]string{
		"log":              {"INFO msg=\"rack runs\"", "WARN msg=\"slot changed\" slot=7 reason=\"\\x1b[2J<b>\"", "INFO msg=last"},
		"log --level warn": {"WARN msg=\"slot changed\" slot=7"},
		"log -n 1":         {"INFO msg=last"},
		"--json log -n 1":  {`"number":3,`},
	} {
		out, errOut, code := b.rackctl("", strings.Fields(args)...)
		if code != 0 || strings.Count(out, "\n") != len(want) {
			t.Errorf("%s: %d %q %q", args, code, out, errOut)
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %s in %q", args, line, out)
			}
		}
	}
	if _, errOut, code := start(t).rackctl("", "log"); code != 1 || !strings.Contains(errOut, "reading the log here") {
		t.Errorf("%d %q", code, errOut)
	}
}
