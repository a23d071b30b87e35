package bustest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

// Record keeps what handlers got.
type Record struct {
	mu     sync.Mutex // guards frames
	frames []bus.Frame
}

// Handle is a bus.Handler.
func (r *Record) Handle(_ context.Context, f bus.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, f)
}

// Frames are all so far.
func (r *Record) Frames() []bus.Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.frames)
}

// Has tells whether a frame of that content has come.
func (r *Record) Has(data string) bool {
	return slices.ContainsFunc(r.Frames(), func(f bus.Frame) bool { return string(f.Data) == data })
}

// Serve runs b.Serve until the returned function or the test ends it, and waits until its subscriptions stand.
func Serve(t testing.TB, b bus.Bus, h bus.Handler, kinds ...wire.Kind) (stop func()) {
	t.Helper()
	return run(t, b, func(ctx context.Context) error { return b.Serve(ctx, kinds, h) })
}

// Observe does the same with b.Observe.
func Observe(t testing.TB, b bus.Bus, h bus.Handler) (stop func()) {
	t.Helper()
	return run(t, b, func(ctx context.Context) error { return b.Observe(ctx, h) })
}

func run(t testing.TB, b bus.Bus, call func(context.Context) error) (stop func()) {
	t.Helper()
	before := b.Stats().Listening
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := call(ctx); err != nil && !errors.Is(err, bus.ErrClosed) {
			t.Error(err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	Eventually(t, patience, "the call has begun", func() bool { return b.Stats().Listening > before })
	Ready(t, b)
	return stop
}
