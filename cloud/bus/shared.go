package bus

import (
	"context"
	"log/slog"

	"phonerack/sync/wire"
)

// Shared are the options of [OpenShared].
type Shared struct {
	MQTT   MQTT
	Group  string // the replicas that share the work; an id of the wire
	Limits Limits
	Log    *slog.Logger
}

// OpenShared makes a bus on any MQTT broker that has shared subscriptions for 3.1.1 clients. It returns at once; the
// links come up by themselves, and [Bus.Check] tells.
func OpenShared(o Shared) (Bus, error) {
	c, err := newCore(o.MQTT, o.Group, o.Limits, o.Log)
	if err != nil {
		return nil, err
	}
	return &shared{c}, nil
}

type shared struct{ *core }

// Serve implements Bus. Each kind has a session of its own: a broker stops sending to one that leaves too many frames
// unacknowledged, and slow plans must not hold up the rest. A frame is acknowledged when a worker takes it, so what waits
// here is also what the broker's window lets in.
func (s *shared) Serve(ctx context.Context, kinds []wire.Kind, h Handler) error {
	if err := servable(kinds); err != nil {
		return err
	}
	return s.listen(ctx, h, func(newPool func(wire.Kind, int) *pool) (func(), error) {
		var stops []func()
		for _, k := range kinds {
			p := newPool(k, s.limits.Queue)
			filter := "$share/" + s.group + "/" + wire.UpFilter(k)
			stops = append(stops, s.hear(filter, 1, true, string(k), p))
		}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}, nil
	})
}

// Observe implements Bus.
func (s *shared) Observe(ctx context.Context, h Handler) error { return s.observe(ctx, h, 1) }
