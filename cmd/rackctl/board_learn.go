package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/hal/board"
	"phonerack/usb/bus"
)

// lookEvery is the time between two looks at the bus: a phone is taken for there after two.
const lookEvery = 500 * time.Millisecond

type boardLearn struct {
	File    string        `arg:"" help:"The board file; slots are added to it, the rest stays as it is."`
	Slots   int           `help:"Number of the last slot; without it, go on until you quit." placeholder:"N"`
	First   int           `help:"Number of the first slot; without it, the one after those in the file." placeholder:"N"`
	Columns int           `help:"Slots in a row of the rack: rows and columns are written too." placeholder:"N"`
	Name    string        `help:"Name of the board, when the file is new; without it, the file's own." placeholder:"TEXT"`
	Model   string        `help:"Board that a new file builds upon, of rackctl board models." default:"generic"`
	Wait    time.Duration `help:"How long to wait for each phone." default:"2m"`
	Sysfs   string        `help:"Where sysfs is mounted." default:"/sys" placeholder:"PATH"`
}

// Validate is called by kong.
func (c boardLearn) Validate() error {
	switch {
	case c.Slots < 0 || c.First < 0 || c.Columns < 0:
		return errors.New("slots and columns count from 1")
	case c.Wait < time.Second || c.Wait > time.Hour:
		return fmt.Errorf("--wait %v: choose 1s to 1h", c.Wait)
	}
	return nil
}

func (c boardLearn) Run(s *session) error {
	name := c.Name
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))
	}
	draft, err := board.OpenDraft(c.File, name, c.Model)
	if err != nil {
		for _, f := range faults(err) {
			fmt.Fprintln(s.stderr, table.Plain(f.Error()))
		}
		return exitCode(exitRefused)
	}
	w := &walk{
		draft: draft, last: c.Slots, columns: c.Columns, wait: c.Wait, out: s.stdout, json: s.json,
		look: func() ([]string, error) { return phonePorts(c.Sysfs) }, orders: orders(s.stdin),
	}
	return w.run(s.ctx, c.First)
}

// phonePorts lists the ports that hold a phone. A phone that cannot be read just now is no reason to stop.
func phonePorts(sysfs string) ([]string, error) {
	phones, err := bus.Scan(sysfs)
	if len(phones) == 0 && err != nil {
		return nil, err
	}
	var ports []string
	for _, p := range phones {
		ports = append(ports, p.Path)
	}
	return ports, nil
}

// orders gives what is typed, line by line; the channel is closed at its end. Nothing can end a read
// from a terminal, so the goroutine ends with the input or with rackctl.
func orders(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		for scan.Scan() {
			lines <- strings.ToLower(strings.TrimSpace(scan.Text()))
		}
	}()
	return lines
}

// walk goes with somebody from slot to slot.
type walk struct {
	draft   *board.Draft
	lesson  *board.Lesson
	last    int // number of the last slot, 0 for no end
	columns int
	wait    time.Duration
	look    func() ([]string, error)
	orders  <-chan string // nil once it has ended
	out     io.Writer
	json    bool

	done []board.Slot // what was learned in this walk
}

// learnEvent is a line of board learn --json. Event is one of ask, learned, taken, several, refused,
// skipped, undone, unseen and end.
type learnEvent struct {
	Event string   `json:"event"`
	Slot  int      `json:"slot,omitempty"` // that is asked for, or learned
	Port  string   `json:"port,omitempty"`
	Ports []string `json:"ports,omitempty"` // several
	Taken []int    `json:"taken,omitempty"` // slots that the phone was plugged into instead
	Text  string   `json:"text"`            // for people
}

func (w *walk) say(e learnEvent, format string, args ...any) {
	e.Text = table.Plain(fmt.Sprintf(format, args...))
	if w.json {
		json.NewEncoder(w.out).Encode(e)
		return
	}
	fmt.Fprintln(w.out, e.Text)
}

// run asks for slot after slot. What was learned is in the file whatever ends it.
func (w *walk) run(ctx context.Context, first int) error {
	present, err := w.look()
	if err != nil {
		return err
	}
	w.lesson = board.NewLesson(w.draft.Board().Slots, present)
	if !w.json {
		fmt.Fprintln(w.out, "Plug one phone with USB debugging into each slot as it is asked for. Enter skips a slot, u takes the last one back, q ends.")
	}
	n := w.next(max(first, 1))
	for w.last == 0 || n <= w.last {
		answer, err := w.slot(ctx, n)
		if err != nil {
			w.end(": run the command again to go on")
			return err
		}
		switch answer {
		case quit:
			w.end("")
			return nil
		case back:
			if n, err = w.undo(n); err != nil {
				return err
			}
		default:
			n = w.next(n + 1)
		}
	}
	w.end("")
	return nil
}

