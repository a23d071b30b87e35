package cloudrig_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"phonerack/firmware/rig/cloudrig/sitetest"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

// TestSoakKilledAtAnyMomentEachTaskEndsOnceAndNothingIsDoneTwice sends messages through the cloud while rackd and rackcloud
// (with its broker) are killed at random moments.
func TestSoakKilledAtAnyMomentEachTaskEndsOnceAndNothingIsDoneTwice(t *testing.T) {
	n := sitetest.Kills(t, 10)
	s := sitetest.New(t, t.Context(), sitetest.Options{Phones: 3})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*45*time.Second)
	defer cancel()
	random, begin := rand.New(rand.NewPCG(7, uint64(n))), time.Now()
	orders := s.Submit(ctx)
	for range n {
		sitetest.Pause(t, ctx, random, time.Second, 4*time.Second)
		s.Rack.Kill()
		sitetest.Pause(t, ctx, random, 10*time.Millisecond, 500*time.Millisecond)
		if err := s.Rack.StartRackd(ctx); err != nil {
			t.Fatal(err)
		}
		sitetest.Pause(t, ctx, random, time.Second, 5*time.Second)
		s.Cloud.Kill()
		sitetest.Pause(t, ctx, random, 10*time.Millisecond, time.Second)
		if err := s.Cloud.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	states := orders.Judge(ctx, "succeeded", "lost") // rackd never begins again what a crash cut
	fmt.Printf("soak kills of rackd %d, of rackcloud with broker and SQLite %d: tasks %v, %.0f s\n", n, n, states, time.Since(begin).Seconds())
}
