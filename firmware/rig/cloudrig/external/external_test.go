// Package external_test runs racks and clouds on external brokers and PostgreSQL, set up as docs/rackcloud.md says.
package external_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/store/pgtest"
	"phonerack/firmware/rig/cloudrig/sitetest"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

// TestSoakMosquittoIsKilledAtAnyMoment: racks and cloud lose nothing with it, not even the task that is under way.
func TestSoakMosquittoIsKilledAtAnyMoment(t *testing.T) {
	n := sitetest.Kills(t, 10)
	root := underOneRoof(t)
	dsn := pgtest.Start(t).Database(t)
	s := sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 3, Broker: sitetest.StartMosquitto, DSN: dsn, Config: withPictures, Replicas: 1,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*30*time.Second)
	defer cancel()
	random, begin := rand.New(rand.NewPCG(11, uint64(n))), time.Now()
	orders := s.Submit(ctx)
	for i := range n {
		s.Reach(ctx)
		moment(t, ctx, s, s.Broker.Nodes[0], random, i)
		s.Broker.Nodes[0].Kill()
		sitetest.Pause(t, ctx, random, 10*time.Millisecond, time.Second)
		if err := s.Broker.Nodes[0].Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	states := orders.Judge(ctx, "succeeded")
	fmt.Printf("soak kills of mosquitto %d: tasks %v, %.0f s\n", n, states, time.Since(begin).Seconds())
	noScreenIsWrittenDown(t, ctx, s, dsn, root, false)
}

// TestSoakNATSNodesAndReplicasAreKilledAtAnyMoment: of three servers and two replicas one each is killed, over and over.
// The others go on, and the work with them.
func TestSoakNATSNodesAndReplicasAreKilledAtAnyMoment(t *testing.T) {
	n := sitetest.Kills(t, 5)
	root := underOneRoof(t)
	dsn := pgtest.Start(t).Database(t)
	s := sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 3, Broker: sitetest.StartNATS, DSN: dsn, Config: withPictures, Replicas: 2,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*45*time.Second)
	defer cancel()
	random, begin := rand.New(rand.NewPCG(13, uint64(n))), time.Now()
	orders := s.Submit(ctx)
	for i := range n {
		s.Reach(ctx)
		node := s.Broker.Nodes[random.IntN(len(s.Broker.Nodes))]
		moment(t, ctx, s, node, random, i)
		node.Kill()
		sitetest.Pause(t, ctx, random, 10*time.Millisecond, 2*time.Second)
		if err := node.Start(ctx); err != nil {
			t.Fatal(err)
		}
		s.Reach(ctx)
		sitetest.Pause(t, ctx, random, 200*time.Millisecond, 4*time.Second)
		replica := s.Clouds[random.IntN(len(s.Clouds))]
		replica.Kill()
		sitetest.Pause(t, ctx, random, 10*time.Millisecond, 2*time.Second)
		if err := replica.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	states := orders.Judge(ctx, "succeeded")
	fmt.Printf("soak kills of a NATS server of three %d, of a rackcloud of two with PostgreSQL %d: tasks %v, %.0f s\n", n, n, states, time.Since(begin).Seconds())
	noScreenIsWrittenDown(t, ctx, s, dsn, root, true)
}

// moment waits for the moment of the i-th kill: any one, or one in which a broker has been given a task's result, and has
// handed it on to nobody. Any moment alone would hardly ever be such a one.
func moment(t *testing.T, ctx context.Context, s *sitetest.Site, node *sitetest.Process, random *rand.Rand, i int) {
	t.Helper()
	if i%2 == 0 {
		sitetest.Pause(t, ctx, random, 200*time.Millisecond, 4*time.Second)
		return
	}
	ended := func() int { return strings.Count(s.Rack.Log(), `msg="task ended"`) }
	for before := ended(); ended() == before; {
		sitetest.Pause(t, ctx, random, 5*time.Millisecond, 10*time.Millisecond)
	}
	// Its phone is put in order before the result is told, which takes most of a second.
	if err := node.Freeze(); err != nil {
		t.Fatal(err)
	}
	sitetest.Pause(t, ctx, random, 1500*time.Millisecond, 3*time.Second)
}
