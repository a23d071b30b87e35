//go:build rig

package powerrig_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"phonerack/firmware/rig/nbd"
	"phonerack/firmware/rig/powerrig"
	"phonerack/firmware/rig/rackrig"
)

// Bounds of a board on a loaded machine: 10 to 20 times what an idle one needs.
const (
	bootLimit = 4 * time.Minute
	endLimit  = 8 * time.Minute
)

// cuts is how often the power goes: PHONERACK_CUTS, or 6, and 30 times PHONERACK_SOAK in make soak.
func cuts(t *testing.T) int {
	t.Helper()
	number := func(name string) int {
		s := os.Getenv(name)
		if s == "" {
			return 0
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: give it a number", name, s)
		}
		return n
	}
	if n := number("PHONERACK_CUTS"); n > 0 {
		return n
	}
	if factor := number("PHONERACK_SOAK"); factor > 0 {
		return 30 * factor
	}
	return 6
}

// seed rules what is drawn: PHONERACK_SEED, or another one each time.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("PHONERACK_SEED")
	if s == "" {
		return rand.Uint64() >> 1
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("PHONERACK_SEED is %q: give it a number", s)
	}
	return n
}

// TestSoakPowerCuts sends messages through a rackcloud and a rackd that share one board, whose power goes at random moments
// of the work and of its start. Every second time its disk also loses what was not flushed. The judges are the phones'
// app, which sees what was really done, e2fsck, bbolt, SQLite, what rack and cloud have written down of each other, and what the
// cloud had told before the cut.
func TestSoakPowerCuts(t *testing.T) {
	n, seed := cuts(t), seed(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if end, ok := t.Deadline(); ok { // a little before go test ends everything without a word
		ctx, cancel = context.WithDeadline(ctx, end.Add(-30*time.Second))
		defer cancel()
	}
	dir, err := os.MkdirTemp("", "cuts") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	site, err := powerrig.New(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, ctx: ctx, dir: dir, Site: site, seed: seed, last: &powerrig.Remains{}, orders: map[string]string{}, seen: map[string]string{}}
	defer func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("PHONERACK_SEED=%d draws the same", seed)
		}
	}()
	begin := time.Now()
	var loss nbd.Loss
	for i := range n {
		one := r.round(i)
		loss.Blocks, loss.Kept, loss.Dropped, loss.Torn = loss.Blocks+one.Blocks, loss.Kept+one.Kept, loss.Dropped+one.Dropped, loss.Torn+one.Torn
		if t.Failed() {
			return
		}
	}
	states := r.finish(n)
	fmt.Printf("soak power-cuts %d, half with %s (%s), half with %v; %d during the start, %d at a flush; %v; %d tasks %v, %d results acknowledged before a cut; seed %d, %.0f s\n",
		n, powerrig.Direct, "QEMU "+site.DirectCache(), powerrig.Lossy, r.early, r.atFlush, loss, len(r.orders), states, r.acked, seed, time.Since(begin).Seconds())
	if states["succeeded"] == 0 {
		t.Error("nothing was done at all")
	}
}

// run is a site over all its cuts.
type run struct {
	*powerrig.Site
	t    *testing.T
	ctx  context.Context
	dir  string
	seed uint64

	orders map[string]string // id of a task -> text of its message
	next   int               // order
	seen   map[string]string // tasks as the cloud has told of them: id -> state
	last   *powerrig.Remains // after the last cut
	start  time.Duration     // that the programs took at their first start

	early, atFlush, acked int
}

// power boots the board with one of the disks.
func (r *run) power(kind powerrig.Kind) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, bootLimit)
	defer cancel()
	if err := r.Boot(ctx, kind); err != nil {
		r.fatal(err)
	}
}

// fatal ends the test with what the board has said.
func (r *run) fatal(err error) {
	r.t.Helper()
	if b := r.Board(); b != nil {
		r.t.Log(b.Console())
	}
	r.t.Fatal(err)
}

