package bustest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

func retainedDown(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	r := b.Connect(t, Login{Rack: "r3"})
	for _, k := range []wire.Kind{wire.KindDesired, wire.KindPlan, wire.KindCommand} {
		if err := c.Publish(t.Context(), down("r3", k), []byte(k)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.Receive(t, 3) {
		if m.Retained() {
			t.Errorf("%s is marked as retained to who was there", m.Topic())
		}
	}
	r.Leave()
	r = b.Connect(t, Login{Rack: "r3"})
	r.Receive(t, 1)
	time.Sleep(soon)
	if m := r.Got(); len(m) != 1 || !m[0].Retained() || string(m[0].Payload()) != "desired" {
		t.Errorf("who comes later gets %d messages", len(m))
	}
	r.Leave()
	if err := c.Publish(t.Context(), down("r3", wire.KindDesired), nil); err != nil {
		t.Fatal(err)
	}
	r = b.Connect(t, Login{Rack: "r3"})
	if err := c.Publish(t.Context(), down("r3", wire.KindPlan), []byte("last")); err != nil {
		t.Fatal(err)
	}
	if m := r.Receive(t, 1); string(m[0].Payload()) != "last" {
		t.Errorf("the removed configuration still comes: %s", m[0].Payload())
	}
}

func retainedUp(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	Ready(t, c)
	r := b.Connect(t, Login{Rack: "r4"})
	first, second := fmt.Sprintf("1 %x", rand.Uint64()), fmt.Sprintf("2 %x", rand.Uint64())
	r.Send(t, wire.KindState, []byte(first))
	var served, seen Record
	Serve(t, c, served.Handle, wire.KindState)
	stop := Observe(t, c, seen.Handle)
	Eventually(t, patience, "the retained state is observed", func() bool { return seen.Has(first) })
	r.Send(t, wire.KindState, []byte(second))
	Eventually(t, patience, "the new state is observed and served", func() bool { return seen.Has(second) && served.Has(second) })
	if served.Has(first) {
		t.Error("a retained state was served")
	}
	for _, f := range seen.Frames() {
		switch data := string(f.Data); {
		case data == first && !f.Retained, data == second && f.Retained:
			t.Errorf("state %s is marked retained: %t", data, f.Retained)
		}
	}
	stop()
	var again Record
	Observe(t, c, again.Handle)
	Eventually(t, patience, "who observes later gets the last state", func() bool { return again.Has(second) })
	if again.Has(first) {
		t.Error("an old state came")
	}
}

// willAndBirth is the race that leaves a rack offline for ever: the broker finds out late that the old connection is dead, and its
// will follows the birth of the new one. Both arrive, in whatever order, for they carry numbers. One exception is harmless: where the
// new connection takes the old one over before that is found dead, NATS drops the will.
func willAndBirth(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var served, seen Record
	Serve(t, c, served.Handle, wire.KindState)
	Observe(t, c, seen.Handle)
	both := func(data string) func() bool {
		return func() bool { return served.Has(data) && seen.Has(data) }
	}
	for i := range 6 {
		race := i%2 == 1
		will, birth := fmt.Sprintf("offline %d %x", i, rand.Uint64()), fmt.Sprintf("online %d %x", i+1, rand.Uint64())
		old := b.Connect(t, Login{Rack: "r5", Will: &Will{"pr/v1/t1/r5/up/state", will, true}})
		old.Cut()
		if !race {
			Eventually(t, patience, "the will is served and observed", both(will))
		}
		var young *Rack
		Eventually(t, patience, "the rack connects again", func() bool { // a broker may hold off an id that flaps
			var err error
			young, err = b.Dial(Login{Rack: "r5"})
			return err == nil
		})
		young.Send(t, wire.KindState, []byte(birth))
		Eventually(t, patience, "the birth is served and observed", both(birth))
		young.Leave()
		if served.Has(will) != seen.Has(will) {
			Eventually(t, patience, "a will is served and observed, or neither", both(will))
		}
	}
}

// screensAreInNoStore looks through all files of the broker for what a plan frame held, while the cloud serves, while it is
// away, and after. The retained state, which is looked for in the same way, proves that the search finds things where the
// store is not encrypted.
func screensAreInNoStore(t *testing.T, b *Broker) {
	secret, state := marker(), marker()
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	stop := Serve(t, c, got.Handle, wire.KindPlan)
	r := b.Connect(t, Login{Rack: "r6", Keep: true})
	r.Send(t, wire.KindState, state)
	frame := append(bytes.Repeat([]byte{7}, 50_000), secret...)
	for range 10 {
		r.Send(t, wire.KindPlan, frame)
	}
	Eventually(t, patience, "plans are handled", func() bool { return len(got.Frames()) == 10 })
	stop()
	for range 10 {
		r.Send(t, wire.KindPlan, frame)
	}
	if b.Settle != nil {
		b.Settle(t)
	}
	if b.Encrypted {
		if files := find(t, b.Dirs, state); len(files) > 0 {
			t.Errorf("the state is in %s", files)
		}
	} else {
		Eventually(t, patience, "the retained state is in the store", func() bool { return len(find(t, b.Dirs, state)) > 0 })
	}
	for _, file := range find(t, b.Dirs, secret) {
		t.Errorf("the plan frame is in %s", file)
	}
}

// marker is content that is nowhere else.
func marker() []byte {
	m := make([]byte, 48)
	for i := range m {
		m[i] = byte(rand.Uint32())
	}
	return m
}

// find gives the files below dirs that have the bytes in them, as they are or in base64.
func find(t testing.TB, dirs []string, what []byte) []string {
	t.Helper()
	forms := [][]byte{what}
	for skip := range 3 { // the alignment of base64 to what is before is not known
		forms = append(forms, []byte(base64.StdEncoding.EncodeToString(what[skip:skip+3*((len(what)-skip)/3)])))
	}
	var files []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil // a file that has gone while we looked
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			for _, f := range forms {
				if bytes.Contains(data, f) {
					files = append(files, path)
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// subscriptionsComeBack ends the broker, or a node of it, in the middle of a load. A rack sends a frame until it is answered, as racks
// do; each has to be answered in the end, and no call needs to be made again.
func subscriptionsComeBack(t *testing.T, b *Broker) {
	if b.Restart == nil {
		t.Log("this broker ends with the process that has the bus")
		return
	}
	c := b.Open(t, fresh(), bus.Limits{})
	var seen Record
	Serve(t, c, answerWith(c), wire.KindTask, wire.KindPlan)
	Observe(t, c, seen.Handle)
	const racks, frames = 4, 60
	var all sync.WaitGroup
	answered := make([]int, racks)
	for i := range racks {
		rack := fmt.Sprintf("r%d", 10+i)
		all.Go(func() { answered[i] = b.insist(t, rack, frames, 15*time.Millisecond) })
	}
	time.Sleep(300 * time.Millisecond)
	b.Restart(t)
	all.Wait()
	for i, n := range answered {
		if n != frames {
			t.Errorf("rack %d: %d of %d frames were answered", i, n, frames)
		}
	}
	Ready(t, c)
	r := b.Connect(t, Login{Rack: "r10"})
	last := fmt.Sprintf("%x", rand.Uint64())
	r.Send(t, wire.KindState, []byte(last))
	Eventually(t, patience, "states are observed again", func() bool { return seen.Has(last) })
}
