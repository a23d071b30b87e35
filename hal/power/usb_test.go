package power

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/hal/board"
	"phonerack/hal/gpio"
	"phonerack/hal/gpio/gpiotest"
)

// tree writes files below a folder shaped like sysfs.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const devices = "bus/usb/devices/"

// twoHalves is a hub on a USB 3 cable, at 1-1 and 2-1.
func twoHalves(disable bool) map[string]string {
	files := map[string]string{
		devices + "1-1/busnum": "1\n", devices + "1-1/devnum": "7\n", devices + "1-1/speed": "480\n",
		devices + "2-1/busnum": "2\n", devices + "2-1/devnum": "3\n", devices + "2-1/speed": "5000\n",
	}
	if disable {
		files[devices+"1-1:1.0/1-1-port3/disable"] = "0\n"
		files[devices+"2-1:1.0/2-1-port3/disable"] = "0\n"
	}
	return files
}

func TestPortIsSwitchedByTheKernelWhereItCan(t *testing.T) {
	root := tree(t, twoHalves(true))
	u := &USB{Sysfs: root, Control: func(string, Setup, []byte, time.Duration) (int, error) { panic("asked the hub itself") }}
	port := u.Port("1-1", "2-1", 3)
	read := func(hub string) string {
		text, err := attribute(root, devices, hub+":1.0", hub+"-port3", "disable")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, on := range []bool{false, true, false} {
		if err := port.Set(t.Context(), on); err != nil {
			t.Fatal(err)
		}
		is, err := port.On(t.Context())
		if want := map[bool]string{true: "0", false: "1"}[on]; err != nil || is != on || read("1-1") != want || read("2-1") != want {
			t.Errorf("on %v: is %v, %v; %s %s", on, is, err, read("1-1"), read("2-1"))
		}
	}
	// VBUS is there while one half gives it.
	if err := os.WriteFile(filepath.Join(root, devices, "2-1:1.0/2-1-port3/disable"), []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if on, err := port.On(t.Context()); !on || err != nil {
		t.Errorf("%v, %v", on, err)
	}
}

// hubs answers control transfers as two halves of a hub do.
type hubs struct {
	power map[string]bool // by file, of port 3
	log   []string
	fault error
	short bool
}

func (h *hubs) control(file string, s Setup, data []byte, timeout time.Duration) (int, error) {
	file = file[strings.Index(file, "bus/usb/"):]
	if timeout <= 0 || timeout > time.Second {
		return 0, fmt.Errorf("a timeout of %v", timeout)
	}
	if h.fault != nil {
		return 0, h.fault
	}
	switch s {
	case Setup{0x23, 1, 8, 3}, Setup{0x23, 3, 8, 3}:
		on := s.Request == 3
		h.power[file] = on
		h.log = append(h.log, fmt.Sprintf("%s %v", file, on))
		return 0, nil
	case Setup{0xa3, 0, 0, 3}:
		if h.short {
			return 2, nil
		}
		copy(data, []byte{3, 0, 0, 0}) // connected and enabled: no answer to the question
		if h.power[file] {
			data[1] = map[string]byte{"bus/usb/001/007": 1, "bus/usb/002/003": 2}[file]
		}
		return 4, nil
	}
	return 0, fmt.Errorf("an unknown request %+v", s)
}

func TestPortIsSwitchedByRequestsElse(t *testing.T) {
	const two, three = "bus/usb/001/007", "bus/usb/002/003"
	for name, c := range map[string]struct {
		companion string
		super     bool // the phone is on the SuperSpeed half
		want      []string
	}{
		"one half":       {"", false, []string{two + " false", two + " true"}},
		"phone on USB 2": {"2-1", false, []string{three + " false", two + " false", two + " true", three + " true"}},
		"phone on USB 3": {"2-1", true, []string{two + " false", three + " false", three + " true", two + " true"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := twoHalves(false)
			if c.super {
				files[devices+"2-1.3/devnum"] = "9\n"
			}
			h := &hubs{power: map[string]bool{two: true, three: true}}
			port := (&USB{Sysfs: tree(t, files), Devfs: "/dev", Control: h.control}).Port("1-1", c.companion, 3)
			for _, on := range []bool{false, true} {
				if err := port.Set(t.Context(), on); err != nil {
					t.Fatal(err)
				}
				if is, err := port.On(t.Context()); is != on || err != nil {
					t.Errorf("on %v: is %v, %v", on, is, err)
				}
			}
			if !slices.Equal(h.log, c.want) {
				t.Errorf("requests %q, want %q", h.log, c.want)
			}
		})
	}
}

// TestAHubThatTheKernelKeepsHoldsNobodyUp: its lock is held while a phone is tried that does not answer.
func TestAHubThatTheKernelKeepsHoldsNobodyUp(t *testing.T) {
	kept, asked := make(chan struct{}), make(chan struct{}, 10)
	u := &USB{Sysfs: tree(t, twoHalves(false)), Control: func(_ string, _ Setup, data []byte, _ time.Duration) (int, error) {
		asked <- struct{}{}
		<-kept
		data[1] = 1
		return 4, nil
	}}
	port := u.Port("1-1", "", 3)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := port.On(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it answers %v", err)
		}
		cancel()
	}
	if n := len(asked); n != 1 {
		t.Errorf("%d questions wait", n)
	}
	close(kept)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if on, err := port.On(ctx); !on || err != nil {
		t.Errorf("then it answers %v, %v", on, err)
	}
}

// TestWhatIsToldAHubThatTheKernelKeeps: a call ends in time, the next one waits for it, and one that has only asked when nobody waits any
// more switches nothing.
func TestWhatIsToldAHubThatTheKernelKeeps(t *testing.T) {
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 30*time.Millisecond)
	}
	for _, asks := range []bool{true, false} { // it waits when it asks, or when it writes
		given, wrote := make(chan struct{}), make(chan string, 10)
		u := &USB{Sysfs: tree(t, twoHalves(!asks))}
		u.write = func(path, value string) error {
			if asks {
				return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			<-given
			wrote <- value
			return writeAttribute(path, value)
		}
		u.Control = func(_ string, s Setup, _ []byte, _ time.Duration) (int, error) {
			if s.Request == getStatus {
				<-given
				return 4, nil
			}
			wrote <- "request"
			return 0, nil
		}
		port := u.Port("1-1", "", 3)
		for range 2 {
			ctx, cancel := soon()
			err := port.Set(ctx, false)
			kept, ok := errors.AsType[*BusyError](err)
			if !errors.Is(err, ErrKept) || !errors.Is(err, context.DeadlineExceeded) || !ok || kept.Late == asks || kept.Hub != "1-1" || kept.Port != 3 {
				t.Errorf("asks %v: %v", asks, err)
			}
			if _, err := port.On(ctx); !errors.Is(err, ErrKept) {
				t.Errorf("asks %v: while it waits the port says %v", asks, err)
			}
			if err := u.Wait(ctx); !errors.Is(err, ErrKept) {
				t.Errorf("asks %v: nothing runs: %v", asks, err)
			}
			cancel()
		}
		close(given)
		if err := u.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n, want := len(wrote), map[bool]int{false: 1}[asks]; n != want {
			t.Errorf("asks %v: it was switched %d times after nobody waited", asks, n)
		}
		if err := port.Set(t.Context(), true); err != nil {
			t.Errorf("asks %v: then %v", asks, err)
		}
	}
}

