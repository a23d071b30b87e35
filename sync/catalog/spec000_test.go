package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

var errCut = errors.New("the line is cut")

func TestSpec000_Sync(t *testing.T) {
	t.Run("fetch_entitled_skills(subscription_id, since_version): only what changed after the version that is here", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"), tips("lab", "1", "lab"))
		w.sync()
		w.want("a=1 b=1")
		at := w.c.Copy()
		w.publish(tips("b", "2", "social"), tips("c", "1", "social"))
		w.remove("a")
		fetched := w.blobs
		w.sync()
		w.want("b=2 c=1")
		last := w.asked[len(w.asked)-1]
		if last.Since != 0 && w.blobs-fetched > 8 {
			t.Errorf("%d requests for bodies", w.blobs-fetched)
		}
		found := false
		for _, ask := range w.asked {
			found = found || ask.Since == at.Version && ask.Epoch == at.Epoch
		}
		if !found {
			t.Errorf("asked %+v", w.asked)
		}
	})
	t.Run("Polling sync must work standalone, on a configurable interval", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.options.Every, w.options.Jitter = time.Hour, func(limit time.Duration) time.Duration { return limit }
			w.restart()
			w.publish(tips("a", "1", "social"))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- w.c.Run(ctx) }()
			synctest.Wait()
			w.want("a=1")
			w.publish(tips("a", "2", "social"))
			time.Sleep(time.Hour - time.Second)
			synctest.Wait()
			w.want("a=1")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			w.want("a=2")
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a change notification triggers an immediate out-of-cycle fetch, and correctness never depends on push arriving", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.publish(tips("a", "1", "social"))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- w.c.Run(ctx) }()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			w.publish(tips("a", "2", "social"))
			w.c.Hint(wire.SkillChanged{Epoch: w.epoch, Version: w.version})
			synctest.Wait()
			w.want("a=2")
			asked := len(w.asked)
			for range 100 {
				w.c.Hint(wire.SkillChanged{Epoch: w.epoch, Version: w.version})
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if n := len(w.asked) - asked; n > 2 {
				t.Errorf("a swarm of hints made %d requests", n)
			}
			cancel()
			<-done
		})
	})
	t.Run("a stored copy serves offline, as it was, after a restart", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		w.sync()
		w.cut = func(string) error { return errCut }
		w.restart()
		w.want("a=1 b=1")
		w.refused(errCut)
		if s := w.c.Status(); !s.Synced || s.Skills != 2 || !s.StaleSince.IsZero() {
			t.Errorf("%+v", s)
		}
		w.at = w.at.Add(25 * time.Hour)
		if s := w.c.Status(); !s.StaleSince.Equal(w.at.Add(-time.Hour)) {
			t.Errorf("stale since %v", s.StaleSince)
		}
		w.want("a=1 b=1")
	})
	t.Run("D2: content flows one direction, and another rack's copy is nobody's", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"))
		w.sync()
		w.c.Hint(wire.SkillChanged{Epoch: 3, Version: 99, Removed: []string{"b"}})
		w.options.Tenant = "other"
		w.restart()
		if w.want(""); w.c.Status().Synced || w.c.Status().Hidden != 0 {
			t.Errorf("%+v", w.c.Status())
		}
	})
}

