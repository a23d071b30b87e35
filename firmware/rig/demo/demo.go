// Package demo is the main job, shown: a rack of four simulated phones, on the emulated board or on
// this machine, on which two tasks run at the same time.
//
// On the board rackd reaches the phones through the guest kernel's USB devices only. Whether a task
// was really done is judged by what the app on the phone has noted, not by what rackd says.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

// Options say how the demo is run.
type Options struct {
	Native bool      // without the emulated board
	Out    string    // folder for the trajectories
	Stdout io.Writer // what people watch
}

// job is a task of the demo and how it is judged.
type job struct {
	slot int
	goal string
	done string // what the app notes when it is done
}

var jobs = []job{
	{1, "Search the shop for a kettle and put it in the basket", "basket: Kettle x1"},
	{3, "Send the message 'The new rack works' to Ana", "message sent to Ana: The new rack works"},
}

// slots are where the four phones sit.
var slots = map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-2.1", 4: "1-2.4"}

// Run runs the demo. It returns an error if anything was not as it should be.
func Run(ctx context.Context, o Options) error {
	begin := time.Now()
	var saying sync.Mutex // both jobs speak
	say := func(format string, args ...any) {
		saying.Lock()
		defer saying.Unlock()
		fmt.Fprintf(o.Stdout, "[%5.1fs] %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	phones, err := makePhones()
	if err != nil {
		return err
	}
	rack, err := start(ctx, o, phones, say)
	if err != nil {
		return err
	}
	defer func() {
		if err := rack.Close(); err != nil {
			say("clean-up: %v", err)
		}
	}()
	if err := show(ctx, rack, say); err != nil {
		return explain(err, rack)
	}
	if err := work(ctx, o, rack, phones, say); err != nil {
		return explain(err, rack)
	}
	say("done")
	return nil
}

// makePhones makes four phones that differ in Android, language and screen. The phones with work
// speak English, as their goals do.
func makePhones() (map[int]*rackrig.Phone, error) {
	specs := []rackrig.PhoneSpec{
		{Slot: 1, Android: 14, Language: "en"},
		{Slot: 2, Android: 9, Language: "zh", Width: 720, Height: 1280, Density: 320},
		{Slot: 3, Android: 11, Language: "en", Width: 1080, Height: 1920, Density: 420},
		{Slot: 4, Android: 15, Language: "ar"},
	}
	phones := map[int]*rackrig.Phone{}
	for _, s := range specs {
		s.Port, s.Serial = slots[s.Slot], fmt.Sprintf("SIM%04d", s.Slot)
		s.Seed = int64(s.Slot)
		s.AcceptAfter = time.Second // somebody accepts the rack's key
		p, err := rackrig.Simulate(s)
		if err != nil {
			return nil, err
		}
		phones[s.Slot] = p
	}
	return phones, nil
}

// start brings up rackd with the phones.
func start(ctx context.Context, o Options, phones map[int]*rackrig.Phone, say func(string, ...any)) (rackrig.Rack, error) {
	if o.Native {
		dir, err := os.MkdirTemp("", "demo")
		if err != nil {
			return nil, err
		}
		var all []*rackrig.Phone
		for _, p := range phones {
			all = append(all, p)
		}
		say("starting rackd on this machine, phones over byte streams")
		n, err := rackrig.StartNative(ctx, dir, all)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return nativeRack{n, dir}, nil
	}
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		return nil, err
	}
	say("building rackd for the board, then booting it: arm64, Linux, two USB hubs")
	b, err := rackrig.BootBoard(ctx, kit, rackrig.BoardSpec{
		Hubs: []rig.Hub{{Path: "1-1", Ports: 4}, {Path: "1-2", Ports: 4}}, Slots: slots,
	})
	if err != nil {
		if b != nil {
			err = errors.Join(explain(err, b), b.Close())
		}
		return nil, err
	}
	say("rackd runs on the board; plugging in four phones")
	var plugging sync.WaitGroup
	faults := make(chan error, len(phones))
	for _, p := range phones {
		plugging.Go(func() {
			plugged, err := b.Plug(ctx, p.Port, p.USB)
			if err == nil {
				_, err = b.WaitPlugged(ctx, plugged.Port(), p.Serial)
			}
			faults <- err
		})
	}
	plugging.Wait()
	close(faults)
	for err := range faults {
		if err != nil {
			return nil, errors.Join(explain(err, b), b.Close())
		}
	}
	return b, nil
}

// nativeRack removes its folder when it is closed.
type nativeRack struct {
	*rackrig.Native
	dir string
}

func (n nativeRack) Close() error {
	return errors.Join(n.Native.Close(), os.RemoveAll(n.dir))
}

// show waits for the phones and prints where they are.
func show(ctx context.Context, rack rackrig.Rack, say func(string, ...any)) error {
	states, err := rackrig.WaitState(ctx, rack, action.Ready, 1, 2, 3, 4)
	if err != nil {
		return err
	}
	for _, s := range states {
		say("slot %d  port %-6s  %s  Android %s  %s", s.Slot, s.Port, s.Serial, s.Android, s.State)
	}
	return nil
}

// work runs the jobs at the same time, judges them and brings their trajectories home.
func work(ctx context.Context, o Options, rack rackrig.Rack, phones map[int]*rackrig.Phone, say func(string, ...any)) error {
	var running sync.WaitGroup
	results := make([]error, len(jobs))
	for i, j := range jobs {
		running.Go(func() { results[i] = do(ctx, o, rack, phones[j.slot], j, say) })
	}
	running.Wait()
	return errors.Join(results...)
}

func do(ctx context.Context, o Options, rack rackrig.Rack, phone *rackrig.Phone, j job, say func(string, ...any)) error {
	say("slot %d  goal: %s", j.slot, j.goal)
	folder := filepath.Join(rack.Scratch(), fmt.Sprintf("trajectory-%d", j.slot))
	out := &lines{each: func(line string) { say("slot %d  %s", j.slot, line) }}
	exit, err := rack.Ctl(ctx, out, "task", "run", "--slot", fmt.Sprint(j.slot), "--goal", j.goal, "--trajectory", folder)
	if err != nil {
		return fmt.Errorf("slot %d: %w", j.slot, err)
	}
	if exit != 0 {
		return fmt.Errorf("slot %d: the task ended with exit code %d", j.slot, exit)
	}
	if !phone.Did(j.done) {
		return fmt.Errorf("slot %d: rackd says the task is done, but the app has not noted %q; it noted %q", j.slot, j.done, phone.Screen.Journal())
	}
	say("slot %d  the app confirms: %s", j.slot, j.done)
	home := filepath.Join(o.Out, fmt.Sprintf("slot-%d", j.slot))
	if err := errors.Join(os.MkdirAll(o.Out, 0o755), os.RemoveAll(home)); err != nil {
		return err
	}
	if err := rack.Fetch(ctx, folder, home); err != nil {
		return fmt.Errorf("slot %d: fetch the trajectory: %w", j.slot, err)
	}
	say("slot %d  look through it: %s", j.slot, filepath.Join(home, "index.html"))
	return nil
}

// explain adds the end of rackd's log to an error.
func explain(err error, rack rackrig.Rack) error {
	log := strings.Split(strings.TrimSpace(rack.Log()), "\n")
	log = log[max(0, len(log)-40):]
	return fmt.Errorf("%w\nthe end of the log:\n%s", err, strings.Join(log, "\n"))
}

// lines cuts what is written into lines.
type lines struct {
	each func(line string)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.each(strings.TrimRight(string(line), "\r"))
		l.rest = rest
	}
}
