// Package demo is the main job, shown: a cloud, and a rack of four simulated phones, on the emulated
// board or on this machine, on which two tasks run at the same time.
//
// The tasks are submitted to rackcloud; rackd claims them and asks for each decision over MQTT. On
// the board rackd reaches the phones through the guest kernel's USB devices only. Whether a task
// was really done is judged by what the app on the phone has noted, not by what rackd or rackcloud says.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
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
	"phonerack/firmware/rig/cloudrig"
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
	s := &stage{o: o, phones: phones, say: say}
	defer s.close()
	if err := s.raise(ctx); err != nil {
		return err
	}
	if err := s.show(ctx); err != nil {
		return s.explain(err)
	}
	if err := s.work(ctx); err != nil {
		return s.explain(err)
	}
	say("done")
	return nil
}

// stage is what the demo plays on.
type stage struct {
	o      Options
	phones map[int]*rackrig.Phone
	say    func(string, ...any)

	dir   string
	cloud *cloudrig.Cloud
	rack  rackrig.Rack
}

func (s *stage) close() {
	var errs []error
	if s.rack != nil {
		errs = append(errs, s.rack.Close())
	}
	if s.cloud != nil {
		errs = append(errs, s.cloud.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	if err := errors.Join(errs...); err != nil {
		s.say("clean-up: %v", err)
	}
}

// raise brings up the cloud and the rack.
func (s *stage) raise(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "demo"); err != nil {
		return err
	}
	name := "127.0.0.1"
	if !s.o.Native {
		name = rig.HostAddress
	}
	s.say("building rackcloud and starting it: MQTT broker and SQLite inside, rules as its provider")
	if s.cloud, err = cloudrig.Start(ctx, cloudrig.Options{Dir: filepath.Join(s.dir, "cloud"), Names: []string{name}}); err != nil {
		return err
	}
	if err := s.cloud.Script(ctx); err != nil {
		return err
	}
	bundle, err := s.cloud.AddRack(ctx, "demo")
	if err != nil {
		return err
	}
	if s.rack, err = s.start(ctx, bundle); err != nil {
		return err
	}
	return s.online(ctx)
}

// online waits until the rack has greeted its cloud.
func (s *stage) online(ctx context.Context) error {
	for {
		var out bytes.Buffer
		var status struct {
			Link struct {
				State string `json:"state"`
			} `json:"link"`
		}
		exit, err := s.rack.Ctl(ctx, &out, "link", "status", "--json")
		if err == nil && exit == 0 && json.Unmarshal(out.Bytes(), &status) == nil && status.Link.State == "online" {
			s.say("the rack is online")
			return nil
		}
		select {
		case <-ctx.Done():
			return s.explain(fmt.Errorf("the rack does not reach its cloud: %s: %w", strings.TrimSpace(out.String()), ctx.Err()))
		case <-time.After(300 * time.Millisecond):
		}
	}
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

const byCloud = "\n[planner]\ntransport = \"cloud\"\n[cloud]\nidentity = %q\n"

// start brings up rackd with the phones.
func (s *stage) start(ctx context.Context, bundle string) (rackrig.Rack, error) {
	if s.o.Native {
		var all []*rackrig.Phone
		for _, p := range s.phones {
			all = append(all, p)
		}
		s.say("starting rackd on this machine, phones over byte streams")
		programs, err := rackrig.BuildNative(ctx, filepath.Join(s.dir, "bin"))
		if err != nil {
			return nil, err
		}
		n, err := rackrig.StartNative(ctx, programs, s.dir, all, fmt.Sprintf(byCloud, bundle))
		if err != nil {
			return nil, err
		}
		return n, nil
	}
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		return nil, err
	}
	s.say("building rackd for the board, then booting it: arm64, Linux, two USB hubs, a network card")
	b, err := rackrig.BootBoard(ctx, kit, rackrig.BoardSpec{
		Hubs: []rig.Hub{{Path: "1-1", Ports: 4}, {Path: "1-2", Ports: 4}}, Slots: slots,
		Config: fmt.Sprintf(byCloud, rackrig.GuestBundle), Bundle: bundle,
	})
	if err != nil {
		if b != nil {
			err = errors.Join(explain(err, b), b.Close())
		}
		return nil, err
	}
	s.say("rackd runs on the board; plugging in four phones")
	var plugging sync.WaitGroup
	faults := make(chan error, len(s.phones))
	for _, p := range s.phones {
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

// show waits for the phones and prints where they are.
func (s *stage) show(ctx context.Context) error {
	states, err := rackrig.WaitState(ctx, s.rack, action.Ready, 1, 2, 3, 4)
	if err != nil {
		return err
	}
	for _, one := range states {
		s.say("slot %d  port %-6s  %s  Android %s  %s", one.Slot, one.Port, one.Serial, one.Android, one.State)
	}
	return nil
}

// work runs the jobs at the same time, judges them and brings their trajectories home.
func (s *stage) work(ctx context.Context) error {
	var running sync.WaitGroup
	results := make([]error, len(jobs))
	for i, j := range jobs {
		running.Go(func() {
			if err := s.do(ctx, j); err != nil {
				results[i] = fmt.Errorf("slot %d: %w", j.slot, err)
			}
		})
	}
	running.Wait()
	return errors.Join(results...)
}

func (s *stage) do(ctx context.Context, j job) error {
	s.say("slot %d  rackcloud task submit --slot %d --goal %q", j.slot, j.slot, j.goal)
	id, err := s.cloud.Submit(ctx, "--slot", fmt.Sprint(j.slot), "--goal", j.goal)
	if err != nil {
		return err
	}
	local, err := s.claimed(ctx, id)
	if err != nil {
		return err
	}
	folder := filepath.Join(s.rack.Scratch(), fmt.Sprintf("trajectory-%d", j.slot))
	out := &lines{each: func(line string) { s.say("slot %d  %s", j.slot, line) }}
	exit, err := s.rack.Ctl(ctx, out, "task", "watch", local, "--trajectory", folder)
	if err != nil {
		return err
	}
	if exit != 0 {
		return fmt.Errorf("the task ended with exit code %d", exit)
	}
	told, err := s.cloud.Await(ctx, id)
	if err != nil {
		return err
	}
	if told.State != "succeeded" || told.Attempt != 1 {
		return fmt.Errorf("the cloud says that the task is %s after %d attempts", told.State, told.Attempt)
	}
	if err := s.decided(ctx, j, id); err != nil {
		return err
	}
	if phone := s.phones[j.slot]; !phone.Did(j.done) {
		return fmt.Errorf("the task is said to be done, but the app has not noted %q; it noted %q", j.done, phone.Screen.Journal())
	}
	s.say("slot %d  the app confirms: %s", j.slot, j.done)
	home := filepath.Join(s.o.Out, fmt.Sprintf("slot-%d", j.slot))
	if err := errors.Join(os.MkdirAll(s.o.Out, 0o755), os.RemoveAll(home)); err != nil {
		return err
	}
	if err := s.rack.Fetch(ctx, folder, home); err != nil {
		return fmt.Errorf("fetch the trajectory: %w", err)
	}
	s.say("slot %d  look through it: %s", j.slot, filepath.Join(home, "index.html"))
	return nil
}

// claimed waits until the rack has a task of the cloud and returns the rack's own id of it.
func (s *stage) claimed(ctx context.Context, id string) (string, error) {
	for {
		var out bytes.Buffer
		var list action.TaskList
		exit, err := s.rack.Ctl(ctx, &out, "task", "list", "--json")
		if err == nil && exit == 0 && json.Unmarshal(out.Bytes(), &list) == nil {
			for _, t := range list.Tasks {
				if t.CloudTask == id {
					return t.ID, nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the rack does not claim task %s: %w", id, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// decided wants the cloud's log of the task's decisions, without gaps.
func (s *stage) decided(ctx context.Context, j job, id string) error {
	var log []cloudrig.Decision
	if err := s.cloud.Ask(ctx, &log, "decisions", id); err != nil {
		return err
	}
	for i, d := range log {
		if d.Step != i {
			return fmt.Errorf("decision %d has the index %d", i, d.Step)
		}
	}
	if len(log) == 0 {
		return errors.New("the cloud has no decision of the task")
	}
	s.say("slot %d  rackcloud decisions: %d, the last is %s", j.slot, len(log), log[len(log)-1].Tool)
	return nil
}

// explain adds the end of both logs to an error.
func (s *stage) explain(err error) error {
	if s.rack != nil {
		err = explain(err, s.rack)
	}
	return fmt.Errorf("%w\nthe end of rackcloud's log:\n%s", err, tail(s.cloud.Log()))
}

func tail(log string) string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(all[max(0, len(all)-40):], "\n")
}

// explain adds the end of rackd's log to an error.
func explain(err error, rack rackrig.Rack) error {
	return fmt.Errorf("%w\nthe end of the log:\n%s", err, tail(rack.Log()))
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