// TestWhoGivesUpKnowsWhatMaySwitchYet: a call that finds somebody waiting, and switches, has said so before.
func TestWhoGivesUpKnowsWhatMaySwitchYet(t *testing.T) {
	u := &USB{Sysfs: tree(t, twoHalves(true))}
	c := &call{}
	said := false
	asked := watched{t.Context(), func() { said = c.writes.Load() }}
	if err := u.Port("1-1", "", 3).(*usbPort).setHalf(asked, c, "1-1", false); err != nil || !said {
		t.Errorf("when it looked for the last time whether somebody waits, it had said that it switches: %v, %v", said, err)
	}
}

// watched is a context that tells of each look whether it has ended.
type watched struct {
	context.Context
	look func()
}

func (w watched) Err() error {
	w.look()
	return w.Context.Err()
}

func TestFaultsOfHubs(t *testing.T) {
	h := &hubs{power: map[string]bool{}, fault: syscall.EPIPE}
	u := &USB{Sysfs: tree(t, twoHalves(false)), Control: h.control}
	port := u.Port("1-1", "2-1", 3)
	if err := port.Set(t.Context(), false); !errors.Is(err, syscall.EPIPE) || strings.Count(err.Error(), "port 3 of the hub at") != 2 {
		t.Errorf("both halves must be tried: %v", err)
	}
	if _, err := port.On(t.Context()); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	h.fault, h.short = nil, true
	if _, err := port.On(t.Context()); err == nil || !strings.Contains(err.Error(), "2 bytes") {
		t.Error(err)
	}
	if err := u.Port("1-9", "", 1).Set(t.Context(), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hub that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := port.Set(ctx, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := (&USB{Devfs: t.TempDir(), Sysfs: u.Sysfs}).Port("1-1", "", 3).On(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the real usbfs, without the device's file: %v", err)
	}
}

func TestSysfsTellsOverCurrentAndGenerations(t *testing.T) {
	u := &USB{Sysfs: tree(t, map[string]string{
		devices + "1-1/devnum":                           "12\n",
		devices + "1-2/devnum":                           "twelve\n",
		devices + "1-1:1.0/1-1-port2/over_current_count": "3\n",
		devices + "1-1:1.0/1-1-port3/over_current_count": "-1\n",
	})}
	if n, ok := u.Generation("1-1"); n != 12 || !ok {
		t.Error(n, ok)
	}
	for _, path := range []string{"1-2", "1-3"} {
		if n, ok := u.Generation(path); ok {
			t.Errorf("%s: %d", path, n)
		}
	}
	if n, ok, err := u.OverCurrent("1-1", 2); n != 3 || !ok || err != nil {
		t.Error(n, ok, err)
	}
	if _, ok, err := u.OverCurrent("1-1", 3); ok || err == nil {
		t.Error(ok, err)
	}
	if _, ok, err := u.OverCurrent("1-1", 4); ok || err != nil {
		t.Error(ok, err)
	}
}

func TestOutletsOfABoard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board.toml")
	text := `name = "x"
[[hub]]
name = "A"
path = "1-1"
power = "line"
line = "HUB1"
active_low = true
[[hub]]
name = "B"
path = "1-2"
power = "ports"
default = "off"
[[hub]]
name = "C"
path = "1-3"
[[slot]]
number = 1
path = "1-1.1"
[[slot]]
number = 2
path = "1-1.4.1"
[[slot]]
number = 3
hub = "B"
port = 2
[[slot]]
number = 4
path = "1-3.1"
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := board.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Outlets(b, nil, &USB{}); err == nil || !strings.Contains(err.Error(), "hub A has no line") {
		t.Error(err)
	}
	k := gpiotest.New(gpiotest.Chip{Label: "x", Lines: []string{"HUB1"}, Persist: true})
	pin, err := gpio.New(k, nil).Output(gpio.Spec{Name: "HUB1", ActiveLow: true}, gpio.Initial{Active: true})
	if err != nil {
		t.Fatal(err)
	}
	outlets, err := Outlets(b, map[string]Pin{"A": pin}, &USB{})
	if err != nil || len(outlets) != 2 {
		t.Fatalf("%+v, %v", outlets, err)
	}
	a, port := outlets[0], outlets[1]
	if a.Name != "hub A" || !slices.Equal(a.Slots, []int{1, 2}) || a.Path != "1-1" || !a.Default || a.Settle != 3*time.Second {
		t.Errorf("%+v", a)
	}
	if port.Name != "hub B port 2" || !slices.Equal(port.Slots, []int{3}) || port.Path != "1-2.2" || port.HubPath != "1-2" || port.Default {
		t.Errorf("%+v", port)
	}
	for _, on := range []bool{false, true} {
		err := a.Switch.Set(t.Context(), on)
		is, readErr := a.Switch.On(t.Context())
		if err != nil || readErr != nil || is != on || k.State("HUB1") != map[bool]gpiotest.State{true: gpiotest.Low, false: gpiotest.High}[on] {
			t.Errorf("on %v: is %v, the line is %s; %v %v", on, is, k.State("HUB1"), err, readErr)
		}
	}
}

func TestAHubSaysWhatIsPluggedIn(t *testing.T) {
	root := tree(t, twoHalves(false))
	for _, test := range []struct {
		name   string
		status []byte
		err    error
		hub    string
		want   Answer
	}{
		{"something", []byte{0x03, 0x01, 0, 0}, nil, "1-1", Yes},
		{"something, and it is not enabled", []byte{0x01, 0x01, 1, 0}, nil, "1-1", Yes},
		{"nothing", []byte{0x00, 0x01, 1, 0}, nil, "1-1", No},
		{"half an answer", []byte{0x00, 0x01}, nil, "1-1", Unknown},
		{"no answer", nil, syscall.ETIMEDOUT, "1-1", Unknown},
		{"no such hub", []byte{0x00, 0x01, 1, 0}, nil, "1-9", Unknown},
	} {
		u := &USB{Sysfs: root, Control: func(_ string, s Setup, data []byte, _ time.Duration) (int, error) {
			if s != (Setup{0xa3, 0, 0, 3}) {
				t.Errorf("asked %+v", s)
			}
			return copy(data, test.status), test.err
		}}
		if got := u.Connected(t.Context(), test.hub, 3); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
