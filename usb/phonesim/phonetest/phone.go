package phonetest

import (
	"context"
	"net"
	"sync"
	"testing"

	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// Width and Height are the display's, in pixels, unless a Config says other: small, to be quick.
const Width, Height = 360, 800

// Config says what the phone is like. The zero value is an Android 14 in the time of the test.
type Config struct {
	Android int                   // version; 14 if zero
	Serial  string                // "SIM7" if empty
	Display screen.Config         // Width by Height pixels of 140 dpi if it has no width
	Change  func(*android.Config) // what else is special; may be nil. The display is in its field Screen by then
}

// Phone is a simulated phone that is plugged in.
type Phone struct {
	*phonesim.Phone
	Engine *screen.Engine
	Device *android.Device
	Host   net.Conn // the host's end of the cable, a byte stream of ADB messages; the caller closes it
}

// Start makes a phone and plugs it in. When the test ends the phone is unplugged, and each rule of the protocol that the host
// has broken fails the test. It may be called in a synctest bubble.
func Start(t testing.TB, c Config) *Phone {
	t.Helper()
	if c.Android == 0 {
		c.Android = 14
	}
	if c.Serial == "" {
		c.Serial = "SIM7"
	}
	if c.Display.Width == 0 {
		c.Display.Width, c.Display.Height, c.Display.Density = Width, Height, 140
	}
	p := &Phone{}
	var err error
	if p.Engine, err = screen.New(c.Display); err != nil {
		t.Fatal(err)
	}
	system := android.Config{Version: c.Android, Serial: c.Serial, Screen: p.Engine}
	if c.Change != nil {
		c.Change(&system)
	}
	if p.Device, err = android.New(system); err != nil {
		t.Fatal(err)
	}
	if p.Phone, err = phonesim.New(phonesim.Config{Serial: c.Serial, Android: c.Android, System: p.Device}); err != nil {
		t.Fatal(err)
	}
	host, there := net.Pipe()
	p.Host = host
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = p.ServeStream(ctx, there) }) // its end is seen at the host's side
	t.Cleanup(func() {
		cancel()
		served.Wait()
		for _, v := range p.Violations() {
			t.Errorf("violation: %v", v)
		}
	})
	return p
}
