package firmware

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/config"
	"phonerack/firmware/factory"
	"phonerack/firmware/health"
	"phonerack/firmware/store"
	"phonerack/hal/led"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// ErrFactoryReset is what Run ends with when a factory reset was asked for: the next start carries it out.
var ErrFactoryReset = errors.New("a factory reset was asked for: it is done when rackd is started again")

const (
	farewellTime  = 10 * time.Second // for the cloud to hear of what ends
	farewellPause = time.Second      // for the answer to who asked
)

// FactoryReset implements action.Resetter: it marks the state folder, ends all tasks as lost, lets the cloud hear of that if
// it is there, and ends Run.
func (r *Rack) FactoryReset(by string, keys bool) error {
	r.mu.Lock()
	again := r.resetting
	r.resetting = true
	r.mu.Unlock()
	if again {
		return nil
	}
	identity := r.config.Cloud.Identity
	if err := factory.Ask(r.config.Rack.State, identity, factory.Mark{By: by, Keys: keys}); err != nil {
		r.mu.Lock()
		r.resetting = false
		r.mu.Unlock()
		return wire.Refuse(wire.Conflict, map[string]any{"reason": err.Error()}).Because(err)
	}
	r.log.Warn("factory reset: rackd ends, and its next start removes what has gathered", "by", by, "keys", keys)
	r.care.lights[0].set(led.Updating, true) // leave the power on
	r.works(func() {                         // if rackd stops already, the mark is enough
		defer close(r.reset)
		r.lose()
	})
	return nil
}

// lose ends all tasks, and waits a while until the cloud has heard of it.
func (r *Rack) lose() {
	end := time.NewTimer(farewellTime)
	defer end.Stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	pause(r.halt, farewellPause)
	r.mu.Lock()
	r.stopping = true // no new ones
	for _, t := range r.tasks {
		t.cancel(wire.Refuse(wire.ShuttingDown, nil))
	}
	r.mu.Unlock()
	for {
		r.mu.Lock()
		busy := len(r.tasks) + len(r.owed)
		r.mu.Unlock()
		heard := r.cloud == nil || r.cloud.link.Status().State != link.Online || heardAll(r.cloud.link.Outbox().Status())
		if busy == 0 && heard {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		case <-r.halt.Done():
			return
		}
	}
}

// heardAll says that nothing waits to be heard by the cloud.
func heardAll(s link.OutboxStatus) bool {
	waiting := 0
	for _, n := range s.Entries {
		waiting += n
	}
	return waiting == 0
}

// FinishReset carries out a factory reset that was asked for, before anything of the state folder is opened; false if there was
// none. file is the configuration's own.
func FinishReset(c *config.Config, file string, log *slog.Logger) (bool, error) {
	return finishReset(c, file, log, nil)
}

func finishReset(c *config.Config, file string, log *slog.Logger, step func(string) error) (bool, error) {
	m, did, err := factory.Carry(factory.Plan{
		State: c.Rack.State, Runtime: filepath.Join(c.Rack.Runtime, cloudFolder), Identity: c.Cloud.Identity, Database: databaseFile,
		Kept: append(c.Files(), file), Step: step,
		Reduce: func(from, to string) error { return keepPower(from, to, log) },
	})
	if did && err == nil {
		log.Warn("factory reset is done: the rack is as it was delivered", "by", m.By, "keys", m.Keys)
	}
	return did, err
}

// keepPower writes a new database that knows what is wanted of the phones' power and for what, and nothing else. A database that cannot be
// read has nothing to say: then what the board file says is wanted.
func keepPower(from, to string, log *slog.Logger) error {
	kept := map[string]map[string][]byte{powerBucket: {}, maintenanceBucket: {}, health.BucketName: {}}
	old, err := store.Open(store.Options{Path: from, Logger: log})
	switch {
	case errors.Is(err, store.ErrLocked):
		return err
	case err != nil:
		log.Warn("what is wanted of the phones' power cannot be read", "err", err)
	default:
		for name, values := range kept {
			if err := eachOf(old, name, func(k, v []byte) {
				if name != health.BucketName {
					values[string(k)] = append([]byte{}, v...)
				} else if of, ok := health.OfPower(string(k), v); ok {
					values[string(k)] = of
				}
			}); err != nil {
				log.Warn("what is wanted of the phones' power cannot be read", "err", err)
			}
		}
		if err := old.Close(); err != nil {
			log.Debug("the old database", "err", err)
		}
	}
	fresh, err := store.Open(store.Options{Path: to, Logger: log})
	if err != nil {
		return err
	}
	for name, values := range kept {
		bucket, openErr := fresh.Bucket(name)
		if openErr == nil {
			openErr = bucket.Update(func(b *bolt.Bucket) error {
				for k, v := range values {
					if err := b.Put([]byte(k), v); err != nil {
						return err
					}
				}
				return nil
			})
		}
		err = errors.Join(err, openErr)
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return fmt.Errorf("write a new database: %w", err)
	}
	return nil
}

func eachOf(s *store.Store, name string, fn func(k, v []byte)) error {
	bucket, err := s.Bucket(name)
	if err != nil {
		return err
	}
	return bucket.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			fn(k, v)
			return nil
		})
	})
}