// round boots, works and takes the power. The moments are drawn in units of what a start takes, so that a slow machine is cut at
// the same places as a quick one.
func (r *run) round(i int) nbd.Loss {
	r.t.Helper()
	random := rand.New(rand.NewPCG(r.seed, uint64(i)))
	kind := powerrig.Kind(1 - i%2)
	r.power(kind)
	ctx, cancel := context.WithTimeout(r.ctx, bootLimit)
	defer cancel()
	duringStart := i > 0 && random.IntN(5) == 0
	within := func(longest float64) time.Duration {
		return time.Duration(random.Float64() * longest * float64(r.start))
	}
	started := make(chan error, 1)
	begin := time.Now()
	go func() { started <- r.Start(ctx) }()
	moment := within(1)
	if !duringStart {
		if err := <-started; err != nil {
			r.fatal(err)
		}
		if i == 0 {
			r.start = time.Since(begin)
		}
		moment = within(1.5)
	} else {
		r.early++
	}
	var off <-chan struct{}
	if kind == powerrig.Lossy {
		off = r.Disk().Off()
		if random.IntN(4) > 0 {
			r.Disk().CutAtFlush(1 + random.IntN(60))
			moment = 4 * r.start // it comes before, unless nothing is written any more
		}
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if !duringStart {
			r.work(ctx)
		}
	}()
	select {
	case <-off:
		r.atFlush++
	case <-time.After(moment):
	}
	cutAt := time.Since(begin)
	loss, err := r.Cut(random)
	cancel()
	<-worked
	if duringStart {
		<-started
	}
	r.t.Logf("cut %d, %s, %.1f s after the start: %v", i+1, kind, cutAt.Seconds(), loss)
	if err != nil {
		r.t.Fatal(err)
	}
	r.judge(fmt.Sprintf("cut %d (%s)", i+1, kind))
	return loss
}

// work keeps two tasks going and looks at all, until the power goes.
func (r *run) work(ctx context.Context) {
	for ctx.Err() == nil {
		states, err := r.States(ctx)
		if err != nil {
			return
		}
		open := 0
		for id, state := range states {
			r.seen[id] = state
			if !done(state) {
				open++
			}
		}
		if open < 2 {
			if err := r.order(ctx); err != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(700 * time.Millisecond):
		}
	}
}

func done(state string) bool {
	return state == "succeeded" || state == "failed" || state == "cancelled" || state == "lost"
}

// order submits a task. One whose answer was cut off is submitted again under its key the next time, and must be the same.
func (r *run) order(ctx context.Context) error {
	text := fmt.Sprintf("Order number %d", r.next)
	id, err := r.Submit(ctx, fmt.Sprintf("order-%d", r.next), fmt.Sprintf("Send the message '%s' to Ana", text))
	if err != nil {
		return err
	}
	r.next++
	r.orders[id] = text
	if _, ok := r.seen[id]; !ok {
		r.seen[id] = "queued"
	}
	return nil
}

// judge looks at what is left on the disk.
func (r *run) judge(what string) *powerrig.Remains {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Minute)
	defer cancel()
	files := filepath.Join(r.dir, "files")
	defer os.RemoveAll(files)
	if err := r.Unpack(ctx, files); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	now, err := powerrig.Read(ctx, files)
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
	if err := now.After(r.last); err != nil {
		r.t.Errorf("%s: against the cut before: %v", what, err)
	}
	if err := now.Keeps(r.seen); err != nil {
		r.t.Errorf("%s: against what the cloud has told: %v", what, err)
	}
	for id, text := range r.orders {
		if sent := rackrig.Sent(r.Phones, text); sent > 1 {
			r.t.Errorf("%s: %q was sent %d times", what, text, sent)
		} else if now.Tasks[id] == "succeeded" && sent != 1 {
			r.t.Errorf("%s: %q is said to be sent, and was not", what, text)
		}
	}
	r.last, r.acked = now, now.Acked()
	maps.Copy(r.seen, now.Tasks)
	return now
}

// finish lets everything that is open end, takes the power a last time and counts how the tasks have ended.
func (r *run) finish(n int) map[string]int {
	r.t.Helper()
	r.power(powerrig.Kind(1 - n%2))
	ctx, cancel := context.WithTimeout(r.ctx, endLimit)
	defer cancel()
	if err := r.Start(ctx); err != nil {
		r.fatal(err)
	}
	if err := r.order(ctx); err != nil { // the last one may have been cut off
		r.fatal(err)
	}
	told := time.Now()
	for open := -1; open != 0; {
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			r.t.Logf("the end is waited for: %v", r.seen)
		}
		states, err := r.States(ctx)
		if err != nil {
			r.fatal(fmt.Errorf("%d tasks have not ended: %w", open, err))
		}
		open = 0
		for id, state := range states {
			r.seen[id] = state
			if !done(state) {
				open++
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	if out, exit, err := r.Board().Run(ctx, "dmesg | grep -i 'ext4.*error\\|I/O error'"); err != nil || exit == 0 {
		r.t.Errorf("the kernel complains: %s, %v", out, err)
	}
	console := r.Board().Console()
	if _, err := r.Cut(rand.New(rand.NewPCG(r.seed, 1<<32))); err != nil {
		r.t.Fatal(err)
	}
	end := r.judge("the end")
	states := map[string]int{}
	for id, state := range end.Tasks {
		states[state]++
		if state != "succeeded" && state != "lost" {
			r.t.Errorf("task %s (%s) has ended as %s", id, r.orders[id], state)
		}
	}
	if r.t.Failed() {
		r.t.Log(console)
	}
	return states
}
