//go:build rig

package hardwarerig_test

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

// piLine is where hub A of the Pi is fed from.
const piLine = 17

const piBoard = `
name = "pi"

[[hub]]
name = "A"
path = "1-1"
ports = 4
power = "line"
chip = "pinctrl-bcm2835"
offset = 17

[[slot]]
number = 1
path = "1-1.1"
`

const piConfig = `
[rack]
id = "pi"
board = "board.toml"
state = "/var/lib/rackd"
runtime = "/run/rackd"
`

// piScript begins the scripts: each step says on the serial line how far it is, and leaves the time to look at the line.
const piScript = `mkdir -p /var/lib/rackd /run/rackd
say() { echo "PI $*"; sleep 3; }
run() { KEEP=$1 manager rackd run --config /etc/phonerack/rackd.toml & manager=$!; answers; }
answers() { until [ -S /run/rackd/rackd.sock ]; do sleep 0.2; done; sleep 1; }
end() { kill -$1 $(pidof rackd); gone; }
again() { kill -USR1 $manager; answers; }
gone() { while pidof rackd >/dev/null; do sleep 0.2; done; rm -f /run/rackd/rackd.sock; sleep 1; }
say up
`

// pi is a Pi under test.
type pi struct {
	*rig.Pi
	ctx context.Context
}

func bootPi(t *testing.T, script string, words ...string) *pi {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := rig.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := rackrig.BuildForBoard(ctx, filepath.Join(cache, "programs"))
	if err != nil {
		t.Fatal(err)
	}
	manager := filepath.Join(t.TempDir(), "manager")
	if err := rig.BuildPortable(ctx, manager, "build", "phonerack/firmware/rig/hardwarerig/manager"); err != nil {
		t.Fatal(err)
	}
	raw, err := kit.BootPi(ctx, rig.PiConfig{
		Files:    map[string]string{"/bin/rackd": programs.Rackd, "/bin/rackctl": programs.Rackctl, "/bin/manager": manager},
		Contents: map[string]string{"/etc/phonerack/rackd.toml": piConfig, "/etc/phonerack/board.toml": piBoard},
		Init:     []string{piScript + script}, Append: words,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the Pi's serial line:\n%s", raw.Console())
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	return &pi{raw, ctx}
}

// is waits until the Pi has come so far, and checks by the register of its function what the hub's line is.
func (p *pi) is(t *testing.T, when string, function int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 4*time.Minute)
	defer cancel()
	if _, err := p.WaitLine(ctx, regexp.MustCompile("^PI "+when+"$")); err != nil {
		t.Fatal(err)
	}
	steps := func() int { return len(step.FindAllString(p.Console(), -1)) }
	n := steps()
	got, high, err := p.Line(p.ctx, piLine)
	if err != nil {
		t.Fatal(err)
	}
	if steps() != n {
		t.Fatalf("%s: the line was not looked at before the next step", when)
	}
	t.Logf("%s: GPIO %d has function %d, high: %v", when, piLine, got, high)
	if got != function {
		t.Errorf("%s: the line has function %d, want %d (0 is an input, 1 an output)", when, got, function)
	}
}

var step = regexp.MustCompile(`(?m) PI [a-z ]+$`)

// TestLinesOfAPiAreKeptByWhoLivesLonger: without the store of the manager of services a rackd that is killed leaves its hub
// without power; with it the line stays an output, and the next rackd takes it over.
func TestLinesOfAPiAreKeptByWhoLivesLonger(t *testing.T) {
	p := bootPi(t, `
run no; say without
end KILL; say without killed
kill $manager; wait $manager
run yes; say kept
end KILL; say kept killed
again; say kept again
end TERM; say kept ended
`)
	p.is(t, "up", rig.PiInput)
	p.is(t, "without", rig.PiOutput)
	p.is(t, "without killed", rig.PiInput)
	p.is(t, "kept", rig.PiOutput)
	p.is(t, "kept killed", rig.PiOutput)
	p.is(t, "kept again", rig.PiOutput)
	p.is(t, "kept ended", rig.PiOutput)
}

// TestLinesOfAPiAreKeptByItsKernel does without a store, by a word of the kernel's command line; that lines are lost without
// either is shown above.
func TestLinesOfAPiAreKeptByItsKernel(t *testing.T) {
	p := bootPi(t, `
run no; say runs
end KILL; say killed
again; say again
`, "pinctrl_bcm2835.persist_gpio_outputs=1")
	p.is(t, "runs", rig.PiOutput)
	p.is(t, "killed", rig.PiOutput)
	p.is(t, "again", rig.PiOutput)
}
