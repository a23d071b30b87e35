package firmware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/store"
	"phonerack/hal/watchdog"
)

// Bounds of the critical parts, each more than what the part may wait for outside.
const (
	beatEvery  = 5 * time.Second
	busBound   = 30 * time.Second // it reads sysfs again every 3 s
	slotBound  = 3 * time.Minute  // reading a phone is bounded by 90 s
	storeBound = time.Minute
	linkBound  = 2 * time.Minute // connecting is bounded by 20 s, the end of a session by about 30 s
)

// Manager is the service manager's watchdog; *systemd.Manager is one.
type Manager interface {
	// Watch feeds it until ctx ends, as long as late returns "": else late names what makes no progress.
	Watch(ctx context.Context, late func() string) error
}

// watchProgress has each critical part tell of its progress, and whoever wants to know fed by that: the hardware's watchdog,
// the service manager's, or both.
func (r *Rack) watchProgress(o Options) {
	if o.Watchdog == nil && o.Manager == nil {
		return
	}
	r.parts, r.storeBound = watchdog.NewParts(), o.StoreBound
	for _, s := range r.slots {
		s.progress = r.parts.Part(fmt.Sprintf("slot %d", s.number), slotBound)
	}
	if r.config.Board != nil && o.Watch == nil { // only the rack's own watcher of the bus tells of its rounds
		r.bus.progress = r.parts.Part("bus", busBound)
	}
	if r.cloud != nil {
		r.linked = r.parts.Part("link", linkBound)
	}
	r.watch.Add(r.tree, service{"watch over the store", r.watchStore}, stopPart)
	if o.Watchdog != nil {
		feeder := watchdog.NewFeeder(watchdog.Options{Device: o.Watchdog, Parts: r.parts, Logger: r.log})
		r.watch.Add(r.tree, service{"feeder of the watchdog", feeder.Run}, stopPart)
	}
	if o.Manager != nil {
		r.watch.Add(r.tree, service{"feeder of systemd's watchdog", func(ctx context.Context) error {
			return o.Manager.Watch(ctx, r.idle())
		}}, stopPart)
	}
}

// idle tells what makes no progress, "" for nothing, and logs when that changes.
func (r *Rack) idle() func() string {
	said := ""
	return func() string {
		now := r.parts.Idle()
		switch {
		case now == said:
		case now == "":
			r.log.Warn("every part makes progress again; systemd is told so")
		default:
			r.log.Error("a part makes no progress; systemd's watchdog is not fed, and ends rackd", "late", now)
		}
		said = now
		return now
	}
}

var errLookOnly = errors.New("nothing is written")

// watchStore takes the store's writer again and again: one that hangs, or never lets go, makes no progress.
func (r *Rack) watchStore(ctx context.Context) error {
	bucket, err := r.store.Bucket(powerBucket)
	if err != nil {
		return err
	}
	bound := cmp.Or(r.storeBound, storeBound)
	stored := r.parts.Part("store", bound)
	defer stored.End()
	tick := time.NewTicker(min(beatEvery, bound/4))
	defer tick.Stop()
	for {
		// Rolled back at once: the lock of the writer is what is asked for, and the card is spared.
		if err := bucket.Update(func(*bolt.Bucket) error { stall("store"); return errLookOnly }); errors.Is(err, errLookOnly) || errors.Is(err, store.ErrFull) {
			stored.Progress()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
