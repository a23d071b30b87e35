package rackrig_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"phonerack/firmware/rig/rackrig"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
)

// rounds is how often a loop runs: short in make test, long times as often in make soak.
func rounds(t *testing.T, short, long int) int {
	t.Helper()
	s := os.Getenv("PHONERACK_SOAK")
	if s == "" {
		return short
	}
	factor, err := strconv.Atoi(s)
	if err != nil || factor < 1 {
		t.Fatalf("PHONERACK_SOAK is %q: set it to 1, or to a larger number for a longer soak", s)
	}
	return long * factor
}

// TestSoakLinkFaults connects, works and loses the link in seeded ways, over and over. Whatever happens, every call
// returns within its bound, and a healthy connection right after it works.
func TestSoakLinkFaults(t *testing.T) {
	p, err := rackrig.Simulate(rackrig.PhoneSpec{Serial: "SIM0001", Port: "1-1"})
	if err != nil {
		t.Fatal(err)
	}
	n := rounds(t, 40, 3000)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	failed := 0
	for i := range n {
		faults := drawFaults(random)
		p.USB.SetFaults(faults)
		if err := workOnce(t, p, random); err != nil {
			failed++
		} else if faults.Hang || faults.Corrupt != phonesim.NoCorruption && faults.CorruptAfter < 2 {
			t.Errorf("round %d: no error with %+v", i, faults)
		}
		p.USB.SetFaults(phonesim.Faults{})
		if err := workOnce(t, p, random); err != nil {
			t.Fatalf("round %d: after %+v a healthy link fails: %v", i, faults, err)
		}
	}
	if v := p.USB.Violations(); len(v) > 0 {
		t.Errorf("our host broke rules: %v", v)
	}
	fmt.Printf("soak link-faults %d rounds, %d with an error as it should be, %.0f s\n", n, failed, time.Since(begin).Seconds())
}

func drawFaults(random *rand.Rand) phonesim.Faults {
	switch random.IntN(6) {
	case 0:
		return phonesim.Faults{UnplugAfterIn: 1 + random.Int64N(20_000)}
	case 1:
		return phonesim.Faults{UnplugAfterOut: 1 + random.Int64N(200_000)}
	case 2:
		return phonesim.Faults{Corrupt: phonesim.Corruption(1 + random.IntN(3)), CorruptAfter: random.IntN(8)}
	case 3:
		return phonesim.Faults{StaleFrames: 1 + random.IntN(20)}
	case 4:
		return phonesim.Faults{Hang: true}
	default:
		return phonesim.Faults{DelayOKAY: time.Duration(random.IntN(20)) * time.Millisecond}
	}
}

// workOnce connects, runs a command, moves a file there and back, and closes.
func workOnce(t *testing.T, p *rackrig.Phone, random *rand.Rand) error {
	t.Helper()
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	defer func(begin time.Time) {
		if d := time.Since(begin); d > 2*bound {
			t.Errorf("a round took %v, its bound is %v", d, bound)
		}
	}(time.Now())
	host, device := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = p.USB.ServeStream(t.Context(), device) // the faults end it in many ways
	}()
	defer func() { <-served }()
	c, err := adb.Connect(ctx, adb.NewStreamLink(host), adb.Options{HandshakeTimeout: 300 * time.Millisecond, WriteTimeout: time.Second, IdleTimeout: time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	if r, err := c.Shell(ctx, "echo out; exit 3"); err != nil {
		return err
	} else if r.ExitCode != 3 || string(r.Stdout) != "out\n" {
		return fmt.Errorf("shell gave %+v", r)
	}
	files, err := c.Sync(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	content := bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(200_000))
	if err := files.Send(ctx, bytes.NewReader(content), "/data/local/tmp/soak", 0o644, time.Unix(1_700_000_000, 0)); err != nil {
		return err
	}
	var back bytes.Buffer
	if err := files.Receive(ctx, "/data/local/tmp/soak", &back); err != nil {
		return err
	}
	if !bytes.Equal(content, back.Bytes()) {
		return errors.New("a file came back different")
	}
	return nil
}
