package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/hal/board"
)

func rackctl(t *testing.T, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, fault bytes.Buffer
	exit = run(t.Context(), args, strings.NewReader(""), &out, &fault)
	return exit, out.String(), fault.String()
}

func writeBoard(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "board.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBoardCheckSaysEachFaultAndHowFullTheControllerIs(t *testing.T) {
	good := writeBoard(t, "model = \"emulated\"\n[[slot]]\nnumber = 1\nhub = \"1\"\nport = 2\nlabel = \"A1\"\n")
	exit, out, fault := rackctl(t, "board", "check", good)
	if exit != 0 || !strings.Contains(out, "qemu-xhci: 4 of 64 devices") || !strings.Contains(out, "line HUB1_PWR, with its hub") {
		t.Errorf("exit %d\n%s%s", exit, out, fault)
	}
	bad := writeBoard(t, "[[slot]]\nnumber = 0\npath = \"1-1\"\n[[slot]]\nnumber = 2\npath = \"x\"\n")
	exit, out, fault = rackctl(t, "board", "check", bad)
	if exit != exitRefused || out != "" || strings.Count(fault, "\n") != 3 || !strings.Contains(fault, bad+":6:1: port path") {
		t.Errorf("exit %d\n%s%s", exit, out, fault)
	}
	exit, out, _ = rackctl(t, "--json", "board", "check", bad)
	var r boardReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || exit != exitRefused || r.OK || len(r.Faults) != 3 || r.Faults[1].Line != 2 {
		t.Errorf("exit %d, %v\n%s", exit, err, out)
	}
}

func TestBoardCheckRefusesMorePhonesThanAPi4CanAddress(t *testing.T) {
	text := "model = \"rpi4\"\n"
	for hub := range 4 {
		for port := range 7 {
			text += fmt.Sprintf("[[slot]]\nnumber = %d\npath = \"1-1.%d.%d\"\n", hub*7+port+1, hub+1, port+1)
		}
	}
	exit, _, fault := rackctl(t, "board", "check", writeBoard(t, text))
	if exit != exitRefused || !strings.Contains(fault, "controller VL805 addresses 32 devices, hubs included, and there are 5 hubs, 0 others and 28 phones; remove 1 slots") {
		t.Errorf("exit %d: %s", exit, fault)
	}
}

// lessonBench is a bus that a test plugs phones into, and somebody at the keyboard.
type lessonBench struct {
	mu     sync.Mutex // guards ports and fault
	ports  []string
	fault  error
	orders chan string
	out    bytes.Buffer
	walk   *walk
	file   string
}

// learn runs a walk while story happens; both are in a bubble of false time.
func learn(t *testing.T, file string, last int, story func(b *lessonBench)) (*lessonBench, error) {
	t.Helper()
	b := &lessonBench{orders: make(chan string), file: file}
	var err error
	synctest.Test(t, func(t *testing.T) {
		draft, openErr := board.OpenDraft(file, "bench", "emulated")
		if openErr != nil {
			t.Fatal(openErr)
		}
		b.orders = make(chan string)
		b.walk = &walk{
			draft: draft, last: last, columns: 2, wait: time.Minute, out: &b.out, json: true, orders: b.orders,
			look: b.look,
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = b.walk.run(ctx, 0)
		}()
		story(b)
		synctest.Wait()
		cancel()
		<-done
	})
	return b, err
}

func (b *lessonBench) look() ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ports), b.fault
}

// plug leaves exactly these ports with a phone, and gives the walk time to look.
func (b *lessonBench) plug(ports ...string) {
	synctest.Wait()
	b.mu.Lock()
	b.ports = ports
	b.mu.Unlock()
	time.Sleep(3 * lookEvery)
	synctest.Wait()
}

func (b *lessonBench) events() (names []string) {
	decoder := json.NewDecoder(bytes.NewReader(b.out.Bytes()))
	for {
		var e learnEvent
		if decoder.Decode(&e) != nil {
			return names
		}
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %d %s", e.Event, e.Slot, e.Port)))
	}
}

func TestLearningGoesFromSlotToSlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "board.toml")
	b, err := learn(t, file, 3, func(b *lessonBench) {
		b.plug("1-1.1")
		b.plug()
		b.plug("1-1.1")          // again where slot 1 is
		b.plug("1-1.2", "1-1.3") // two at once
		b.plug("1-1.3")
		b.orders <- "u" // that was slot 3
		b.plug()
		b.plug("1-1.2")
		b.plug("1-1.2", "1-1.3") // the first may stay
	})
	if err != nil {
		t.Error(err)
	}
	want := []string{
		"ask 1", "learned 1 1-1.1", "ask 2", "taken 2", "several 2", "learned 2 1-1.3", "ask 3", "undone 2 1-1.3",
		"ask 2", "learned 2 1-1.2", "ask 3", "learned 3 1-1.3", "end 0",
	}
	if got := b.events(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	loaded, err := board.Load(file)
	if err != nil || len(loaded.Slots) != 3 || loaded.Slots[2].Path != "1-1.3" || loaded.Slots[2].Row != 2 || loaded.Slots[2].Column != 1 {
		t.Errorf("%+v, %v", loaded, err)
	}
}

func TestLearningLosesNothingWhenItIsInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "board.toml")
	_, err := learn(t, file, 3, func(b *lessonBench) { b.plug("1-1.1") }) // and Ctrl-C
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b, err := learn(t, file, 3, func(b *lessonBench) {
		b.plug("1-1.2")
		time.Sleep(2 * time.Minute) // nobody goes on
	})
	if !errors.Is(err, errUnseen) {
		t.Error(err)
	}
	if got, want := b.events(), []string{"ask 2", "learned 2 1-1.2", "ask 3", "unseen 3", "end 0"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if loaded, err := board.Load(file); err != nil || len(loaded.Slots) != 2 {
		t.Errorf("%+v, %v", loaded, err)
	}
}

func TestLearningRefusesAPortThatIsSomethingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "board.toml")
	b, err := learn(t, file, 0, func(b *lessonBench) {
		b.plug("1-1")  // where the model has a hub
		b.orders <- "" // skip
		b.plug("1-2.1")
		b.orders <- "q"
	})
	if err != nil {
		t.Error(err)
	}
	if got, want := b.events(), []string{"ask 1", "refused 1 1-1", "skipped 1", "ask 2", "learned 2 1-2.1", "ask 3", "end 0"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLearningStopsWhenTheBusCannotBeRead(t *testing.T) {
	fault := errors.New("no USB")
	b, err := learn(t, filepath.Join(t.TempDir(), "board.toml"), 0, func(b *lessonBench) {
		synctest.Wait()
		b.mu.Lock()
		b.fault = fault
		b.mu.Unlock()
		time.Sleep(time.Second)
	})
	if !errors.Is(err, fault) {
		t.Errorf("%v\n%s", err, b.out.String())
	}
}
