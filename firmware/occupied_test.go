package firmware

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/health"
)

// refusedOnce is a disk that refuses its first note.
type refusedOnce struct {
	notes
	refused bool
}

func (r *refusedOnce) Update(func(*bolt.Bucket) error) error {
	if !r.refused {
		r.refused = true
		return errors.New("disk full")
	}
	return nil
}

// TestWhatIsNotedWhileAnotherNoteIsForgottenHolds. Who waits for a lock for more than a millisecond gets it when it is let go next, so
// that somebody's order comes in wherever forgetting lets go.
func TestWhatIsNotedWhileAnotherNoteIsForgottenHolds(t *testing.T) {
	keeper, err := health.New(health.Options{Config: health.Defaults(), Now: func() time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		disk, early := &refusedOnce{}, false
		o := &occupied{bucket: disk, keeper: keeper, why: map[int][]string{1: {darkened}}}
		var both sync.WaitGroup
		o.saving.Lock()
		both.Go(func() { o.forget(1, darkened) })
		runtime.Gosched() // it comes first
		both.Go(func() {
			for _, is := range []bool{false, true} {
				early = o.set(1, darkened, is) != nil || early // it came first after all
			}
		})
		for from := time.Now(); time.Since(from) < 3*time.Millisecond; {
			runtime.Gosched()
		}
		o.saving.Unlock()
		o.saving.Lock() // who waits longest finds it taken once more, and is served in turn from now on
		runtime.Gosched()
		o.saving.Unlock()
		both.Wait()
		if !early && !o.has(1, darkened) {
			t.Fatal("a slot was noted to be dark after another note was forgotten, and does not count as dark")
		}
	}
}
