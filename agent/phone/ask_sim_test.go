package phone

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim/phonetest"
)

// What came before a command that hangs is kept, over the real protocol too.
func TestSourcesBeforeOneThatHangsAreKept(t *testing.T) {
	for _, version := range []int{7, 14} {
		synctest.Test(t, func(t *testing.T) {
			sim := phonetest.Start(t, phonetest.Config{Android: version})
			c, err := adb.Connect(t.Context(), adb.NewStreamLink(sim.Host), adb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p := &Phone{conn: connOf(c)}
			soon, end := context.WithTimeout(t.Context(), 3*time.Second)
			defer end()
			sources := []source{{"one", "echo 1"}, {"two", "echo 2 | grep x"}, {"three", "echo 3; sleep 1000"}, {"four", "echo 4"}}
			a := newAnswers()
			if err := p.ask(soon, a, sources); err != nil {
				t.Fatal(err)
			}
			if a.text(sources[0]) != "1\n" || a.err(sources[:2]) != nil || !errors.Is(a.err(sources[2:3]), context.DeadlineExceeded) ||
				!errors.Is(a.err(sources[3:]), context.DeadlineExceeded) {
				t.Errorf("Android %d: %+v", version, a.said)
			}
		})
	}
}
