package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wireArguments have QEMU trace what the board drives, with the time of each change, and take orders for what drives the
// board. /dev/fd/3 is the pipe of [Board.start].
var wireArguments = []string{
	"-trace", "pl061_set_output", "-trace", "usb_hub_set_port_feature", "-trace", "usb_hub_clear_port_feature", "-D", "/dev/fd/3",
	"-qtest", "unix:qtest,server=on,wait=off", "-qtest-log", "none",
}

// Change is what the board has done to one of its wires.
type Change struct {
	At time.Time // QEMU's, to the microsecond
	// Line is the number of a GPIO line, -1 for a port's power.
	Line int
	// Hub and Port name a hub's port: the hub by the address that the controller has given it. 0 for a line.
	Hub, Port int
	On        bool
}

func (c Change) String() string {
	what := fmt.Sprintf("line %d", c.Line)
	if c.Line < 0 {
		what = fmt.Sprintf("hub %d port %d", c.Hub, c.Port)
	}
	is := "off"
	if c.On {
		is = "on"
	}
	return c.At.Format("15:04:05.000000") + " " + what + " " + is
}

// Lines of QEMU's trace, which -msg timestamp=on puts the time before.
var (
	outputLine = regexp.MustCompile(`^\d+@(\d+)\.(\d{6}):pl061_set_output \S* ?setting output ([0-7]) to ([01])$`)
	powerLine  = regexp.MustCompile(`^\d+@(\d+)\.(\d{6}):usb_hub_(set|clear)_port_feature dev (\d+), port (\d+), feature power$`)
)

// parseChange reads a line of the trace; false for one that tells of no wire.
func parseChange(text string) (Change, bool) {
	if m := outputLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[3])
		return Change{At: stamp(m[1], m[2]), Line: line, On: m[4] == "1"}, true
	}
	if m := powerLine.FindStringSubmatch(text); m != nil {
		hub, _ := strconv.Atoi(m[4])
		port, _ := strconv.Atoi(m[5])
		return Change{At: stamp(m[1], m[2]), Line: -1, Hub: hub, Port: port, On: m[3] == "set"}, true
	}
	return Change{}, false
}

// stamp reads seconds and microseconds.
func stamp(seconds, micros string) time.Time {
	s, _ := strconv.ParseInt(seconds, 10, 64)
	us, _ := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000)
}

// Changes returns what has happened on the board's wires after the first n lines of the trace, and how many there are now;
// 0 begins with the start of the machine, which sets all lines. It blocks until there is a new line, ctx ends or the board
// does.
func (b *Board) Changes(ctx context.Context, n int) (changes []Change, now int, err error) {
	if b.trace == nil {
		return nil, 0, errors.New("the board has no wires: BoardConfig.Wires")
	}
	lines, err := b.trace.after(ctx, n)
	if err != nil {
		return nil, n, fmt.Errorf("follow the wires: %w", err)
	}
	for _, l := range lines {
		if c, ok := parseChange(l.Text); ok {
			changes = append(changes, c)
		}
	}
	return changes, n + len(lines), nil
}

// Traced is how many lines the trace has; for Changes.
func (b *Board) Traced() int {
	if b.trace == nil {
		return 0
	}
	return b.trace.count()
}

const inputLimit = 30 * time.Second // of QEMU's answer

// SetInput drives one of the board's GPIO lines from outside. The machine's own power key is line 3.
func (b *Board) SetInput(ctx context.Context, line int, high bool) error {
	ctx, cancel := context.WithTimeout(ctx, inputLimit)
	defer cancel()
	path, err := b.controller(ctx)
	if err != nil {
		return err
	}
	b.driving.Lock()
	defer b.driving.Unlock()
	conn, err := b.dial(ctx, "qtest")
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	level := 0
	if high {
		level = 1
	}
	if _, err := fmt.Fprintf(conn, "set_irq_in %s unnamed-gpio-in %d %d\n", path, line, level); err != nil {
		return fmt.Errorf("drive line %d: %w", line, err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(answer, "OK") {
		return fmt.Errorf("drive line %d: qtest answers %q, %v", line, answer, err)
	}
	return nil
}

// controller is the path of the GPIO controller among QEMU's objects.
func (b *Board) controller(ctx context.Context) (string, error) {
	const folder = "/machine/unattached"
	var objects []struct{ Name, Type string }
	if err := b.Monitor(ctx, "qom-list", map[string]string{"path": folder}, &objects); err != nil {
		return "", err
	}
	for _, o := range objects {
		if o.Type == "child<pl061>" {
			return folder + "/" + o.Name, nil
		}
	}
	return "", errors.New("the machine has no PL061")
}
