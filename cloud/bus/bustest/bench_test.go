package bustest

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

// BenchmarkRoundTrip is the broker alone: 100 KB from a rack on up/plan to a handler, and 1 KB back to the rack on dn/plan, one after the
// other. What the planner proxy adds is measured against it. p50 and p99 are of single round trips.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name  string
		start func(testing.TB) *Broker
	}{{"embedded", Embedded}, {"mosquitto", Mosquitto}} {
		b.Run(c.name, func(b *testing.B) { roundTrips(b, c.start(b)) })
	}
}

func roundTrips(b *testing.B, broker *Broker) {
	cloud := broker.Open(b, "cloud", bus.Limits{})
	answer := bytes.Repeat([]byte("a"), 1<<10)
	Serve(b, cloud, func(ctx context.Context, f bus.Frame) {
		f.Topic.Direction = wire.Down
		if err := cloud.Publish(ctx, f.Topic, answer); err != nil {
			b.Error(err)
		}
	}, wire.KindPlan)
	r := broker.Connect(b, Login{Rack: "r0", Quiet: true})
	answers := make(chan struct{}, 1)
	s := r.Client.Subscribe(wire.DownFilter(Tenant, "r0"), 1, func(mqtt.Client, mqtt.Message) { answers <- struct{}{} })
	if err := await(s); err != nil {
		b.Fatal(err)
	}
	screen := bytes.Repeat([]byte("s"), 100_000)
	topic := r.Topic(wire.KindPlan)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		r.Client.Publish(topic, 1, false, screen)
		select {
		case <-answers:
		case <-time.After(patience):
			b.Fatal("no answer")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}