func TestSpec000_RevocationKnownLocally(t *testing.T) {
	t.Run("a notification that only carries removed without full content hides at once, before any sync, and after a restart", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		w.sync()
		hint := w.remove("a")
		w.c.Hint(hint)
		if w.want("b=1"); w.changes != 2 {
			t.Errorf("told %d times", w.changes)
		}
		w.restart()
		w.want("b=1")
		w.sync()
		w.want("b=1")
		if n := w.c.Status().Hidden; n != 0 {
			t.Errorf("%d hides are left", n)
		}
	})
	t.Run("an older poll in flight does not bring it back", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		w.sync()
		w.publish(tips("b", "2", "social"))
		w.alter = func(int, *wire.SkillManifest) { // the manifest is signed already
			w.alter = nil
			w.mu.Unlock()
			w.c.Hint(w.remove("a"))
			w.mu.Lock()
		}
		w.sync()
		w.want("b=2")
		w.restart()
		w.want("b=2")
		w.sync()
		w.want("b=2")
	})
	t.Run("changes that know of it already do not lift it", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
		w.sync()
		hint := w.remove("a")
		w.alter = func(int, *wire.SkillManifest) {
			w.alter = nil
			w.mu.Unlock()
			w.c.Hint(hint)
			w.mu.Lock()
		}
		w.sync()
		if w.want("b=1"); w.c.Status().Hidden != 1 {
			t.Errorf("%+v", w.c.Status())
		}
		w.sync()
		if w.want("b=1"); w.c.Status().Hidden != 0 {
			t.Errorf("%+v", w.c.Status())
		}
	})
	t.Run("only a complete list of that version or later lifts it", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"))
		w.sync()
		at := w.c.Copy()
		w.c.Hint(wire.SkillChanged{Epoch: at.Epoch, Version: at.Version + 2, Removed: []string{"a"}})
		w.sync() // complete, of an earlier version
		w.want("")
		w.publish(tips("b", "1", "social"))
		w.sync()
		w.want("b=1")
		w.publish(tips("c", "1", "social"))
		w.restart()
		w.sync()
		w.want("a=1 b=1 c=1")
	})
	t.Run("a revoked subscription hides its skills, a grant brings them back", func(t *testing.T) {
		w := newWorld(t)
		w.subscribe("games", model.Active)
		w.publish(tips("a", "1", "social"), tips("g", "1", "games"))
		w.sync()
		w.want("a=1 g=1")
		w.c.Hint(w.subscribe("games", model.Revoked))
		w.want("a=1")
		late := w.subscribe("games", model.Revoked)
		w.subscribe("games", model.Active)
		w.sync()
		w.want("a=1 g=1")
		w.c.Hint(late)
		w.want("a=1 g=1")
	})
	t.Run("hides without bound hide everything", func(t *testing.T) {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"))
		w.sync()
		var ids []string
		for i := range model.MaxRemoved + 1 {
			ids = append(ids, fmt.Sprintf("x%d", i))
		}
		w.version++
		w.c.Hint(wire.SkillChanged{Epoch: w.epoch, Version: w.version, Removed: ids})
		w.want("")
		if n := w.c.Status().Hidden; n != 1 {
			t.Errorf("%d hides", n)
		}
		w.restart()
		w.want("")
		w.sync()
		w.want("a=1")
	})
}

func TestSpec000_EntitlementIsPerAgent(t *testing.T) {
	w := newWorld(t)
	w.subscribe("desk", model.Active, "mcp")
	w.publish(tips("a", "1", "desk"), tips("b", "1", "nobodys"))
	w.skills["b"].Subscription = "social"
	w.sync()
	w.want("b=1")
	c := w.c.Copy()
	if r, ok := c.Row("a"); !ok || !c.Entitled(r, "mcp-x", "mcp") || c.Entitled(r) {
		t.Errorf("%+v", r)
	}
}

func TestResyncAndEpochs(t *testing.T) {
	w := newWorld(t)
	w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
	w.sync()
	w.mu.Lock()
	w.epoch, w.version = w.epoch+1, 1 // a restored database
	delete(w.skills, "b")
	w.changed, w.entitle = map[string]int64{"a": 1}, 0
	w.mu.Unlock()
	w.sync()
	if w.want("a=1"); w.c.Copy().Epoch != 4 || w.c.Copy().Version != 1 {
		t.Errorf("%+v", w.c.Copy())
	}
}

