package sitetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"phonerack/firmware/rig/cloudrig"
)

// orderEvery is between two orders. Three phones take a little longer for theirs, so that some task always waits.
const orderEvery = 1500 * time.Millisecond

// ahead is how many orders may be open: what kills hold up would else have to be worked off in the end.
const ahead = 8

// Orders are tasks to send messages, submitted one after the other until [Orders.Judge].
type Orders struct {
	s          *Site
	stop       chan struct{} // closed by Judge
	submitting sync.WaitGroup

	mu    sync.Mutex        // guards what follows
	tasks map[string]string // id -> text
	order []string          // ids
}

// Submit begins to submit orders, each at whichever replica answers. The key makes a repeated order the same task.
func (s *Site) Submit(ctx context.Context) *Orders {
	o := &Orders{s: s, stop: make(chan struct{}), tasks: map[string]string{}}
	o.submitting.Go(func() {
		for i := 0; o.submit(ctx, i); i++ {
			for first := true; first || !o.over(ctx, i-ahead); first = false {
				select {
				case <-o.stop:
					return
				case <-ctx.Done():
					return
				case <-time.After(orderEvery):
				}
			}
		}
	})
	return o
}

// submit submits one order until it is taken.
func (o *Orders) submit(ctx context.Context, i int) bool {
	text := fmt.Sprintf("Order number %d", i)
	for try := i; ctx.Err() == nil; try++ {
		cloud := o.s.Clouds[try%len(o.s.Clouds)]
		id, err := cloud.Submit(ctx, "--goal", fmt.Sprintf("Send the message '%s' to Ana", text), "--key", fmt.Sprintf("order-%d", i))
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.tasks[id] = text
			o.order = append(o.order, id)
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return false
}

// over tells whether an order has ended, as far as its cloud says so now.
func (o *Orders) over(ctx context.Context, i int) bool {
	if i < 0 {
		return true
	}
	o.mu.Lock()
	id := o.order[i]
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := o.s.Cloud.Await(ctx, id)
	return err == nil
}

// Judge ends the submitting, waits until each task is over, and judges: each has ended once, in one of the states that
// may be; no message was sent twice, nor is one said to be sent that was not; and the decisions of each attempt
// have no gap. What the phones' app has noted is the judge. It returns how many tasks ended in which state.
func (o *Orders) Judge(ctx context.Context, mayEnd ...string) map[string]int {
	o.s.t.Helper()
	t := o.s.t
	close(o.stop)
	o.submitting.Wait()
	may := map[string]bool{}
	for _, state := range mayEnd {
		may[state] = true
	}
	states := map[string]int{}
	for id, text := range o.tasks {
		end, err := o.s.Cloud.Await(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		states[end.State]++
		sent := o.s.Sent(text)
		switch {
		case sent > 1:
			t.Errorf("%q was sent %d times", text, sent)
		case end.State == "succeeded" && sent != 1:
			t.Errorf("%q is said to be sent, and was not", text)
		case !may[end.State]:
			t.Errorf("%q has ended as %s, task %s", text, end.State, id)
		}
		o.s.checkLog(ctx, id)
	}
	if states["succeeded"] == 0 {
		t.Error("nothing was done at all")
	}
	return states
}

// checkLog wants the decisions of each attempt without gaps.
func (s *Site) checkLog(ctx context.Context, id string) {
	s.t.Helper()
	var log []cloudrig.Decision
	if err := s.Cloud.Ask(ctx, &log, "decisions", id); err != nil {
		s.t.Error(err)
		return
	}
	next := map[int]int{}
	for _, d := range log {
		if d.Step != next[d.Attempt] {
			s.t.Errorf("task %s, attempt %d: index %d where %d is next", id, d.Attempt, d.Step, next[d.Attempt])
		}
		next[d.Attempt] = d.Step + 1
	}
}

// Kills is how often something is killed: few times in make test, a hundred times in make soak. PHONERACK_KILLS names
// another number.
func Kills(t testing.TB, few int) int {
	t.Helper()
	for _, v := range []struct {
		name  string
		times int
	}{{"PHONERACK_KILLS", 1}, {"PHONERACK_SOAK", 100}} {
		s := os.Getenv(v.name)
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: give it a number", v.name, s)
		}
		return n * v.times
	}
	return few
}

// Pause waits for a random time and fails the test if ctx ends before.
func Pause(t testing.TB, ctx context.Context, random *rand.Rand, from, to time.Duration) {
	t.Helper()
	select {
	case <-time.After(from + time.Duration(random.Int64N(int64(to-from)))):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}