func (w *walk) end(more string) {
	if len(w.done) == 0 {
		w.say(learnEvent{Event: "end"}, "No slot was learned%s.", more)
		return
	}
	w.say(learnEvent{Event: "end"}, "%d slots were learned and are in the file%s.", len(w.done), more)
}

// next is the first number from n on that is no slot of the file.
func (w *walk) next(n int) int {
	for {
		if _, taken := w.draft.Board().Slot(n); !taken {
			return n
		}
		n++
	}
}

func (w *walk) undo(n int) (int, error) {
	undone, err := w.draft.Undo()
	if err != nil || !undone {
		if err == nil {
			w.say(learnEvent{Event: "undone"}, "nothing was learned yet")
		}
		return n, err
	}
	s := w.done[len(w.done)-1]
	w.done = w.done[:len(w.done)-1]
	w.lesson.Forget(s.Path)
	w.say(learnEvent{Event: "undone", Slot: s.Number, Port: s.Path}, "slot %d is forgotten: unplug its phone", s.Number)
	return s.Number, nil
}

type answer int

const (
	learned answer = iota
	skipped
	back
	quit
)

// errUnseen ends the walk when nobody plugs anything.
var errUnseen = errors.New("no phone came: check the cable and that USB debugging is on, then run the command again")

// slot waits for the phone in slot n.
func (w *walk) slot(ctx context.Context, n int) (answer, error) {
	w.say(learnEvent{Event: "ask", Slot: n}, "Slot %d: plug the phone in.", n)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	limit := time.NewTimer(w.wait)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return quit, ctx.Err()
		case <-limit.C:
			w.say(learnEvent{Event: "unseen", Slot: n}, "No phone came to slot %d within %v.", n, w.wait)
			return quit, errUnseen
		case order, ok := <-w.orders:
			if !ok {
				w.orders = nil // nobody types: phones alone go on
				continue
			}
			if a, ok := w.order(n, order); ok {
				return a, nil
			}
		case <-tick.C:
			present, err := w.look()
			if err != nil {
				return quit, err
			}
			if w.sight(n, w.lesson.Look(present)) {
				return learned, nil
			}
		}
	}
}

func (w *walk) order(n int, order string) (answer, bool) {
	switch order {
	case "", "s":
		w.say(learnEvent{Event: "skipped", Slot: n}, "Slot %d is left out.", n)
		return skipped, true
	case "u":
		return back, true
	case "q":
		return quit, true
	}
	w.say(learnEvent{Event: "ask", Slot: n}, "Slot %d: plug the phone in, or type Enter, u or q.", n)
	return 0, false
}

// sight tells what a look has found, and whether slot n is learned with it.
func (w *walk) sight(n int, s board.Sight) bool {
	if len(s.Taken) > 0 {
		w.say(learnEvent{Event: "taken", Slot: n, Taken: s.Taken}, "That is slot %s, which is known: plug the phone into slot %d. If that is where it is, the other was wrong: type u until it is asked for again.", list(s.Taken), n)
	}
	if len(s.Several) > 0 {
		w.say(learnEvent{Event: "several", Slot: n, Ports: s.Several}, "%d phones are at ports that are no slot (%s): leave the one in slot %d and unplug the others.", len(s.Several), strings.Join(s.Several, ", "), n)
	}
	if s.Found == "" {
		return false
	}
	slot := board.Slot{Number: n, Path: s.Found}
	if w.columns > 0 {
		slot.Row, slot.Column = (n-1)/w.columns+1, (n-1)%w.columns+1
	}
	if err := w.draft.Add(slot); err != nil {
		w.lesson.Forget(s.Found) // until it is plugged in anew
		for _, f := range faults(err) {
			text := f.Error()
			if fault, ok := errors.AsType[board.Fault](f); ok {
				text = fault.Text
			}
			w.say(learnEvent{Event: "refused", Slot: n, Port: s.Found}, "Port %s cannot be slot %d: %s.", s.Found, n, text)
		}
		return false
	}
	w.lesson.Learned(s.Found, n)
	w.done = append(w.done, slot)
	w.say(learnEvent{Event: "learned", Slot: n, Port: s.Found}, "Slot %d is port %s.", n, s.Found)
	return true
}

func list(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
