package phone

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// What came before a command that hangs is kept, over the real protocol too.
func TestSourcesBeforeOneThatHangsAreKept(t *testing.T) {
	for _, version := range []int{7, 14} {
		synctest.Test(t, func(t *testing.T) {
			engine, err := screen.New(screen.Config{Width: 360, Height: 800, Density: 140, Clock: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			device, err := android.New(android.Config{Version: version, Screen: engine})
			if err != nil {
				t.Fatal(err)
			}
			sim, err := phonesim.New(phonesim.Config{Serial: "SIM7", Android: version, System: device})
			if err != nil {
				t.Fatal(err)
			}
			host, there := net.Pipe()
			ctx, cancel := context.WithCancel(context.Background())
			var served sync.WaitGroup
			served.Go(func() { _ = sim.ServeStream(ctx, there) })
			c, err := adb.Connect(t.Context(), adb.NewStreamLink(host), adb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				c.Close()
				cancel()
				served.Wait()
			}()
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
