package cloudrig_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig"
	"phonerack/firmware/rig/rackrig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const byCloud = "[planner]\ntransport = \"cloud\"\n[cloud]\nidentity = %q\n"

// site is a cloud and a rack of simulated phones on this machine.
type site struct {
	t      *testing.T
	cloud  *cloudrig.Cloud
	rack   *rackrig.Native
	phones []*rackrig.Phone
}

// siteLimit bounds the start of a site; most of it is the building of the programs where nothing is built yet.
const siteLimit = 10 * time.Minute

// newSite starts both; config is added to rackd's, with a place for the path of its identity.
func newSite(t *testing.T, ctx context.Context, phones int, config string) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, siteLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "site") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	t.Cleanup(func() {
		if s.rack != nil {
			if err := s.rack.Close(); err != nil {
				t.Error(err)
			}
		}
		if s.cloud != nil {
			if err := s.cloud.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("rackcloud:\n%s", tail(s.cloud.Log()))
			}
		}
		if s.rack != nil && t.Failed() {
			t.Logf("rackd:\n%s", tail(s.rack.Log()))
		}
		os.RemoveAll(dir)
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.cloud, err = cloudrig.Start(ctx, cloudrig.Options{Dir: filepath.Join(dir, "cloud")})
	must(err)
	must(s.cloud.Script(ctx))
	bundle, err := s.cloud.AddRack(ctx, "site")
	must(err)
	slots := make([]int, phones)
	for i := range phones {
		p, err := rackrig.Simulate(rackrig.PhoneSpec{Slot: i + 1, Serial: fmt.Sprintf("SIM%04d", i+1), Android: 14, Language: "en", Seed: int64(i + 1)})
		must(err)
		s.phones, slots[i] = append(s.phones, p), i+1
	}
	s.rack, err = rackrig.StartNative(ctx, dir, s.phones, fmt.Sprintf(config, bundle))
	must(err)
	_, err = rackrig.WaitState(ctx, s.rack, action.Ready, slots...)
	must(err)
	return s
}

func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// sent counts how often a message was really sent, on whichever phone.
func (s *site) sent(text string) (n int) {
	for _, p := range s.phones {
		for _, entry := range p.Screen.Journal() {
			if entry == "message sent to Ana: "+text {
				n++
			}
		}
	}
	return n
}

// kills is how often each of rackd and rackcloud is killed; make soak asks for more.
func kills(t *testing.T) int {
	if s := os.Getenv("PHONERACK_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("PHONERACK_KILLS is %q: give it a number", s)
		}
		return n
	}
	return 10
}

// TestKilledAtAnyMomentEachTaskEndsOnceAndNothingIsDoneTwice sends messages through the cloud while rackd and rackcloud
// (with its broker) are killed at random moments. What the phones' app has noted is the judge.
func TestKilledAtAnyMomentEachTaskEndsOnceAndNothingIsDoneTwice(t *testing.T) {
	n := kills(t)
	s := newSite(t, t.Context(), 3, byCloud)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*45*time.Second)
	defer cancel()
	random := rand.New(rand.NewPCG(7, uint64(n)))

	// Somebody submits all the time; the key makes a repeated order the same task.
	var mu sync.Mutex
	tasks := map[string]string{} // id -> text
	stop := make(chan struct{})
	var submitting sync.WaitGroup
	submitting.Go(func() {
		for i := 0; ; i++ {
			text := fmt.Sprintf("Order number %d", i)
			for {
				id, err := s.cloud.Submit(ctx, "--goal", fmt.Sprintf("Send the message '%s' to Ana", text), "--key", fmt.Sprintf("order-%d", i))
				if err == nil {
					mu.Lock()
					tasks[id] = text
					mu.Unlock()
					break
				}
				if ctx.Err() != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
			select {
			case <-stop:
				return
			case <-time.After(1500 * time.Millisecond):
			}
		}
	})
	pause := func(from, to time.Duration) {
		select {
		case <-time.After(from + time.Duration(random.Int64N(int64(to-from)))):
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	for range n {
		pause(time.Second, 4*time.Second)
		s.rack.Kill()
		pause(10*time.Millisecond, 500*time.Millisecond)
		if err := s.rack.StartRackd(ctx); err != nil {
			t.Fatal(err)
		}
		pause(time.Second, 5*time.Second)
		s.cloud.Kill()
		pause(10*time.Millisecond, time.Second)
		if err := s.cloud.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	submitting.Wait()

	states := map[string]int{}
	for id, text := range tasks {
		end, err := s.cloud.Await(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		states[end.State]++
		sent := s.sent(text)
		switch {
		case sent > 1:
			t.Errorf("%q was sent %d times", text, sent)
		case end.State == "succeeded" && sent != 1:
			t.Errorf("%q is said to be sent, and was not", text)
		case end.State != "succeeded" && end.State != "lost":
			t.Errorf("%q has ended as %s", text, end.State)
		}
		s.checkLog(ctx, id)
	}
	t.Logf("%d tasks while %d rackd and %d rackcloud were killed: %v", len(tasks), n, n, states)
	if states["succeeded"] == 0 {
		t.Error("nothing was done at all")
	}
}

// checkLog wants the decisions of each attempt without gaps.
func (s *site) checkLog(ctx context.Context, id string) {
	s.t.Helper()
	var log []cloudrig.Decision
	if err := s.cloud.Ask(ctx, &log, "decisions", id); err != nil {
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