// TestACutAnywhereLeavesTheCopyWhole cuts each request and each transaction once, and then goes on from there.
func TestACutAnywhereLeavesTheCopyWhole(t *testing.T) {
	for at := range 60 {
		w := newWorld(t)
		w.publish(tips("a", "1", "social"), tips("b", "1", "social"), tips("z", "1", "social"))
		w.sync()
		w.publish(tips("b", "2", "social"), tips("c", "1", "social"))
		w.remove("a")
		var n atomic.Int64
		step := func() error {
			if n.Add(1) == int64(at+1) {
				return errCut
			}
			return nil
		}
		w.cut = func(string) error { return step() }
		w.options.Bucket = bucket{w.bucket.db, step}
		c, err := catalog.Open(w.options)
		if err != nil {
			continue // the cut was in Open
		}
		w.c = c
		err = w.c.Sync(t.Context())
		if err == nil && n.Load() < int64(at+1) {
			if at < 5 {
				t.Fatalf("only %d places to cut", at)
			}
			return // all were cut
		}
		if err != nil {
			w.want("a=1 b=1 z=1")
		}
		w.cut, w.options.Bucket = nil, w.bucket
		w.restart()
		if err != nil {
			w.want("a=1 b=1 z=1")
		}
		w.sync()
		w.want("b=2 c=1 z=1")
	}
	t.Fatal("there is no end of places to cut")
}

// TestBodiesThatWereFetchedBeforeACutAreNotFetchedAgain: nor are they left behind.
func TestBodiesThatWereFetchedBeforeACutAreNotFetchedAgain(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.publish(tips(fmt.Sprintf("s%03d", i), "1", "social"))
	}
	n := 0
	w.cut = func(what string) error {
		if n++; what == "blob" && n > 150 {
			return errCut
		}
		return nil
	}
	w.refused(errCut)
	done := w.blobs
	w.cut = nil
	w.restart()
	w.sync()
	if again := w.blobs - done; done < 50 || again > 320-done {
		t.Errorf("%d requests before the cut, %d after it", done, again)
	}
	if s := w.c.Status(); s.Skills != 100 {
		t.Errorf("%+v", s)
	}
}

// TestFailuresAreNotHammered: neither by polls nor by hints, and the platform may ask for more time.
func TestFailuresAreNotHammered(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		most int // requests in an hour
	}{
		"a line that is cut":                    {errCut, 150},
		"a platform that wants ten minutes":     {wire.Refuse(wire.LimitExceeded, nil).After(10 * time.Minute), 7},
		"a platform that wants a day, and 15 m": {wire.Refuse(wire.LimitExceeded, nil).After(24 * time.Hour), 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				asked := 0
				w.cut = func(string) error { asked++; return c.err }
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- w.c.Run(ctx) }()
				for range 3600 {
					w.c.Poll()
					time.Sleep(time.Second)
				}
				synctest.Wait()
				if asked < 2 || asked > c.most {
					t.Errorf("asked %d times", asked)
				}
				w.cut = nil
				w.publish(tips("a", "1", "social"))
				time.Sleep(16 * time.Minute)
				synctest.Wait()
				w.want("a=1")
				cancel()
				<-done
			})
		})
	}
}

func TestABodyThatIsDamagedIsFetchedAnew(t *testing.T) {
	w := newWorld(t)
	w.publish(tips("a", "1", "social"), tips("b", "1", "social"))
	w.sync()
	r, _ := w.c.Copy().Row("a")
	err := w.bucket.Update(func(b *bolt.Bucket) error {
		return b.Bucket([]byte("bodies")).Put([]byte(r.SHA256), make([]byte, r.Size))
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := w.c.Skill(r.Entry); err == nil {
		t.Errorf("%+v", s)
	}
	w.sync()
	w.want("a=1 b=1")
	w.restart()
	w.want("a=1 b=1")
	gone := r.Entry
	gone.ID, gone.SHA256 = "none", model.Sum(nil)
	if _, err := w.c.Skill(gone); !errors.Is(err, catalog.ErrGone) {
		t.Errorf("%v", err)
	}
}
