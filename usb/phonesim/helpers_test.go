package phonesim

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"phonerack/usb/phonesim/phonesimtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen listens on a port that adb does not take for an emulator's.
func listen(t *testing.T) net.Listener {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port < 5555 || port > 5585 {
			return l
		}
		l.Close()
	}
}

// serveTCP serves the phone on a loopback port for as long as the test runs.
func serveTCP(t *testing.T, p *Phone) (address string) {
	t.Helper()
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.ServeStream(ctx, c) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// noViolations fails the test if the host has broken a rule.
func noViolations(t *testing.T, p *Phone) {
	t.Helper()
	for _, v := range p.Violations() {
		t.Error(v.Error())
	}
}

func testSystem() *phonesimtest.System {
	return &phonesimtest.System{Properties: map[string]string{
		"ro.product.name": "sim", "ro.product.model": "Sim 1", "ro.product.device": "simdev",
	}}
}

func newPhoneT(t *testing.T, c Config) *Phone {
	t.Helper()
	if c.System == nil {
		c.System = testSystem()
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// releasesUnderTest are all versions of Android that there are.
var releasesUnderTest = []int{7, 9, 11, 14, 15}
