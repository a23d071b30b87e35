package bustest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

// Contract holds a broker to what a bus promises. start starts one that ends with the test; it is shared where nothing is
// broken on it.
func Contract(t *testing.T, start func(testing.TB) *Broker) {
	b := start(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *Broker)
	}{
		{"EachFrameGoesToOneOfTheGroup", eachFrameGoesToOneOfTheGroup},
		{"GroupsDoNotShare", groupsDoNotShare},
		{"KilledReplicaLeavesTheWorkToTheOther", killedReplica},
		{"FramesOfOneRackStayInOrder", framesStayInOrder},
		{"PlansOfOneRackRunSideBySide", plansRunSideBySide},
		{"SlowHandlersHoldUpNothingElse", slowHandlers},
		{"EndedServeLetsHandlersFinish", endedServe},
		{"LargestFrameGoesBothWays", largestFrame},
		{"OversizeIsRefusedBeforeSending", oversizeIsRefused},
		{"OversizeOfARackHurtsNobodyElse", oversizeOfARack},
		{"OddTopicsAreRefused", oddTopics},
		{"ForeignTopicsAreDenied", foreignTopics},
		{"ForeignTopicsAreDeniedToMosquittoClients", foreignTopicsOfPrograms},
		{"ForeignWillIsNotPublished", foreignWill},
		{"ForeignClientIDTakesNothingOver", takeOver},
		{"WrongPasswordIsRefused", wrongPassword},
		{"DesiredIsRetainedAndNothingElse", retainedDown},
		{"StatesAreObservedRetainedFirst", retainedUp},
		{"WillAndBirthBothArrive", willAndBirth},
		{"ScreensAreInNoStore", screensAreInNoStore},
		{"RevokedRackIsKicked", revokedRackIsKicked},
		{"SubscriptionsComeBack", subscriptionsComeBack},
		{"ClosedBusSaysSo", closedBus},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

// fresh is a group that no other test uses.
func fresh() string { return fmt.Sprintf("g%d", rand.Uint32()) }

// send publishes n frames of a kind from a rack, each with content of its own, and gives these.
func send(t testing.TB, r *Rack, k wire.Kind, n int) []string {
	t.Helper()
	var all []string
	for i := range n {
		data := fmt.Sprintf("%s %s %d %x", r.id, k, i, rand.Uint64())
		r.Send(t, k, []byte(data))
		all = append(all, data)
	}
	return all
}

func sorted(frames []bus.Frame) []string {
	var all []string
	for _, f := range frames {
		all = append(all, string(f.Data))
	}
	slices.Sort(all)
	return all
}

func eachFrameGoesToOneOfTheGroup(t *testing.T, b *Broker) {
	group := fresh()
	var got [2]Record
	for i := range got {
		Serve(t, b.Open(t, group, bus.Limits{}), got[i].Handle, wire.KindTask, wire.KindPlan, wire.KindEvent)
	}
	var want []string
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 4 {
		r := b.Connect(t, Login{Rack: fmt.Sprintf("r%d", i)})
		all.Go(func() {
			for _, k := range []wire.Kind{wire.KindTask, wire.KindPlan, wire.KindEvent} {
				sent := send(t, r, k, 25)
				mu.Lock()
				want = append(want, sent...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(want)
	Eventually(t, patience, "all frames are handled", func() bool { return len(got[0].Frames())+len(got[1].Frames()) >= len(want) })
	time.Sleep(50 * time.Millisecond) // for one that came twice
	if have := sorted(append(got[0].Frames(), got[1].Frames()...)); !slices.Equal(have, want) {
		t.Errorf("%d frames were handled, %d were sent, each should be once", len(have), len(want))
	}
	for i := range got {
		if n := len(got[i].Frames()); n < len(want)/10 {
			t.Errorf("replica %d handled %d of %d frames", i, n, len(want))
		}
	}
	for _, f := range got[0].Frames() {
		if f.Retained || f.Topic.Direction != wire.Up || !strings.HasPrefix(string(f.Data), f.Topic.Rack+" "+string(f.Topic.Kind)) {
			t.Fatalf("frame %q came on %s, retained %t", f.Data, f.Topic, f.Retained)
		}
	}
}

func groupsDoNotShare(t *testing.T, b *Broker) {
	var got [2]Record
	for i := range got {
		Serve(t, b.Open(t, fresh(), bus.Limits{}), got[i].Handle, wire.KindEvent)
	}
	want := send(t, b.Connect(t, Login{Rack: "r0"}), wire.KindEvent, 10)
	slices.Sort(want)
	for i := range got {
		Eventually(t, patience, "each group handles all", func() bool { return slices.Equal(sorted(got[i].Frames()), want) })
	}
}

// killedReplica kills a process that shares the work. What it had in hand is lost, as nobody has answered it; a rack sends
// that again, and the other one gets it.
func killedReplica(t *testing.T, b *Broker) {
	if b.Replica.Driver == "" {
		t.Log("no other process can reach this broker's cloud side: its replica ends with it")
		return
	}
	group := fresh()
	r := b.Replica
	r.Group, r.Kind = group, wire.KindTask
	other := spawn(t, r)
	var got Record
	Serve(t, b.Open(t, group, bus.Limits{}), got.Handle, wire.KindTask)
	rack := b.Connect(t, Login{Rack: "r0"})
	send(t, rack, wire.KindTask, 20)
	Eventually(t, patience, "both take part", func() bool { return len(other.handled()) > 1 && len(got.Frames()) > 0 })
	other.kill()
	last := fmt.Sprintf("after the kill %x", rand.Uint64())
	Eventually(t, 20*time.Second, "the other handles what comes now", func() bool {
		rack.Send(t, wire.KindTask, []byte(last))
		return got.Has(last)
	})
	before := len(got.Frames())
	want := send(t, rack, wire.KindTask, 20)
	Eventually(t, patience, "the other handles all that comes later", func() bool { return len(got.Frames()) >= before+len(want) })
}

func framesStayInOrder(t *testing.T, b *Broker) {
	const racks, frames = 6, 60
	var got Record
	Serve(t, b.Open(t, fresh(), bus.Limits{Workers: 4}), func(ctx context.Context, f bus.Frame) {
		time.Sleep(rand.N(3 * time.Millisecond))
		got.Handle(ctx, f)
	}, wire.KindEvent)
	want := make(map[string][]string)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range racks {
		r := b.Connect(t, Login{Rack: fmt.Sprintf("r%d", i)})
		all.Go(func() { // faster than they are handled
			var sent []string
			var last mqtt.Token
			for n := range frames {
				sent = append(sent, fmt.Sprintf("%s %d", r.id, n))
				last = r.Client.Publish(r.Topic(wire.KindEvent), 1, false, sent[n])
			}
			if err := await(last); err != nil {
				t.Error(err)
			}
			mu.Lock()
			want[r.id] = sent
			mu.Unlock()
		})
	}
	all.Wait()
	Eventually(t, patience, "all frames are handled", func() bool { return len(got.Frames()) == racks*frames })
	have := make(map[string][]string)
	for _, f := range got.Frames() {
		have[f.Topic.Rack] = append(have[f.Topic.Rack], string(f.Data))
	}
	for rack := range want {
		if !slices.Equal(have[rack], want[rack]) {
			t.Errorf("frames of %s came in another order: %q", rack, have[rack])
		}
	}
}

func plansRunSideBySide(t *testing.T, b *Broker) {
	both := make(chan struct{})
	var running atomic.Int32
	Serve(t, b.Open(t, fresh(), bus.Limits{}), func(ctx context.Context, _ bus.Frame) {
		if running.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-ctx.Done():
		case <-time.After(patience):
		}
	}, wire.KindPlan)
	send(t, b.Connect(t, Login{Rack: "r0"}), wire.KindPlan, 2)
	select {
	case <-both:
	case <-time.After(patience / 2): // the first gives up later
		t.Error("the second plan of the rack waits for the first")
	}
}

// slowHandlers: all workers of one kind hang, its queue is full; other kinds go on, the link stays, and what finds no room is
// counted.
func slowHandlers(t *testing.T, b *Broker) {
	const sent = 60
	limits := bus.Limits{Workers: 2, Queue: 8}
	c := b.Open(t, fresh(), limits)
	free := make(chan struct{})
	var handled atomic.Int32
	Serve(t, c, func(_ context.Context, f bus.Frame) {
		if f.Topic.Kind == wire.KindTask {
			<-free
			handled.Add(1)
		}
	}, wire.KindTask)
	var others Record
	Serve(t, c, others.Handle, wire.KindCommand)
	links := c.Stats().Links
	for i := range 6 {
		r := b.Connect(t, Login{Rack: fmt.Sprintf("r%d", i)})
		send(t, r, wire.KindTask, sent/6)
		want := send(t, r, wire.KindCommand, 1)[0]
		Eventually(t, patience, "another kind is handled", func() bool { return others.Has(want) })
	}
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	close(free)
	Eventually(t, patience, "each frame is handled or counted", func() bool {
		return int(handled.Load())+int(c.Stats().Overflow) == sent
	})
	if n := handled.Load(); n < int32(limits.Queue) || c.Stats().Links != links {
		t.Errorf("%d frames were handled, the links came up %d times more", n, c.Stats().Links-links)
	}
}

func endedServe(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{Drain: 300 * time.Millisecond})
	began, cancelled := make(chan struct{}), make(chan struct{})
	stop := Serve(t, c, func(ctx context.Context, _ bus.Frame) {
		close(began)
		<-ctx.Done()
		close(cancelled)
	}, wire.KindSkill)
	send(t, b.Connect(t, Login{Rack: "r0"}), wire.KindSkill, 1)
	<-began
	start := time.Now()
	stop()
	select {
	case <-cancelled:
	default:
		t.Fatal("Serve came back while a handler ran")
	}
	if d := time.Since(start); d < 200*time.Millisecond {
		t.Errorf("the handler was given %s to finish", d)
	}
	if n := c.Stats().Listening; n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

func largestFrame(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	Serve(t, c, got.Handle, wire.KindPlan)
	r := b.Connect(t, Login{Rack: "r0"})
	frame := make([]byte, wire.MaxFrame)
	r.Send(t, wire.KindPlan, frame)
	Eventually(t, patience, "the frame comes", func() bool { return len(got.Frames()) == 1 })
	if n := len(got.Frames()[0].Data); n != wire.MaxFrame {
		t.Errorf("%d bytes came of %d", n, wire.MaxFrame)
	}
	if err := c.Publish(t.Context(), down("r0", wire.KindPlan), frame); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Receive(t, 1)[0].Payload()); n != wire.MaxFrame {
		t.Errorf("%d bytes came of %d", n, wire.MaxFrame)
	}
}

func oversizeIsRefused(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	Ready(t, c)
	links := c.Stats().Links
	for _, size := range []int{wire.MaxFrame + 1, 2 << 20} {
		if err := c.Publish(t.Context(), down("r0", wire.KindPlan), make([]byte, size)); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	Ready(t, c)
	if c.Stats().Links != links || c.Stats().Failed != 2 {
		t.Errorf("stats %+v: the link was lost or a failure not counted", c.Stats())
	}
}

// oversizeOfARack: brokers differ in what the rack feels (NATS and mosquitto end the connection or drop the message); what
// they must not do is deliver it or touch the others.
func oversizeOfARack(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	var got Record
	Serve(t, c, got.Handle, wire.KindPlan)
	links := c.Stats().Links
	bad, good := b.Connect(t, Login{Rack: "r0"}), b.Connect(t, Login{Rack: "r1"})
	for _, size := range []int{wire.MaxFrame + 1, 2 << 20} {
		bad.Client.Publish(bad.Topic(wire.KindPlan), 1, false, make([]byte, size)).WaitTimeout(500 * time.Millisecond)
	}
	want := send(t, good, wire.KindPlan, 1)[0]
	Eventually(t, patience, "the other rack is heard", func() bool { return got.Has(want) })
	if n := len(got.Frames()); n != 1 {
		t.Errorf("%d frames came", n)
	}
	Ready(t, c)
	if s := c.Stats(); s.Links != links || s.Oversize != 1 {
		t.Errorf("stats %+v: the cloud's link was lost or the frame not counted", s)
	}
}

func closedBus(t *testing.T, b *Broker) {
	c := b.Open(t, fresh(), bus.Limits{})
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background(), []wire.Kind{wire.KindTask}, new(Record).Handle) }()
	Eventually(t, patience, "the call has begun", func() bool { return c.Stats().Listening > 0 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, bus.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	for what, err := range map[string]error{
		"Publish": c.Publish(t.Context(), down("r0", wire.KindPlan), []byte("x")),
		"Observe": c.Observe(t.Context(), new(Record).Handle),
		"Check":   c.Check(t.Context()),
		"Serve":   c.Serve(t.Context(), []wire.Kind{wire.KindTask}, new(Record).Handle),
	} {
		if err == nil {
			t.Errorf("%s works on a closed bus", what)
		}
	}
}

func down(rack string, k wire.Kind) wire.Topic {
	return wire.Topic{Tenant: Tenant, Rack: rack, Direction: wire.Down, Kind: k}
}
