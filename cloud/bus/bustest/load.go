package bustest

import (
	"context"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

// answerWith sends each frame back to its rack on the dn topic of the same kind.
func answerWith(b bus.Bus) bus.Handler {
	return func(ctx context.Context, f bus.Frame) {
		t := f.Topic
		t.Direction = wire.Down
		b.Publish(ctx, t, f.Data) // a rack that hears nothing asks again
	}
}

// insist is a rack that sends n frames, one each pause, and each again until it is answered; it connects anew when it has
// to. It gives the number of answered frames after at most 90 seconds.
func (b *Broker) insist(t testing.TB, rack string, n int, pause time.Duration) int {
	const again = 3 * time.Second      // sooner, a slow machine would be flooded
	open := make(map[string]time.Time) // unanswered, and when it was last sent
	var r *Rack
	sent, answered, read := 0, 0, 0
	for deadline := time.Now().Add(90 * time.Second); answered < n && time.Now().Before(deadline); time.Sleep(pause) {
		if r == nil || !r.Client.IsConnectionOpen() {
			if r != nil {
				r.Leave()
			}
			var err error
			if r, err = b.Dial(Login{Rack: rack}); err != nil {
				r = nil
				time.Sleep(100 * time.Millisecond)
				continue
			}
			read = 0
		}
		got := r.Got()
		for _, m := range got[read:] {
			if _, ok := open[string(m.Payload())]; ok {
				delete(open, string(m.Payload()))
				answered++
			}
		}
		read = len(got)
		kind := []wire.Kind{wire.KindTask, wire.KindPlan}[sent%2]
		if sent < n {
			data := rack + time.Now().String()
			open[data] = time.Now()
			r.Client.Publish(r.Topic(kind), 1, false, data)
			sent++
		}
		for data, at := range open {
			if time.Since(at) > again {
				open[data] = time.Now()
				r.Client.Publish(r.Topic(kind), 1, false, data)
			}
		}
	}
	if r != nil {
		r.Leave()
	}
	return answered
}
